#include "support/attacks.h"

#include "num/rng.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

const char *const attack_specs[] = {
    "additive",
    "additive:delta=-2.5,direction=gaussian",
    "sign_flip",
    "sign_flip:scale=4,reference=previous",
    "gaussian",
    "gaussian:sigma=30",
    "zero",
    "zero:reference=previous",
    "random",
    "random:scale=3,distribution=uniform",
    "nan",
    "nan:value=mixed",
    "nan:value=huge,where=one",
    "few_coordinates",
    "few_coordinates:count=5,delta=-7,moving=true",
    "mimic",
    "mimic:agent=13",
    "mimic:agent=farthest",
    "mimic:targets=3,jitter=0.5",
    "alie",
    "alie:z=1.5,sign=minus,share=all",
    "alie:z=0.5,period=3",
    "alie:z=0.5,jitter=2",
    "shared_noise",
    "shared_noise:z=2,jitter=0",
    "shared_noise:ids=3",
    "ipm",
    "ipm:epsilon=10,reference=zero",
    "min_max",
    "min_max:limit=sum,direction=unit",
    "min_max:pairs=mean,direction=sign,reference=zero",
    "min_max:direction=sign",
    "min_max:direction=unit,pairs=mean",
    "fang",
    "fang:b=5,draws=common",
    "fang:range=sigma",
    "fang_krum",
    "fang_krum:evaluations=7",
    "line_search",
    "line_search:direction=ipm,evaluations=9",
    "line_search:direction=ipm,reference=zero",
    "two_faced",
    "two_faced:delta=9,split=random",
    "dissensus",
    "dissensus:epsilon=2",
    "label_flip",
    "silent",
    "late",
    "late:delay=2",
    "frame",
    "frame:z=1,period=3,targets=2,jitter=0",
    "adaptive",
    "adaptive:z=2,least=0,period=3,jitter=0",
    "come_and_go",
    "come_and_go:identity=8",
    "whitewash",
    "whitewash:z=2,jitter=0.5,identity=4",
    "whitewash:ids=same,identity=3,away=2",
    "whitewash:identity=8,period=4",
    "alie:z=1,jitter=1,weak=0.5,strike=3",
};
const ptrdiff_t attack_specs_count = COUNT(attack_specs);

static void *room(ptrdiff_t count, size_t size)
{
    void *memory = calloc((size_t)count + (count == 0), size);
    assert_non_null(memory);
    return memory;
}

/* Memory and pointers; the numbers are the caller's. */
static scene empty_scene(ptrdiff_t known, ptrdiff_t length, ptrdiff_t lanes)
{
    scene s = {.data = room((3 + known) * length, sizeof(float)),
               .rows = room(known, sizeof(const float *)),
               .out = room(length, sizeof(float))};
    for (ptrdiff_t l = 0; l < known; l++) {
        s.rows[l] = s.data + (3 + l) * length;
    }
    s.view = (reef_attack_view){.round = 7,
                                .seed = 11,
                                .sender = 40,
                                .receiver = -1,
                                .length = length,
                                .lanes = lanes,
                                .own = s.data,
                                .previous = s.data + length,
                                .receiver_model = s.data + 2 * length,
                                .known = known,
                                .rows = s.rows,
                                .honest = known,
                                .malicious_count = 3};
    return s;
}

scene make_scene(ptrdiff_t known, ptrdiff_t length, ptrdiff_t lanes, double centre, double scale, uint64_t seed)
{
    scene s = empty_scene(known, length, lanes);
    rfi_rng rng;
    rfi_rng_init(&rng, seed, 0x74657374, 0, 0, 0);
    for (ptrdiff_t i = 0; i < (3 + known) * length; i++) {
        s.data[i] = (float)(centre + scale * rfi_rng_normal(&rng));
    }
    return s;
}

scene take_lane(const scene *from, ptrdiff_t r)
{
    ptrdiff_t lanes = from->view.lanes;
    ptrdiff_t length = from->view.length / lanes;
    scene s = empty_scene(from->view.known, length, 1);
    reef_attack_view view = from->view;
    view.length = length;
    view.lanes = 1;
    view.repetition += r;
    view.own = s.view.own;
    view.previous = s.view.previous;
    view.receiver_model = s.view.receiver_model;
    view.rows = s.view.rows;
    s.view = view;
    for (ptrdiff_t l = 0; l < 3 + view.known; l++) {
        for (ptrdiff_t m = 0; m < length; m++) {
            s.data[l * length + m] = from->data[l * from->view.length + m * lanes + r];
        }
    }
    return s;
}

void drop_scene(scene *s)
{
    free(s->data);
    free(s->rows);
    free(s->out);
}

reef_attack *make_attack(const char *spec)
{
    reef_attack *attack = NULL;
    reef_error error;
    CHECK(reef_attack_create(NULL, &attack, spec, &error) == REEF_OK, "%s: %s", spec, error.text);
    return attack;
}

bool send_message(const reef_attack *attack, scene *s)
{
    const reef_attack_kind *kind = reef_attack_kind_of(attack);
    if (!kind->message) {
        memcpy(s->out, s->view.own, (size_t)s->view.length * sizeof(float));
        return true;
    }
    s->view.work = room(reef_attack_work(attack, s->view.length, s->view.known), sizeof(float));
    bool sent = kind->message(reef_attack_params(attack), &s->view, s->out);
    free(s->view.work);
    s->view.work = NULL;
    return sent;
}

bool aggregate_mean(void *user, const float *const *rows, ptrdiff_t count, float *out)
{
    ptrdiff_t length = *(const ptrdiff_t *)user;
    for (ptrdiff_t m = 0; m < length; m++) {
        double sum = 0;
        for (ptrdiff_t l = 0; l < count; l++) {
            sum += (double)rows[l][m];
        }
        out[m] = (float)(sum / (double)count);
    }
    return true;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

bool aggregate_median(void *user, const float *const *rows, ptrdiff_t count, float *out)
{
    ptrdiff_t length = *(const ptrdiff_t *)user;
    double *column = room(count, sizeof *column);
    for (ptrdiff_t m = 0; m < length; m++) {
        for (ptrdiff_t l = 0; l < count; l++) {
            column[l] = (double)rows[l][m];
        }
        qsort(column, (size_t)count, sizeof *column, compare);
        out[m] = (float)((column[(count - 1) / 2] + column[count / 2]) / 2);
    }
    free(column);
    return true;
}

bool aggregate_nothing(void *user, const float *const *rows, ptrdiff_t count, float *out)
{
    (void)user;
    (void)rows;
    (void)count;
    (void)out;
    return false;
}

bool aggregate_krum(void *user, const float *const *rows, ptrdiff_t count, float *out)
{
    ptrdiff_t length = *(const ptrdiff_t *)user;
    double *distance = room(count, sizeof *distance);
    ptrdiff_t best = 0;
    double least = 1e300;
    for (ptrdiff_t l = 0; l < count; l++) {
        double score = 0;
        for (ptrdiff_t k = 0; k < count; k++) {
            distance[k] = 0;
            for (ptrdiff_t m = 0; m < length; m++) {
                double d = (double)rows[l][m] - (double)rows[k][m];
                distance[k] += d * d;
            }
        }
        qsort(distance, (size_t)count, sizeof *distance, compare);
        for (ptrdiff_t k = 0; k < count - 4; k++) { /* itself and n - f - 2 others */
            score += distance[k];
        }
        if (score < least) {
            least = score;
            best = l;
        }
    }
    memcpy(out, rows[best], (size_t)length * sizeof *out);
    free(distance);
    return true;
}
