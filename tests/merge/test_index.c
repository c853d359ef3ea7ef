/* The index of a model in shards: what was checked is what the result has, whatever a site does meanwhile. */
#include "support/check.h"
#include "support/scratch.h"

#include <reef/file.h>
#include <reef/merge.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char good[] = "{\"weight_map\":{\"q.lora_A.weight\":\"a.safetensors\"}}";
static const char bad[] = "{\"weight_map\":{\"q.lora_A.weight\":\"../a.safetensors\"}}";

typedef struct site {
    char folder[SCRATCH_PATH];
    char index[2 * SCRATCH_PATH], shard[2 * SCRATCH_PATH];
} site;

static void write_text(const char *path, const char *text)
{
    assert_int_equal(reef_file_write(NULL, path, text, strlen(text), NULL), REEF_OK);
}

/* A folder with one factor of one number, in a shard that the index names. */
static void make_site(const scratch *s, const char *name, site *made)
{
    static const char header[] = "{\"q.lora_A.weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    const float number = 1;
    unsigned char bytes[8 + sizeof header - 1 + sizeof number] = {sizeof header - 1};
    memcpy(bytes + 8, header, sizeof header - 1);
    memcpy(bytes + 8 + sizeof header - 1, &number, sizeof number);
    (void)scratch_path(s, name, made->folder);
    (void)snprintf(made->index, sizeof made->index, "%s/model.safetensors.index.json", made->folder);
    (void)snprintf(made->shard, sizeof made->shard, "%s/a.safetensors", made->folder);
    assert_int_equal(mkdir(made->folder, 0700), 0);
    assert_int_equal(reef_file_write(NULL, made->shard, bytes, sizeof bytes, NULL), REEF_OK);
    write_text(made->index, good);
}

static void remove_site(const site *made)
{
    (void)unlink(made->index);
    (void)unlink(made->shard);
    (void)rmdir(made->folder);
}

/* A note comes after the models were opened, and before the result is. */
static void change(void *user, const char *sentence)
{
    (void)sentence;
    if (user) {
        write_text(user, bad);
    }
}

static void changed_meanwhile(void **state)
{
    (void)state;
    for (int changes = 0; changes < 2; changes++) {
        scratch s;
        site made;
        site out;
        reef_error error = {REEF_OK, ""};
        scratch_open(&s);
        make_site(&s, "site", &made);
        make_site(&s, "out", &out);
        remove_site(&out);
        const char *const paths[] = {made.folder};
        const reef_merge_options options = {.factors = true, .note = change, .user = changes ? made.index : NULL};
        reef_status status = reef_merge_files(NULL, &options, paths, 1, out.folder, NULL, &error);
        assert_int_equal(status, changes ? REEF_E_FILE : REEF_OK);
        CHECK(!changes || strstr(error.text, "index.json: the file was changed"), "%s", error.text);
        assert_int_equal(access(out.index, F_OK) == 0, !changes);
        remove_site(&out);
        remove_site(&made);
        assert_int_equal(scratch_count(&s), 0);
        scratch_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changed_meanwhile)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
