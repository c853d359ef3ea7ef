/* Views of attacks on random rows, for the tests of src/attack. */
#ifndef TESTS_SUPPORT_ATTACKS_H
#define TESTS_SUPPORT_ATTACKS_H

#include <reef/attack.h>

/* Specs that between them set every field of every attack, and their number. */
extern const char *const attack_specs[];
extern const ptrdiff_t attack_specs_count;

/* A liar's view with memory of its own: own, previous, receiver_model and the rows known are N(centre, scale^2). */
typedef struct scene {
    reef_attack_view view;
    float *data; /* 3 + known rows */
    const float **rows;
    float *out;
} scene;

/* known rows of M = length / lanes coordinates; honest = known, liars = 3. */
scene make_scene(ptrdiff_t known, ptrdiff_t length, ptrdiff_t lanes, double centre, double scale, uint64_t seed);
/* Lane r of a scene by itself. */
scene take_lane(const scene *from, ptrdiff_t r);
void drop_scene(scene *s);

reef_attack *make_attack(const char *spec);
/* The message into s->out; work is exactly as long as asked for. Returns what message returns. */
bool send_message(const reef_attack *attack, scene *s);

/* The simplest rules, for view->aggregate; user: length as ptrdiff_t. */
bool aggregate_mean(void *user, const float *const *rows, ptrdiff_t count, float *out);
bool aggregate_median(void *user, const float *const *rows, ptrdiff_t count, float *out);
bool aggregate_nothing(void *user, const float *const *rows, ptrdiff_t count, float *out);
/* The row with the least sum of squared distances to its count - f - 2 nearest ones, f = 3: Krum. */
bool aggregate_krum(void *user, const float *const *rows, ptrdiff_t count, float *out);

#endif
