/* Specs of attacks: any bytes make an attack whose spec reads back and whose message stays within its memory, or a clear error.
 *
 * Input: four bytes (rows known, coordinates, lanes, kind of numbers), then the spec. */
#include "check.h"

#include <reef/attack.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *room(size_t count, size_t size)
{
    void *memory = calloc(count + (count == 0), size);
    CHECK(memory);
    return memory;
}

static void check_spec(const reef_attack *attack)
{
    char text[2000];
    char again[2000];
    reef_attack *copy = NULL;
    CHECK(reef_attack_print(attack, text, sizeof text) < sizeof text);
    CHECK(reef_attack_create(NULL, &copy, text, NULL) == REEF_OK);
    (void)reef_attack_print(copy, again, sizeof again);
    CHECK(strcmp(text, again) == 0);
    reef_attack_destroy(&copy);
}

/* The first row, to have some result. */
static bool aggregate(void *user, const float *const *rows, ptrdiff_t count, float *out)
{
    CHECK(count >= 1);
    memcpy(out, rows[0], *(const size_t *)user);
    return true;
}

static void check_message(const reef_attack *attack, const uint8_t *shape)
{
    static const float scales[] = {0, 1, 3e38F, 1e-40F};
    const reef_attack_kind *kind = reef_attack_kind_of(attack);
    ptrdiff_t known = shape[0] % 8;
    ptrdiff_t lanes = reef_attack_traits(attack) & REEF_ATTACK_LANES ? 1 + shape[2] % 20 : 1;
    ptrdiff_t length = lanes * (1 + shape[1] % 40);
    size_t bytes = (size_t)length * sizeof(float);
    ptrdiff_t work = reef_attack_work(attack, length, known);
    CHECK(work >= 0);
    float *data = room((size_t)((3 + known) * length), sizeof *data);
    const float **rows = room((size_t)known, sizeof *rows);
    float *out = room((size_t)length, sizeof *out);
    for (ptrdiff_t i = 0; i < (3 + known) * length; i++) {
        data[i] = scales[shape[3] % 4] * ((float)((i * 37 % 11) - 5) / 5);
    }
    for (ptrdiff_t l = 0; l < known; l++) {
        rows[l] = data + (3 + l) * length;
    }
    reef_attack_view view = {.receiver = shape[3] % 3 - 1,
                             .length = length,
                             .lanes = lanes,
                             .own = data,
                             .previous = data + length,
                             .receiver_model = data + 2 * length,
                             .known = known,
                             .rows = rows,
                             .honest = known,
                             .malicious_count = shape[3] % 5,
                             .aggregate = aggregate,
                             .user = &bytes,
                             .work = room((size_t)work, sizeof(float))};
    bool sent = kind->message && kind->message(reef_attack_params(attack), &view, out);
    for (ptrdiff_t i = 0; i < length && sent && strcmp(kind->kind.name, "nan") != 0; i++) {
        CHECK(isfinite(out[i]));
    }
    free(view.work);
    free(data);
    free(rows);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reef_attack *attack = NULL;
    reef_error error;
    if (size < 4) {
        return 0;
    }
    char *spec = room(size - 3, 1);
    memcpy(spec, data + 4, size - 4);
    memset(&error, 0x5a, sizeof error);
    reef_status status = reef_attack_create(NULL, &attack, spec, &error);
    if (status == REEF_OK) {
        check_spec(attack);
        check_message(attack, data);
        (void)reef_attack_active(attack, data[0]);
    } else {
        CHECK(!attack && error.status == status && error.text[0] != '\0');
        CHECK(memchr(error.text, '\0', sizeof error.text));
    }
    reef_attack_destroy(&attack);
    free(spec);
    return 0;
}
