/* The library as other languages call it: handles, numbers, pointers to numbers and texts; no struct crosses the boundary.
 *
 * Most of the public interface is flat already and can be used as it is (reef_agg_destroy, reef_report_trust, reef_run_model, ...). This
 * header has the rest: calls that elsewhere take structs, and the field tables. The Python package is built on it.
 *
 * Errors: a call that can fail returns a reef_status and writes its message, cut to `room` bytes including the terminator, to `text`; text may be
 * NULL. Handles are returned in *place, which should be NULL before the call and is NULL after a failure; the destroy call of their kind ends them.
 */
#ifndef REEF_FFI_H
#define REEF_FFI_H

#include <reef/agg.h>
#include <reef/experiment.h>
#include <reef/learn.h>
#include <reef/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the catalogue ---- */

/* The number of kinds of a family, given by its name (registry.h), in a context (NULL: the library's own); -1: no such family. */
REEF_API ptrdiff_t reef_ffi_kinds(const reef_context *context, const char *family);
/* part: "name", "summary" or "citation"; NULL if anything is out of range or unknown. */
REEF_API const char *reef_ffi_kind(const reef_context *context, const char *family, ptrdiff_t kind, const char *part);
/* reef_trait bits of a rule with default parameters, REEF_ATTACK_ or REEF_PROBLEM_ bits; 0 for other families. */
REEF_API unsigned reef_ffi_traits(const reef_context *context, const char *family, ptrdiff_t kind);
/* 1 if the rule is a pre-aggregator. */
REEF_API int reef_ffi_is_mixer(const reef_context *context, ptrdiff_t rule);
/* The number of fields of a kind; those that every kind of the family takes come last. -1: no such kind. */
REEF_API ptrdiff_t reef_ffi_fields(const reef_context *context, const char *family, ptrdiff_t kind);
/* part: "name", "preset", "unit" or "help". */
REEF_API const char *reef_ffi_field(const reef_context *context, const char *family, ptrdiff_t kind, ptrdiff_t field,
                                    const char *part);
/* reef_field_type, -1: no such field. */
REEF_API int reef_ffi_field_type(const reef_context *context, const char *family, ptrdiff_t kind, ptrdiff_t field);
/* The smallest (high 0) or largest (high 1) value; both 0: no limit, or no such field. */
REEF_API double reef_ffi_field_limit(const reef_context *context, const char *family, ptrdiff_t kind, ptrdiff_t field,
                                     int high);
/* Word number `word` that the field takes; NULL past the end. */
REEF_API const char *reef_ffi_field_word(const reef_context *context, const char *family, ptrdiff_t kind,
                                         ptrdiff_t field, ptrdiff_t word);

/* ---- aggregation ---- */

/* As reef_context_create with malloc, and reef_context_set_threads. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_context(reef_context **place, ptrdiff_t threads, char *text, size_t room);
/* As reef_plugin_load. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_plugin(reef_context *context, const char *path, char *text, size_t room);
/* As reef_agg_create. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_agg(reef_context *context, reef_agg **place, const char *spec, char *text,
                                                  size_t room);
/* As reef_report_create. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_report(reef_context *context, reef_report **place, ptrdiff_t rows,
                                                     char *text, size_t room);

/* Types of numbers. Computation is in float64 if any tensor of a model is, otherwise in float32; the other tensors are widened block by
 * block, and their results are rounded back. */
enum { REEF_FFI_F32, REEF_FFI_F64, REEF_FFI_F16, REEF_FFI_BF16, REEF_FFI_F8_E4M3, REEF_FFI_F8_E5M2 };

/* A state for aggregations of this shape. type: the type of the computation. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_state(const reef_agg *agg, reef_state **place, ptrdiff_t rows,
                                                    ptrdiff_t segments, const ptrdiff_t *lengths, int type, char *text,
                                                    size_t room);
/* As reef_state_set_centre. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_set_centre(reef_state *state, ptrdiff_t segment, const void *centre,
                                                         char *text, size_t room);
/* As reef_state_save; reef_state_size says how many bytes. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_state_save(const reef_state *state, void *bytes, size_t size, char *text,
                                                         size_t room);
/* As reef_state_load. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_state_load(reef_state *state, const void *bytes, size_t size, char *text,
                                                         size_t room);
/* One aggregation of models of `segments` tensors: data[s * rows + l] is tensor s of row l, lengths[s] numbers of types[s] and any
 * alignment; out[s] receives the result. weights, state and report may be NULL; self is the receiver's own row, -1: none. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_apply(const reef_agg *agg, ptrdiff_t rows, ptrdiff_t segments,
                                                    const ptrdiff_t *lengths, const int *types, const void *const *data,
                                                    void *const *out, const double *weights, ptrdiff_t self,
                                                    int64_t round, reef_state *state, reef_report *report, char *text,
                                                    size_t room);
/* Integers and booleans: for each of `count` elements of `width` bytes, out receives the value on which rows with more than half of
 * the weight agree or, if there is none, the value of the row with the highest trust, then the highest weight, then the first. Rows of weight 0
 * have no vote. weights and trust may be NULL: equal. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_vote(ptrdiff_t rows, ptrdiff_t count, ptrdiff_t width,
                                                   const void *const *data, const double *weights, const double *trust,
                                                   void *out, char *text, size_t room);

/* The same for rules that remember senders: ids of the rows (NULL: 0, 1, ...), and the step size of the recursion that the result feeds, 0:
 * unknown. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_apply_senders(const reef_agg *agg, ptrdiff_t rows, ptrdiff_t segments,
                                                            const ptrdiff_t *lengths, const int *types,
                                                            const void *const *data, void *const *out,
                                                            const double *weights, ptrdiff_t self, int64_t round,
                                                            const int64_t *ids, double step, reef_state *state,
                                                            reef_report *report, char *text, size_t room);

/* Many aggregations of one small shape, by one thread at a time: what every call would have to set up is set up once. For rows of `length`
 * float32 or float64 numbers with equal weights, without a report. The rule must outlive it. */
typedef struct reef_ffi_prepared reef_ffi_prepared;
/* type: REEF_FFI_F32 or REEF_FFI_F64. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_prepare(const reef_agg *agg, reef_ffi_prepared **place, ptrdiff_t rows,
                                                      ptrdiff_t length, int type, char *text, size_t room);
/* data: rows x length numbers, row after row. state may be NULL. A failure has no text; call reef_ffi_apply to get one. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_prepared_apply(reef_ffi_prepared *prepared, const void *data, void *out,
                                                             int64_t round, reef_state *state);
/* Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_ffi_prepared_destroy(reef_ffi_prepared **prepared);

/* Inner products of `rows` rows of `length` float32 or float64 numbers around their coordinatewise median, rows x rows, as rules that
 * measure distances use them: |x_i - x_j|^2 = g_ii + g_jj - 2 g_ij, accurate for the honest rows whatever the others send. Rows with NaN
 * or Inf are left out: NaN. g_ii is infinite where a squared distance overflows. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_gram(reef_context *context, ptrdiff_t rows, ptrdiff_t length, int type,
                                                   const void *const *data, double *gram, char *text, size_t room);

/* ---- learning with the caller's gradients ---- */

/* Gradients of `count` agents in one call: models and gradients are count x M numbers, row after row. flipped: count flags of agents
 * that should learn from wrong labels, or NULL. size: samples per gradient. Called by one thread at a time, during
 * reef_ffi_run_step; it cannot fail. */
typedef void (*reef_ffi_gradients)(void *user, ptrdiff_t count, const int32_t *agents, const float *models,
                                   float *gradients, const unsigned char *flipped, int64_t round, int64_t step,
                                   int64_t size);
/* A problem, to be used by one run at a time. start: M numbers, NULL: 0. samples: number per agent, NULL: unlimited. Both are copied. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_problem(reef_context *context, reef_problem **place, ptrdiff_t agents,
                                                      ptrdiff_t dimension, const float *start, const int64_t *samples,
                                                      reef_ffi_gradients gradients, void *user, char *text,
                                                      size_t room);

/* Problems that the caller can name in experiment files. Each of these calls may come from any thread, several at once for one object; a
 * failure is -1 (make) or anything but 0, with a message in text, which ends the run.
 *
 * make: returns a new object (>= 0) for so many agents. parameters: all that the file sets, as key=value,... It writes M to *dimension, and may
 * set the samples of the agents, which are 1 before. */
typedef int64_t (*reef_ffi_make)(void *user, const char *parameters, ptrdiff_t agents, uint64_t seed,
                                 ptrdiff_t *dimension, int64_t *samples, char *text, size_t room);
/* Ends an object. */
typedef void (*reef_ffi_end)(void *user, int64_t object);
/* Writes the model from which all agents start: M numbers. */
typedef int (*reef_ffi_start)(void *user, int64_t object, ptrdiff_t repetition, float *model, char *text, size_t room);
/* As reef_ffi_gradients. */
typedef int (*reef_ffi_ask)(void *user, int64_t object, ptrdiff_t count, const int32_t *agents, const float *models,
                            float *gradients, const unsigned char *flipped, int64_t round, int64_t step, int64_t size,
                            ptrdiff_t repetition, char *text, size_t room);
/* Loss, accuracy and accuracy of the worst class of a model; the latter two are NaN before. */
typedef int (*reef_ffi_score)(void *user, int64_t object, const float *model, double *score, char *text, size_t room);
/* A kind of problem defined by the caller. Immutable, usable from many threads; it must outlive the contexts in which it is registered. */
typedef struct reef_ffi_kind_handle reef_ffi_kind_handle;
/* Makes one; the texts are copied. It takes whatever parameters a file sets. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_problem_kind(reef_ffi_kind_handle **place, const char *name,
                                                           const char *summary, reef_ffi_make make, reef_ffi_end end,
                                                           reef_ffi_start start, reef_ffi_ask ask, reef_ffi_score score,
                                                           void *user, char *text, size_t room);
/* Contexts in which it was registered must be destroyed first. Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_ffi_kind_destroy(reef_ffi_kind_handle **kind);
/* As reef_kind_register. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_register(reef_context *context, const reef_ffi_kind_handle *kind,
                                                       char *text, size_t room);

/* weights: name:key=value,...; NULL: uniform. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_graph(reef_context *context, reef_graph **place, const char *spec,
                                                    const char *weights, ptrdiff_t agents, uint64_t seed, char *text,
                                                    size_t room);
/* As reef_links_create, for one graph. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_links(reef_context *context, reef_links **place, const char *spec,
                                                    const reef_graph *graph, uint64_t seed, char *text, size_t room);
/* As reef_attack_create. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_attack(reef_context *context, reef_attack **place, const char *spec,
                                                     char *text, size_t room);
/* As reef_run_create: objects must outlive the run, arrays are copied; rule, links, attack, malicious (K flags), step_factor may be NULL. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_run(reef_context *context, reef_run **place, const reef_problem *problem,
                                                  const char *strategy, const reef_agg *rule, const reef_links *links,
                                                  const reef_attack *attack, const unsigned char *malicious,
                                                  const double *step_factor, uint64_t seed, int trust, char *text,
                                                  size_t room);
/* As reef_run_step. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_run_step(reef_run *run, int64_t rounds, char *text, size_t room);
/* The members of reef_run_counts, in order: 8 numbers. */
REEF_API void reef_ffi_run_counts(const reef_run *run, int64_t *counts);

/* ---- experiments ---- */

/* As reef_experiment_load. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_experiment(reef_context *context, reef_experiment **place,
                                                         const char *path, const char *const *overrides,
                                                         ptrdiff_t count, char *text, size_t room);
/* Called after every block of repetitions, from any thread but only one at a time. */
typedef void (*reef_ffi_progress)(void *user, ptrdiff_t items, ptrdiff_t items_done, ptrdiff_t cells,
                                  ptrdiff_t cells_done, double seconds);
/* stop: when it becomes non-zero, the run ends soon; NULL: never. *stopped: not all cells were run. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_experiment_run(const reef_experiment *experiment, const char *folder,
                                                             int resume, int force, reef_ffi_progress progress,
                                                             void *user, const volatile sig_atomic_t *stop,
                                                             int *stopped, char *text, size_t room);
/* As reef_experiment_report. */
REEF_API REEF_MUST_CHECK reef_status reef_ffi_experiment_report(const char *folder, char *text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
