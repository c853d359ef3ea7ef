/* Each attack against its formula, written out plainly in double. */
#include "attack/attack.h"
#include "support/attacks.h"
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KNOWN = 9, LENGTH = 300 };

static double x_of(const scene *s, ptrdiff_t l, ptrdiff_t m)
{
    return (double)s->view.rows[l][m];
}

static double mean_of(const scene *s, ptrdiff_t m)
{
    double sum = 0;
    for (ptrdiff_t l = 0; l < s->view.known; l++) {
        sum += x_of(s, l, m);
    }
    return sum / (double)s->view.known;
}

static double deviation_of(const scene *s, ptrdiff_t m)
{
    double sum = 0;
    for (ptrdiff_t l = 0; l < s->view.known; l++) {
        sum += pow(x_of(s, l, m) - mean_of(s, m), 2);
    }
    return sqrt(sum / (double)s->view.known);
}

/* Sends `spec` in s and compares with formula(s, m) in every coordinate. */
static void expect(const char *spec, scene *s, double (*formula)(const scene *s, ptrdiff_t m))
{
    reef_attack *attack = make_attack(spec);
    assert_true(send_message(attack, s));
    for (ptrdiff_t m = 0; m < s->view.length; m++) {
        double want = formula(s, m);
        CHECK_CLOSE((double)s->out[m], want, 1e-6 * (1 + fabs(want)), spec);
    }
    reef_attack_destroy(&attack);
}

static double own_of(const scene *s, ptrdiff_t m)
{
    return (double)s->view.own[m];
}

static double previous_of(const scene *s, ptrdiff_t m)
{
    return (double)s->view.previous[m];
}

static double plus_1000(const scene *s, ptrdiff_t m)
{
    return own_of(s, m) + 1000;
}

static double minus_own(const scene *s, ptrdiff_t m)
{
    return -own_of(s, m);
}

static double update_turned_4(const scene *s, ptrdiff_t m)
{
    return previous_of(s, m) - 4 * (own_of(s, m) - previous_of(s, m));
}

static double nothing(const scene *s, ptrdiff_t m)
{
    (void)s;
    (void)m;
    return 0;
}

static double alie_15(const scene *s, ptrdiff_t m)
{
    return mean_of(s, m) + 1.5 * deviation_of(s, m);
}

static double alie_minus_15(const scene *s, ptrdiff_t m)
{
    return mean_of(s, m) - 1.5 * deviation_of(s, m);
}

static double alie_minus_half(const scene *s, ptrdiff_t m)
{
    return mean_of(s, m) - 0.5 * deviation_of(s, m);
}

static double frame_1(const scene *s, ptrdiff_t m)
{
    return mean_of(s, m) - deviation_of(s, m) + (x_of(s, 0, m) + x_of(s, 1, m) - 2 * mean_of(s, m)) / sqrt(2);
}

static double ipm_half(const scene *s, ptrdiff_t m)
{
    return previous_of(s, m) - 0.5 * (mean_of(s, m) - previous_of(s, m));
}

static double ipm_models(const scene *s, ptrdiff_t m)
{
    return -10 * mean_of(s, m);
}

static double row_0(const scene *s, ptrdiff_t m)
{
    return x_of(s, 0, m);
}

static double row_4(const scene *s, ptrdiff_t m)
{
    return x_of(s, 4, m);
}

static double row_7(const scene *s, ptrdiff_t m)
{
    return x_of(s, 7, m);
}

static double row_remotest(const scene *s, ptrdiff_t m)
{
    ptrdiff_t chosen = 0;
    double best = -1;
    for (ptrdiff_t l = 0; l < s->view.known; l++) {
        double distance = 0;
        for (ptrdiff_t i = 0; i < s->view.length; i++) {
            distance += pow(x_of(s, l, i) - mean_of(s, i), 2);
        }
        if (distance > best) {
            best = distance;
            chosen = l;
        }
    }
    return x_of(s, chosen, m);
}

/* As the paper has it, with equal weights a: sum_i a (x_i - w) over the honest, divided by the liars' f a. */
static double dissensus_2(const scene *s, ptrdiff_t m)
{
    double w = (double)s->view.receiver_model[m];
    double a = 1.0 / (double)(s->view.honest + s->view.malicious_count);
    double sum = 0;
    for (ptrdiff_t l = 0; l < s->view.known; l++) {
        sum += a * (x_of(s, l, m) - w);
    }
    return w - 2 * sum / (a * (double)s->view.malicious_count);
}

static double plus_9(const scene *s, ptrdiff_t m)
{
    return own_of(s, m) + 9;
}

static double minus_9(const scene *s, ptrdiff_t m)
{
    return own_of(s, m) - 9;
}

static void formulas(void **state)
{
    (void)state;
    scene s = make_scene(KNOWN, LENGTH, 1, 0.2, 1.5, 1);
    expect("additive", &s, plus_1000);
    expect("sign_flip", &s, minus_own);
    expect("sign_flip:scale=4,reference=previous", &s, update_turned_4);
    expect("gaussian:sigma=0", &s, own_of);
    expect("zero", &s, nothing);
    expect("zero:reference=previous", &s, previous_of);
    expect("random:scale=0", &s, nothing);
    expect("alie:z=1.5", &s, alie_15);
    expect("alie:z=1.5,sign=minus", &s, alie_minus_15);
    s.view.round = 9;
    expect("alie:z=1.5,period=5", &s, alie_minus_15); /* rounds 5 to 9 */
    expect("alie:z=1.5,sign=minus,period=5", &s, alie_15);
    s.view.round = 10;
    expect("alie:z=1.5,period=5", &s, alie_15);
    s.view.round = 0;
    expect("frame:z=1,targets=2,jitter=0", &s, frame_1);
    expect("ipm", &s, ipm_half);
    expect("ipm:epsilon=10,reference=zero", &s, ipm_models);
    expect("mimic", &s, row_0);
    expect("mimic:agent=13", &s, row_4);
    expect("mimic:agent=farthest", &s, row_remotest);
    ptrdiff_t sender = s.view.sender;
    s.view.sender = 13;
    expect("mimic:agent=13,targets=5", &s, row_7); /* 13 mod 9 + 13 mod 5 */
    expect("mimic:agent=3,targets=9", &s, row_7);
    s.view.sender = sender;
    expect("dissensus:epsilon=2", &s, dissensus_2);
    expect("label_flip", &s, own_of);
    expect("late", &s, own_of);
    expect("few_coordinates:count=0", &s, own_of);
    expect("few_coordinates:count=301,delta=9", &s, plus_9);
    expect("two_faced:delta=9", &s, plus_9);
    s.view.receiver = 6;
    expect("two_faced:delta=9", &s, plus_9);
    s.view.receiver = 7;
    expect("two_faced:delta=9", &s, minus_9);
    drop_scene(&s);
}

/* What liars that know nobody send. */
static void nothing_known(void **state)
{
    (void)state;
    scene s = make_scene(0, LENGTH, 1, 0.2, 1.5, 1);
    expect("alie", &s, own_of);
    expect("mimic:agent=farthest", &s, own_of);
    expect("min_max", &s, own_of);
    expect("fang", &s, own_of);
    expect("fang_krum", &s, own_of);
    expect("dissensus", &s, own_of);
    drop_scene(&s);
    s = make_scene(KNOWN, LENGTH, 1, 0.2, 1.5, 1);
    s.view.receiver_model = NULL;
    expect("dissensus", &s, own_of);
    drop_scene(&s);
}

/* With epsilon = 1 an average with equal weights leaves the receiver where it is. */
static void dissensus_stops_the_average(void **state)
{
    (void)state;
    scene s = make_scene(KNOWN, LENGTH, 1, 0.2, 1.5, 1);
    reef_attack *attack = make_attack("dissensus");
    assert_int_equal(reef_attack_common_of(attack)->knowledge, REEF_KNOW_NEIGHBOURS);
    (void)send_message(attack, &s);
    for (ptrdiff_t m = 0; m < LENGTH; m++) {
        double sum = KNOWN * mean_of(&s, m) + 3 * (double)s.out[m];
        CHECK_CLOSE(sum / 12, (double)s.view.receiver_model[m], 1e-5, "average");
    }
    reef_attack_destroy(&attack);
    drop_scene(&s);
}

/* ---- ALIE ---- */

static double normal_cdf(double z)
{
    return 0.5 * erfc(-z / sqrt(2));
}

/* n = 50 with f = 24 needs s = 26 - 24 = 2 supporters: Phi(z) = 24/26 of the honest, or 48/50 of all, z = 1.75. */
static void alie_factor(void **state)
{
    (void)state;
    CHECK_CLOSE(normal_cdf(rfi_alie_z(26, 24, false)), 24.0 / 26, 1e-12, "honest");
    CHECK_CLOSE(rfi_alie_z(26, 24, false), 1.426, 1e-3, "honest");
    CHECK_CLOSE(rfi_alie_z(26, 24, true), 1.7507, 1e-4, "all");
    CHECK_CLOSE(normal_cdf(rfi_alie_z(39, 12, false)), 25.0 / 39, 1e-12, "n = 51, f = 12: s = 14");
    for (ptrdiff_t h = 0; h < 40; h++) {
        for (ptrdiff_t f = 0; f < 60; f++) {
            assert_true(isfinite(rfi_alie_z(h, f, false)) && isfinite(rfi_alie_z(h, f, true)));
        }
    }
    scene s = make_scene(26, LENGTH, 1, 0.2, 1.5, 1);
    s.view.malicious_count = 24;
    reef_attack *attack = make_attack("alie");
    (void)send_message(attack, &s);
    for (ptrdiff_t m = 0; m < LENGTH; m++) {
        CHECK_CLOSE((double)s.out[m], mean_of(&s, m) + rfi_alie_z(26, 24, false) * deviation_of(&s, m), 1e-5, "alie");
    }
    reef_attack_destroy(&attack);
    drop_scene(&s);
}

/* ---- min_max ---- */

typedef struct spans {
    double pair_max, pair_sum; /* largest distance of a pair; largest sum of squared distances of a row */
    double out_max, out_sum;   /* the same from the message */
} spans;

static double distance2(const float *a, const float *b, ptrdiff_t length)
{
    double sum = 0;
    for (ptrdiff_t m = 0; m < length; m++) {
        sum += pow((double)a[m] - (double)b[m], 2);
    }
    return sum;
}

static spans measure(const scene *s)
{
    spans found = {0, 0, 0, 0};
    ptrdiff_t length = s->view.length;
    for (ptrdiff_t l = 0; l < s->view.known; l++) {
        double sum = 0;
        double out = distance2(s->out, s->view.rows[l], length);
        for (ptrdiff_t k = 0; k < s->view.known; k++) {
            double d = distance2(s->view.rows[l], s->view.rows[k], length);
            sum += d;
            found.pair_max = fmax(found.pair_max, sqrt(d));
        }
        found.pair_sum = fmax(found.pair_sum, sum);
        found.out_max = fmax(found.out_max, sqrt(out));
        found.out_sum += out;
    }
    return found;
}

/* The message lies from the mean in that direction: cosine 1. */
static void check_direction(const scene *s, const char *spec)
{
    double dot = 0;
    double norm_a = 0;
    double norm_b = 0;
    for (ptrdiff_t m = 0; m < s->view.length; m++) {
        double drift = mean_of(s, m) - previous_of(s, m);
        double d = strstr(spec, "=unit") ? -drift : strstr(spec, "=sign") ? (drift > 0 ? -1 : 1) : -deviation_of(s, m);
        double moved = (double)s->out[m] - mean_of(s, m);
        dot += d * moved;
        norm_a += d * d;
        norm_b += moved * moved;
    }
    CHECK_CLOSE(dot / sqrt(norm_a * norm_b), 1, 1e-6, spec);
}

static void min_max_is_tight(void **state)
{
    static const char *const directions[] = {"direction=std", "direction=unit", "direction=sign"};
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        const char *direction = directions[seed % 3];
        char spec[100];
        scene s = make_scene(2 + (ptrdiff_t)seed % 9, 1 + 13 * (ptrdiff_t)(seed % 7), 1, 0.5, 1, seed);
        (void)snprintf(spec, sizeof spec, "min_max:%s", direction);
        reef_attack *attack = make_attack(spec);
        (void)send_message(attack, &s);
        spans found = measure(&s);
        CHECK_CLOSE(found.out_max, found.pair_max, 1e-5 * found.pair_max, spec);
        check_direction(&s, spec);
        reef_attack_destroy(&attack);
        (void)snprintf(spec, sizeof spec, "min_max:limit=sum,%s", direction);
        attack = make_attack(spec);
        (void)send_message(attack, &s);
        found = measure(&s);
        CHECK_CLOSE(found.out_sum, found.pair_sum, 1e-5 * found.pair_sum, spec);
        check_direction(&s, spec);
        reef_attack_destroy(&attack);
        (void)snprintf(spec, sizeof spec, "min_max:pairs=mean,%s", direction);
        attack = make_attack(spec);
        (void)send_message(attack, &s);
        found = measure(&s);
        CHECK(found.out_max <= found.pair_max * (1 + 1e-5), "%s: %g > %g", spec, found.out_max, found.pair_max);
        CHECK_CLOSE(found.out_max, sqrt(found.pair_sum / (double)(s.view.known - 1)), 1e-5 * found.pair_max, spec);
        reef_attack_destroy(&attack);
        drop_scene(&s);
    }
}

/* ---- fang ---- */

static void fang_stays_in_its_range(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        scene s = make_scene(KNOWN, LENGTH, 1, seed % 2 ? 3 : -0.3, 1, seed);
        bool sigma = seed >= 4;
        reef_attack *attack = make_attack(sigma ? "fang:range=sigma" : "fang:b=3");
        double part = 0;
        (void)send_message(attack, &s);
        for (ptrdiff_t m = 0; m < LENGTH; m++) {
            double low = x_of(&s, 0, m);
            double high = low;
            bool up = mean_of(&s, m) > previous_of(&s, m);
            for (ptrdiff_t l = 1; l < KNOWN; l++) {
                low = fmin(low, x_of(&s, l, m));
                high = fmax(high, x_of(&s, l, m));
            }
            double near = up ? low : high;
            double far = up ? (low > 0 ? low / 3 : low * 3) : (high > 0 ? high * 3 : high / 3);
            if (sigma) {
                near = mean_of(&s, m) + (up ? -3 : 3) * deviation_of(&s, m);
                far = mean_of(&s, m) + (up ? -4 : 4) * deviation_of(&s, m);
            }
            double u = ((double)s.out[m] - near) / (far - near);
            CHECK(u > -1e-4 && u < 1 + 1e-4, "coordinate %td: %g of the way from %g to %g", m, u, near, far);
            part += u / LENGTH;
        }
        CHECK_CLOSE(part, 0.5, 5 * 0.2887 / sqrt(LENGTH), "mean of the uniform draws");
        reef_attack_destroy(&attack);
        drop_scene(&s);
    }
}

/* Krum chooses the liars' row; a little farther it would not. */
static void fang_krum_is_chosen(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++) {
        ptrdiff_t length = 20;
        float result[20];
        scene s = make_scene(12, length, 1, 1, 1, seed);
        const float *rows[15];
        for (ptrdiff_t m = 0; m < length; m++) { /* where a model was before a small step */
            s.data[length + m] = (float)(mean_of(&s, m) - 0.1 * ((double)(m % 3) - 1.5));
        }
        s.view.aggregate = aggregate_krum;
        s.view.user = &length;
        reef_attack *attack = make_attack("fang_krum:evaluations=40");
        (void)send_message(attack, &s);
        memcpy(rows, s.view.rows, 12 * sizeof *rows);
        for (int l = 12; l < 15; l++) {
            rows[l] = s.out;
        }
        (void)aggregate_krum(&length, rows, 15, result);
        assert_memory_equal(result, s.out, sizeof result);
        double lambda = fabs((double)s.out[0] - previous_of(&s, 0));
        for (ptrdiff_t m = 0; m < length; m++) {
            double sign = mean_of(&s, m) > previous_of(&s, m) ? 1 : -1;
            CHECK_CLOSE((double)s.out[m], previous_of(&s, m) - sign * lambda, 1e-5, "fang_krum");
            s.out[m] = (float)(previous_of(&s, m) - sign * lambda * 1.02);
        }
        (void)aggregate_krum(&length, rows, 15, result);
        assert_memory_not_equal(result, s.out, sizeof result);
        reef_attack_destroy(&attack);
        drop_scene(&s);
    }
}

/* ---- line search ---- */

/* How far the rule is moved from the honest mean by copies of a message. */
static double harm(const scene *s, const float *message)
{
    float result[64];
    const float *rows[64];
    double sum = 0;
    for (ptrdiff_t l = 0; l < s->view.known + s->view.malicious_count; l++) {
        rows[l] = l < s->view.known ? s->view.rows[l] : message;
    }
    (void)s->view.aggregate(s->view.user, rows, s->view.known + s->view.malicious_count, result);
    for (ptrdiff_t m = 0; m < s->view.length; m++) {
        sum += pow((double)result[m] - mean_of(s, m), 2);
    }
    return sum;
}

static double harm_of(scene *s, const char *spec)
{
    reef_attack *attack = make_attack(spec);
    (void)send_message(attack, s);
    reef_attack_destroy(&attack);
    return harm(s, s->out);
}

static void line_search_wins(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        ptrdiff_t length = 40;
        scene s = make_scene(11, length, 1, 0.3, 1, seed);
        s.view.aggregate = seed % 3 == 0 ? aggregate_mean : seed % 3 == 1 ? aggregate_median : aggregate_krum;
        s.view.user = &length;
        double alie = harm_of(&s, "alie");
        double ipm = harm_of(&s, "ipm");
        CHECK(harm_of(&s, "line_search") >= alie * (1 - 1e-5), "alie, seed %d", (int)seed);
        CHECK(harm_of(&s, "line_search:direction=ipm") >= ipm * (1 - 1e-5), "ipm, seed %d", (int)seed);
        CHECK(harm_of(&s, "line_search:evaluations=1") >= alie * (1 - 1e-5), "one, seed %d", (int)seed);
        /* against all factors of a fine grid: what a search of 100 evaluations finds is nearly the best */
        double best = 0;
        for (double t = 0.05; t < 30; t *= 1.02) {
            float message[40];
            for (ptrdiff_t m = 0; m < length; m++) {
                message[m] = (float)(mean_of(&s, m) + t * deviation_of(&s, m));
            }
            best = fmax(best, harm(&s, message));
        }
        double found = harm_of(&s, "line_search:evaluations=100");
        CHECK(found >= 0.9 * best, "seed %d: %g of %g", (int)seed, found, best);
        drop_scene(&s);
    }
}

static void line_search_without_a_rule(void **state)
{
    (void)state;
    scene s = make_scene(11, 40, 1, 0.3, 1, 3);
    scene t = make_scene(11, 40, 1, 0.3, 1, 3);
    for (int k = 0; k < 4; k++) {
        reef_attack *search = make_attack(k < 2 ? "line_search" : "line_search:direction=ipm");
        reef_attack *plain = make_attack(k < 2 ? "alie" : "ipm");
        s.view.aggregate = k % 2 ? aggregate_nothing : NULL;
        (void)send_message(search, &s);
        (void)send_message(plain, &t);
        for (ptrdiff_t m = 0; m < 40; m++) {
            CHECK_CLOSE((double)s.out[m], (double)t.out[m], 1e-5, "fallback");
        }
        reef_attack_destroy(&search);
        reef_attack_destroy(&plain);
    }
    drop_scene(&s);
    drop_scene(&t);
}

/* Counts how often and with how many rows the rule is tried. */
typedef struct counting {
    int64_t calls;
    ptrdiff_t rows;
    ptrdiff_t length;
} counting;

static bool aggregate_counting(void *user, const float *const *rows, ptrdiff_t count, float *out)
{
    counting *c = user;
    c->calls++;
    c->rows = count;
    return aggregate_mean(&c->length, rows, count, out);
}

static void evaluations_are_bounded(void **state)
{
    static const struct {
        ptrdiff_t honest, malicious_count, rows; /* 11 rows are known */
    } cases[] = {{11, 3, 14}, {22, 6, 14}, {11, 0, 12}, {11, 1000, 23}, {0, 3, 22}};
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        for (int k = 0; k < 2; k++) {
            counting c = {0, 0, 40};
            scene s = make_scene(11, 40, 1, 0.3, 1, 3);
            s.view.honest = cases[i].honest;
            s.view.malicious_count = cases[i].malicious_count;
            s.view.aggregate = aggregate_counting;
            s.view.user = &c;
            reef_attack *attack = make_attack(k ? "fang_krum:evaluations=13" : "line_search:evaluations=13");
            (void)send_message(attack, &s);
            CHECK(c.calls > 0 && c.calls <= 13, "%d calls", (int)c.calls);
            assert_int_equal(c.rows, cases[i].rows);
            reef_attack_destroy(&attack);
            drop_scene(&s);
        }
    }
}

/* ---- random ones ---- */

/* Mean and standard deviation of out - base over all coordinates. */
static void check_noise(const scene *s, const float *base, double mean, double deviation, const char *what)
{
    double sum = 0;
    double squares = 0;
    double n = (double)s->view.length;
    for (ptrdiff_t m = 0; m < s->view.length; m++) {
        double d = (double)s->out[m] - (base ? (double)base[m] : 0);
        sum += d;
        squares += d * d;
    }
    CHECK_CLOSE(sum / n, mean, 5 * deviation / sqrt(n), what);
    CHECK_CLOSE(sqrt(squares / n), deviation, 5 * deviation / sqrt(n), what);
}

static void noise_has_its_size(void **state)
{
    static const struct {
        const char *spec;
        double deviation;
        bool around_own;
    } cases[] = {
        {"gaussian:sigma=30", 30, true},
        {"random", 200, false},
        {"random:scale=3,distribution=uniform", 1.7320508, false},
        {"additive:delta=5,direction=gaussian", 5, true},
    };
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        scene s = make_scene(0, 20000, 1, 0, 1, 3);
        float *before = s.data + 20000;
        reef_attack *attack = make_attack(cases[i].spec);
        (void)send_message(attack, &s);
        check_noise(&s, cases[i].around_own ? s.view.own : NULL, 0, cases[i].deviation, cases[i].spec);
        bool stays = strstr(cases[i].spec, "additive") != NULL; /* the direction is for ever and for all */
        for (int k = 0; k < 4; k++) {
            memcpy(before, s.out, 20000 * sizeof(float));
            s.view.round += k == 0 ? 1 : k == 1 ? INT64_C(1) << 32 : 0;
            s.view.sender += k == 2;
            s.view.seed += k == 3;
            (void)send_message(attack, &s);
            bool same = memcmp(before, s.out, 20000 * sizeof(float)) == 0;
            CHECK(same == (stays && k < 3), "%s, change %d", cases[i].spec, k);
        }
        reef_attack_destroy(&attack);
        drop_scene(&s);
    }
}

/* alie with noise of each liar's own: half a standard deviation around the same place, and no two send the same. */
static void jitter_is_each_malicious_own(void **state)
{
    enum { LONG = 20000 };
    scene s = make_scene(KNOWN, LONG, 1, 0.2, 1.5, 1);
    reef_attack *attack = make_attack("alie:z=1.5,jitter=0.5");
    float *first = calloc(LONG, sizeof *first);
    double squares = 0;
    (void)state;
    assert_non_null(first);
    assert_true(send_message(attack, &s));
    for (ptrdiff_t m = 0; m < LONG; m++) {
        first[m] = s.out[m];
        squares += pow(((double)s.out[m] - alie_15(&s, m)) / deviation_of(&s, m), 2);
    }
    CHECK_CLOSE(sqrt(squares / LONG), 0.5, 5 * 0.5 / sqrt(2.0 * LONG), "jitter");
    assert_false(reef_attack_traits(attack) & REEF_ATTACK_SAME);
    s.view.sender++;
    assert_true(send_message(attack, &s));
    assert_int_not_equal(memcmp(first, s.out, LONG * sizeof *first), 0);
    free(first);
    reef_attack_destroy(&attack);
    drop_scene(&s);
}

static void coordinates_are_few(void **state)
{
    (void)state;
    for (int moving = 0; moving < 2; moving++) {
        reef_attack *attack =
            make_attack(moving ? "few_coordinates:count=5,delta=7,moving=true" : "few_coordinates:count=5,delta=7");
        int hits[50] = {0};
        for (int64_t t = 0; t < 400; t++) {
            scene s = make_scene(0, 50, 1, 0, 1, 3);
            int changed = 0;
            s.view.round = t;
            s.view.sender = t % 7;
            (void)send_message(attack, &s);
            for (ptrdiff_t m = 0; m < 50; m++) {
                bool same = s.out[m] == s.view.own[m];
                CHECK_CLOSE((double)s.out[m], own_of(&s, m) + (same ? 0 : 7), 1e-5, "few_coordinates");
                changed += !same;
                hits[m] += !same;
            }
            assert_int_equal(changed, 5);
            drop_scene(&s);
        }
        for (ptrdiff_t m = 0; m < 50; m++) { /* moving: binomial of 400 and 1/10, 40 +- 6 */
            CHECK(moving ? hits[m] > 10 && hits[m] < 70 : hits[m] == 0 || hits[m] == 400, "%d hits", hits[m]);
        }
        reef_attack_destroy(&attack);
    }
}

static void not_numbers(void **state)
{
    (void)state;
    scene s = make_scene(2, 9, 1, 0, 1, 3);
    static const char *const specs[] = {
        "nan", "nan:value=inf", "nan:value=-inf", "nan:value=mixed", "nan:value=huge", "nan:value=nan,where=one"};
    for (int k = 0; k < COUNT(specs); k++) {
        reef_attack *attack = make_attack(specs[k]);
        int changed = 0;
        assert_true(send_message(attack, &s));
        for (ptrdiff_t m = 0; m < 9; m++) {
            float x = s.out[m];
            int kind = k == 3 ? (int)(m % 3) : k;
            changed += !(x == s.view.own[m]);
            CHECK(k == 5 || (kind == 0 && isnan(x)) || (kind == 1 && x > 0 && isinf(x)) ||
                      (kind == 2 && x < 0 && isinf(x)) || (kind == 4 && x == FLT_MAX),
                  "%s: %g", specs[k], (double)x);
            CHECK(k != 5 || isnan(x) || x == s.view.own[m], "%s: %g", specs[k], (double)x);
        }
        assert_int_equal(changed, k == 5 ? 1 : 9);
        reef_attack_destroy(&attack);
    }
    drop_scene(&s);
}

/* A coin per receiver, the same in every round, about half of them heads. */
static void faces_are_two(void **state)
{
    (void)state;
    reef_attack *attack = make_attack("two_faced:delta=9,split=random");
    int plus = 0;
    for (ptrdiff_t k = 0; k < 400; k++) {
        scene s = make_scene(0, 3, 1, 0, 1, 3);
        s.view.receiver = k;
        (void)send_message(attack, &s);
        double side = (double)s.out[0] - own_of(&s, 0);
        CHECK_CLOSE(fabs(side), 9, 1e-5, "two_faced");
        plus += side > 0;
        s.view.round += 3;
        s.view.sender++;
        (void)send_message(attack, &s);
        CHECK_CLOSE((double)s.out[2] - own_of(&s, 2), side, 1e-5, "the same face in every round");
        drop_scene(&s);
    }
    CHECK(plus > 140 && plus < 260, "%d of 400", plus);
    reef_attack_destroy(&attack);
}

static void silent_and_late(void **state)
{
    (void)state;
    scene s = make_scene(2, 5, 1, 0, 1, 3);
    reef_attack *silent = make_attack("silent");
    reef_attack *late = make_attack("late:delay=3");
    reef_attack *flip = make_attack("label_flip");
    assert_false(send_message(silent, &s));
    assert_int_equal(reef_attack_delay(silent), 0);
    assert_int_equal(reef_attack_delay(late), 3);
    assert_null(reef_attack_kind_of(flip)->message);
    assert_true(reef_attack_traits(flip) & REEF_ATTACK_LABELS);
    reef_attack_destroy(&silent);
    reef_attack_destroy(&late);
    reef_attack_destroy(&flip);
    drop_scene(&s);
}

/* As far off as its trust allows; and who stays away says nothing. */
static void trust_decides(void **state)
{
    (void)state;
    scene s = make_scene(KNOWN, LENGTH, 1, 0.2, 1.5, 1);
    s.view.trust = 1;
    expect("adaptive:z=1.5,jitter=0", &s, alie_minus_15);
    s.view.trust = 7;
    expect("adaptive:z=1.5,jitter=0", &s, alie_minus_15);
    s.view.trust = 0.6;
    expect("adaptive:z=1.25,least=0.333333333333,jitter=0", &s, alie_minus_half);
    s.view.trust = 0.5;
    expect("adaptive:z=1.5,jitter=0", &s, mean_of);
    s.view.trust = 0;
    expect("adaptive:z=1.5,jitter=0", &s, mean_of);
    s.view.trust = 1;
    s.view.round = 5;
    expect("adaptive:z=1.5,period=5,jitter=0", &s, alie_15);
    reef_attack *visits = make_attack("whitewash:z=1.5,jitter=0,away=5,identity=2,ids=same");
    for (s.view.round = 0; s.view.round < 14; s.view.round++) {
        assert_true(send_message(visits, &s) == (s.view.round % 7 >= 5));
        assert_int_equal(reef_attack_identity(visits, 3, 32, s.view.round), 3);
    }
    reef_attack_destroy(&visits);
    s.view.round = 5;
    expect("whitewash:z=1.5,jitter=0,away=5,identity=2", &s, alie_minus_15);
    expect("whitewash:z=1.5,jitter=0,period=5", &s, alie_15);
    drop_scene(&s);
}

/* Some malicious agents go less far, always the same ones: as many as one asks for. */
static void some_are_weak(void **state)
{
    (void)state;
    scene s = make_scene(KNOWN, LENGTH, 1, 0.2, 1.5, 1);
    expect("alie:z=1.5,weak=0", &s, alie_15);
    expect("alie:z=3.75,weak=1", &s, alie_15);
    s.view.round = 20;
    expect("alie:z=1.5,strike=20", &s, alie_15);
    s.view.round = 19;
    expect("alie:z=1.5,strike=20", &s, mean_of);
    s.view.round = 40;
    expect("alie:z=1.5,strike=20", &s, alie_15);
    reef_attack *attack = make_attack("alie:z=1.5,weak=0.5");
    assert_false(reef_attack_traits(attack) & REEF_ATTACK_SAME);
    int weak = 0;
    for (s.view.sender = 0; s.view.sender < 400; s.view.sender++) {
        float first[LENGTH];
        s.view.round = 0;
        assert_true(send_message(attack, &s));
        memcpy(first, s.out, sizeof first);
        weak += fabs((double)first[0] - alie_15(&s, 0)) > 1e-3;
        s.view.round = 3;
        assert_true(send_message(attack, &s));
        assert_memory_equal(s.out, first, sizeof first);
    }
    CHECK(weak > 140 && weak < 260, "%d of 400", weak);
    reef_attack_destroy(&attack);
    drop_scene(&s);
}

/* Noise around the row that is copied, another one for every sender. */
static void copies_have_jitter(void **state)
{
    enum { LONG = 4000 };
    double squares[2] = {0, 0};
    float first[LONG];
    (void)state;
    scene s = make_scene(9, LONG, 1, 0, 1, 5);
    reef_attack *attack = make_attack("mimic:jitter=0.5");
    assert_false(reef_attack_traits(attack) & REEF_ATTACK_SAME);
    for (int i = 0; i < 2; i++) {
        s.view.sender = 3 + i;
        assert_true(send_message(attack, &s));
        for (ptrdiff_t m = 0; m < LONG; m++) {
            double from = i ? (double)first[m] : x_of(&s, 0, m);
            squares[i] += pow(((double)s.out[m] - from) / deviation_of(&s, m), 2) / LONG;
            first[m] = s.out[m];
        }
    }
    CHECK(fabs(squares[0] - 0.25) < 0.03 && fabs(squares[1] - 0.5) < 0.06, "jitter: %g, %g", squares[0], squares[1]);
    reef_attack_destroy(&attack);
    drop_scene(&s);
}

/* Two senders of one round: the noise they share has its size, and what each adds has its own. */
static void noise_is_shared(void **state)
{
    enum { LONG = 4000 };
    (void)state;
    scene s = make_scene(9, LONG, 1, 0, 1, 5);
    scene t = make_scene(9, LONG, 1, 0, 1, 5);
    reef_attack *attack = make_attack("shared_noise:z=2,jitter=0.5");
    s.view.sender = 3;
    t.view.sender = 8;
    assert_true(send_message(attack, &s) && send_message(attack, &t));
    double products = 0;
    double squares = 0;
    for (ptrdiff_t m = 0; m < LONG; m++) {
        double one = ((double)s.out[m] - mean_of(&s, m)) / deviation_of(&s, m);
        double other = ((double)t.out[m] - mean_of(&t, m)) / deviation_of(&t, m);
        products += one * other / LONG;
        squares += one * one / LONG;
    }
    CHECK(fabs(products - 4) < 0.4, "shared: %g", products);
    CHECK(fabs(squares - 4.25) < 0.4, "in all: %g", squares);
    t.view.round++;
    assert_true(send_message(attack, &t));
    double later = 0;
    for (ptrdiff_t m = 0; m < LONG; m++) {
        later += ((double)s.out[m] - mean_of(&s, m)) * ((double)t.out[m] - mean_of(&t, m)) / LONG;
    }
    CHECK(fabs(later) < 0.4, "shared with another round: %g", later);
    reef_attack_destroy(&attack);
    drop_scene(&s);
    drop_scene(&t);
}

static void ids_change(void **state)
{
    (void)state;
    reef_attack *constant = make_attack("alie");
    reef_attack *changing = make_attack("whitewash:identity=4");
    reef_attack *honest = make_attack("come_and_go");
    reef_attack *turns = make_attack("shared_noise:ids=3");
    int heard[3] = {0, 0, 0};
    assert_int_equal(reef_attack_identity(NULL, 7, 32, 100), 7);
    assert_int_equal(reef_attack_identity(constant, 7, 32, 100), 7);
    assert_true(reef_attack_identity(changing, 7, 32, 0) == reef_attack_identity(changing, 7, 32, 3));
    assert_true(reef_attack_identity(changing, 7, 32, 3) != reef_attack_identity(changing, 7, 32, 4));
    assert_true(reef_attack_identity(changing, 7, 32, 0) >= 32); /* no honest agent has it */
    assert_true(reef_attack_identity(changing, 7, 32, 0) != reef_attack_identity(changing, 8, 32, 0));
    assert_true(reef_attack_identity(honest, 7, 32, 0) != reef_attack_identity(honest, 7, 32, 1));
    assert_true(reef_attack_identity(honest, 7, INT32_MAX, INT64_MAX) >= 0);
    for (int64_t round = 0; round < 300; round++) {
        int64_t id = reef_attack_identity(turns, 7, 32, round);
        assert_true(id % 32 == 7 && id / 32 >= 0 && id / 32 < 3);
        heard[id / 32]++;
    }
    assert_true(heard[0] > 70 && heard[1] > 70 && heard[2] > 70);
    reef_attack_destroy(&constant);
    reef_attack_destroy(&changing);
    reef_attack_destroy(&honest);
    reef_attack_destroy(&turns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formulas),
        cmocka_unit_test(nothing_known),
        cmocka_unit_test(dissensus_stops_the_average),
        cmocka_unit_test(alie_factor),
        cmocka_unit_test(min_max_is_tight),
        cmocka_unit_test(fang_stays_in_its_range),
        cmocka_unit_test(fang_krum_is_chosen),
        cmocka_unit_test(line_search_wins),
        cmocka_unit_test(line_search_without_a_rule),
        cmocka_unit_test(evaluations_are_bounded),
        cmocka_unit_test(noise_has_its_size),
        cmocka_unit_test(jitter_is_each_malicious_own),
        cmocka_unit_test(coordinates_are_few),
        cmocka_unit_test(not_numbers),
        cmocka_unit_test(faces_are_two),
        cmocka_unit_test(silent_and_late),
        cmocka_unit_test(copies_have_jitter),
        cmocka_unit_test(trust_decides),
        cmocka_unit_test(some_are_weak),
        cmocka_unit_test(noise_is_shared),
        cmocka_unit_test(ids_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
