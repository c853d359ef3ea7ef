/* The library for other languages: handles, numbers, pointers to numbers and texts; no struct crosses the border.
 *
 * Most of the public interface is flat already and is used as it is (reef_agg_destroy, reef_report_trust, reef_run_model, ...). Here
 * is the rest: calls that take structs elsewhere, and the field tables. The Python package is built on it.
 *
 * Errors: a call that can fail returns a reef_status and writes its sentence, cut to `room` bytes with the end, to `text`; text may be
 * NULL. Handles are made in *place, which should hold NULL before and does so after a failure; the destroy call of their kind ends them.
 */
#ifndef REEF_FLAT_H
#define REEF_FLAT_H

#include <reef/agg.h>
#include <reef/experiment.h>
#include <reef/learn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what there is ---- */

/* Families: "rule", "attack", "graph", "weights", "links", "problem", "strategy". Returns how many kinds, -1: no such family. */
REEF_API ptrdiff_t reef_flat_kinds(const char *family);
/* part: "name", "summary" or "citation"; NULL if anything is out of range or unknown. */
REEF_API const char *reef_flat_kind(const char *family, ptrdiff_t kind, const char *part);
/* reef_trait bits of a rule for its presets, REEF_ATTACK_ or REEF_PROBLEM_ bits; 0 for the others. */
REEF_API unsigned reef_flat_traits(const char *family, ptrdiff_t kind);
/* 1: a rule that only stands before others (pre-aggregator). */
REEF_API int reef_flat_is_mixer(ptrdiff_t rule);
/* Fields of a kind, those that every kind of the family takes at the end; -1: no such kind. */
REEF_API ptrdiff_t reef_flat_fields(const char *family, ptrdiff_t kind);
/* part: "name", "preset", "unit" or "help". */
REEF_API const char *reef_flat_field(const char *family, ptrdiff_t kind, ptrdiff_t field, const char *part);
/* reef_field_type, -1: no such field. */
REEF_API int reef_flat_field_type(const char *family, ptrdiff_t kind, ptrdiff_t field);
/* Smallest (high 0) and largest (high 1) value; both 0: no limit. */
REEF_API double reef_flat_field_limit(const char *family, ptrdiff_t kind, ptrdiff_t field, int high);
/* Word number `word` that the field takes, NULL behind the last. */
REEF_API const char *reef_flat_field_word(const char *family, ptrdiff_t kind, ptrdiff_t field, ptrdiff_t word);

/* ---- aggregation ---- */

REEF_API reef_status reef_flat_context(reef_context **place, ptrdiff_t threads, char *text, size_t room);
REEF_API reef_status reef_flat_agg(reef_context *context, reef_agg **place, const char *spec, char *text, size_t room);
REEF_API reef_status reef_flat_report(reef_context *context, reef_report **place, ptrdiff_t rows, char *text,
                                      size_t room);

/* Types of numbers. The 16-bit ones are widened to float32 block by block, and the result is rounded to them. */
enum { REEF_FLAT_F32, REEF_FLAT_F64, REEF_FLAT_F16, REEF_FLAT_BF16 };

/* A state for aggregations of this shape; of 16-bit numbers it holds float32. */
REEF_API reef_status reef_flat_state(const reef_agg *agg, reef_state **place, ptrdiff_t rows, ptrdiff_t segments,
                                     const ptrdiff_t *lengths, int type, char *text, size_t room);
REEF_API reef_status reef_flat_set_centre(reef_state *state, ptrdiff_t segment, const void *centre, char *text,
                                          size_t room);
/* One aggregation of models of `segments` tensors: data[s * rows + l] is tensor s of row l, lengths[s] numbers of any alignment;
 * out[s] receives the result. weights, state and report may be NULL; self is the receiver's own row, -1: none. */
REEF_API reef_status reef_flat_apply(const reef_agg *agg, ptrdiff_t rows, ptrdiff_t segments, const ptrdiff_t *lengths,
                                     int type, const void *const *data, void *const *out, const double *weights,
                                     ptrdiff_t self, int64_t round, reef_state *state, reef_report *report, char *text,
                                     size_t room);

/* ---- learning with gradients of the caller's ---- */

/* Gradients of `count` agents in one call: models and gradients are count x M numbers, row after row. flipped: count flags of agents
 * that should learn from wrong labels, or NULL. size: samples per gradient. Called by one thread at a time, while reef_flat_run_step
 * is under way; it cannot fail. */
typedef void (*reef_flat_gradients)(void *user, ptrdiff_t count, const int32_t *agents, const float *models,
                                    float *gradients, const unsigned char *flipped, int64_t round, int64_t step,
                                    int64_t size);
/* A problem for one run at a time. start: M numbers, NULL: 0. samples: of each agent, NULL: no end of them. Both are copied. */
REEF_API reef_status reef_flat_problem(reef_context *context, reef_problem **place, ptrdiff_t agents,
                                       ptrdiff_t dimension, const float *start, const int64_t *samples,
                                       reef_flat_gradients gradients, void *user, char *text, size_t room);
/* weights: spec, NULL: uniform. */
REEF_API reef_status reef_flat_graph(reef_context *context, reef_graph **place, const char *spec, const char *weights,
                                     ptrdiff_t agents, uint64_t seed, char *text, size_t room);
REEF_API reef_status reef_flat_links(reef_context *context, reef_links **place, const char *spec,
                                     const reef_graph *graph, uint64_t seed, char *text, size_t room);
REEF_API reef_status reef_flat_attack(reef_context *context, reef_attack **place, const char *spec, char *text,
                                      size_t room);
/* As reef_run_create: objects must outlive the run, arrays are copied; rule, links, attack, liar (K flags), step_factor may be NULL. */
REEF_API reef_status reef_flat_run(reef_context *context, reef_run **place, const reef_problem *problem,
                                   const char *strategy, const reef_agg *rule, const reef_links *links,
                                   const reef_attack *attack, const unsigned char *liar, const double *step_factor,
                                   uint64_t seed, int trust, char *text, size_t room);
REEF_API reef_status reef_flat_run_step(reef_run *run, int64_t rounds, char *text, size_t room);
/* The members of reef_run_counts in their order: 8 numbers. */
REEF_API void reef_flat_run_counts(const reef_run *run, int64_t *counts);

/* ---- experiments ---- */

REEF_API reef_status reef_flat_experiment(reef_context *context, reef_experiment **place, const char *path,
                                          const char *const *overrides, ptrdiff_t count, char *text, size_t room);
/* After every block of repetitions, from any thread but one at a time. */
typedef void (*reef_flat_progress)(void *user, ptrdiff_t items, ptrdiff_t items_done, ptrdiff_t cells,
                                   ptrdiff_t cells_done, double seconds);
/* stop: when it becomes non-zero the run ends soon; NULL: never. *stopped: not all cells were run. */
REEF_API reef_status reef_flat_experiment_run(const reef_experiment *experiment, const char *folder, int resume,
                                              reef_flat_progress progress, void *user,
                                              const volatile sig_atomic_t *stop, int *stopped, char *text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
