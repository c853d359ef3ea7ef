/* Checkpoints of a run, damaged by somebody who can repair the checksum: loading is refused with a sentence and changes nothing, or the run
 * goes on from there; a checkpoint that is as it was saved gives the bits of the run that went on without it. */
#include "base/hash.h"
#include "bytes.h"
#include "folder.h"

#include <reef/reef.h>
#include <stdbool.h>

enum { AGENTS = 6, FILE_MAX = 1 << 17 };

typedef struct world {
    reef_problem *problem;
    reef_agg *agg;
    reef_graph *graph;
    reef_links *links;
    reef_attack *attack;
    reef_run *run, *twin;
} world;

static void destroy(world *w)
{
    reef_run_destroy(&w->twin);
    reef_run_destroy(&w->run);
    reef_attack_destroy(&w->attack);
    reef_links_destroy(&w->links);
    reef_graph_destroy(&w->graph);
    reef_agg_destroy(&w->agg);
    reef_problem_destroy(&w->problem);
}

static void create(world *w, bytes *b)
{
    static const char *const rules[] = {"median", "mref", "cclip:tau=1", "mref:sketch=16"};
    static const char *const strategies[] = {"diffusion:mu=0.05", "federated:fraction=0.5,steps=2"};
    static const char *const attacks[] = {"alie", "ipm", "silent", "late"};
    static const bool malicious[AGENTS] = {false, true};
    reef_error error = {REEF_OK, ""};
    bool server = below(b, 2);
    CHECK(reef_problem_create(NULL, &w->problem, "lms:dimension=5", AGENTS, 1, &error) == REEF_OK);
    CHECK(reef_agg_create(NULL, &w->agg, rules[below(b, 4)], &error) == REEF_OK);
    CHECK(reef_graph_create(NULL, &w->graph, "ring:k=2", AGENTS, 1, &error) == REEF_OK);
    CHECK(reef_links_create(NULL, &w->links, "static", (const reef_graph *const *)&w->graph, 1, 1, &error) == REEF_OK);
    if (reef_attack_create(NULL, &w->attack, attacks[below(b, 4)], &error) != REEF_OK) {
        w->attack = NULL;
    }
    const reef_run_setup setup = {.problem = w->problem,
                                  .strategy = strategies[server],
                                  .rule = w->agg,
                                  .links = server ? NULL : w->links,
                                  .attack = w->attack,
                                  .malicious = w->attack ? malicious : NULL,
                                  .seed = 3};
    CHECK(reef_run_create(NULL, &w->run, &setup, &error) == REEF_OK);
    CHECK(reef_run_create(NULL, &w->twin, &setup, &error) == REEF_OK);
}

/* Some bytes of the file changed, cut off or put to zero; then mostly a checksum that is right again. */
static bool damage(bytes *b, unsigned char *file, size_t *size)
{
    ptrdiff_t edits = below(b, 4);
    size_t before = *size;
    bool changed = false;
    for (ptrdiff_t i = 0; i < edits; i++) {
        size_t at = (take(b) * 65536U + take(b) * 256U + take(b)) % *size;
        uint8_t with = take(b);
        file[at] ^= with;
        changed = changed || with;
    }
    if (below(b, 8) == 0) {
        *size -= (size_t)below(b, (ptrdiff_t)(*size < 200 ? *size - 9 : 200));
    }
    uint64_t sum = rfi_hash_bytes(RFI_HASH_START, file, *size - sizeof sum);
    if (below(b, 8)) {
        memcpy(file + *size - sizeof sum, &sum, sizeof sum);
    }
    return changed || *size != before;
}

static void same_models(const reef_run *a, const reef_run *b)
{
    for (ptrdiff_t k = 0; k < AGENTS; k++) {
        size_t bytes_of = (size_t)reef_run_dimension(a) * sizeof(float);
        CHECK(memcmp(reef_run_model(a, k), reef_run_model(b, k), bytes_of) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char file[FILE_MAX];
    char path[96];
    world w = {0};
    reef_error error = {REEF_OK, ""};
    make_folder();
    (void)snprintf(path, sizeof path, "%s/checkpoint", folder);
    bytes b = {data, size, (uint32_t)size};
    create(&w, &b);
    CHECK(reef_run_step(w.run, 1 + below(&b, 3), &error) == REEF_OK);
    CHECK(reef_run_save(w.run, path, &error) == REEF_OK);
    size_t length = (size_t)read_all(path, file, FILE_MAX);
    bool damaged = damage(&b, file, &length);
    write_all(path, file, length);
    reef_status status = reef_run_load(w.twin, path, &error);
    if (status != REEF_OK) {
        CHECK(error.status == status && error.text[0] && reef_run_round(w.twin) == 0);
    } else if (!damaged) {
        CHECK(reef_run_step(w.run, 2, &error) == REEF_OK && reef_run_step(w.twin, 2, &error) == REEF_OK);
        same_models(w.run, w.twin);
    } else if (reef_run_step(w.twin, 2, &error) != REEF_OK) {
        CHECK(error.text[0]);
    }
    CHECK(damaged || status == REEF_OK);
    destroy(&w);
    return 0;
}
