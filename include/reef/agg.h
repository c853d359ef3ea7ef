/* Aggregating rows by a rule, and the report that says how much weight each row had.
 *
 * Shortest use:
 *     reef_agg *agg = NULL;
 *     reef_agg_create(NULL, &agg, "ref:efficiency=0.95", &error);
 *     reef_agg_apply(agg, &(reef_input){.rows = rows}, K, M, REEF_F32, out, report, &error);
 *     reef_agg_destroy(&agg);
 * A rule string is rule[:key=value,...], with pre-aggregators before it: "nnm:f=4 | ref". The last rule also takes
 * nan=drop-row|drop-coordinate|error.
 *
 * For many calls of the same shape without allocation, use reef_plan_create once and reef_plan_apply often.
 * For streams, ranks or threads of your own: begin; for each pass observe every range and solve; combine every range; end.
 */
#ifndef REEF_AGG_H
#define REEF_AGG_H

#include <reef/context.h>
#include <reef/rule.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Types of the numbers in rows and results. */
typedef enum reef_dtype { REEF_F32, REEF_F64 } reef_dtype;

/* An aggregator: immutable after create, usable from many threads. The context must outlive it, and so must rules of your own. */
typedef struct reef_agg reef_agg;
/* Makes an aggregator from a rule string, with the rules, allocator and threads of the context (NULL: the built-in rules, malloc, one thread). */
REEF_API REEF_MUST_CHECK reef_status reef_agg_create(reef_context *context, reef_agg **agg, const char *spec,
                                                     reef_error *error);
/* Plans and states made from the aggregator must be destroyed first. Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_agg_destroy(reef_agg **agg);
/* Writes the rule string with every parameter spelled out, like snprintf; returns the length it needs. */
REEF_API size_t reef_agg_print(const reef_agg *agg, char *text, size_t size);
/* Traits of the whole pipeline for its parameters (reef_trait bits). */
REEF_API unsigned reef_agg_traits(const reef_agg *agg);
/* The rule at the end of the pipeline, with its tables. */
REEF_API const reef_rule *reef_agg_rule(const reef_agg *agg);
/* The largest number of malicious rows among n that every stage tolerates with its own setting of f; -1 if no stage states one. */
REEF_API ptrdiff_t reef_agg_tolerates(const reef_agg *agg, ptrdiff_t n);

/* Memory between aggregations of one receiver (rules with REEF_TRAIT_CENTRE or REEF_TRAIT_SENDERS). It may be used by one
 * aggregation, or one other call, at a time, from any thread. The aggregator it was made for must outlive it. */
typedef struct reef_state reef_state;

/* What one aggregation works on. Everything except rows may be left zero. */
typedef struct reef_input {
    size_t size; /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    /* K pointers to M contiguous numbers, any alignment; ignored by the plan's streaming calls. */
    const void *const *rows;
    /* K weights a_l >= 0, any positive sum; NULL: equal. Rows of weight 0 (or below 1e-100 of the largest) are left out. */
    const double *weights;
    const int64_t *ids; /* K agent ids, NULL: 0..K-1; used in messages and by rules with a memory per sender */
    bool has_self;      /* self is the index of the receiver's own row */
    ptrdiff_t self;     /* with has_self */
    int64_t round;      /* number of this aggregation; rules that draw random numbers draw new ones per round */
    double step;        /* step size of the recursion that the result feeds, 0: unknown; sets the horizon of mref */
    reef_state *state;  /* NULL: start afresh */
} reef_input;

/* --- The report --- */

/* Filled in by one aggregation at a time; may be read from any thread after that. The context must outlive it, and so must a rule of
 * your own whose aggregation it describes. */
typedef struct reef_report reef_report;

/* Why a row was left out as a whole. */
typedef enum reef_reason { REEF_USED, REEF_ZERO_WEIGHT, REEF_NONFINITE } reef_reason;

/* A report for `rows` agents; reusable. */
REEF_API REEF_MUST_CHECK reef_status reef_report_create(reef_context *context, reef_report **report, ptrdiff_t rows,
                                                        reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_report_destroy(reef_report **report);
/* Also keep the effective weights of every coordinate: shares[l * M + m] = abar_l(m), K x M doubles owned by the caller
 * (segments follow each other along m). centre, if not NULL, receives M doubles: the share of the origin or centre. */
REEF_API void reef_report_keep_shares(reef_report *report, double *shares, double *centre);
/* From now on, aggregations also write the trust of every row in every segment to trust[s * rows + l], like reef_report_trust for that
 * segment's coordinates alone; NaN in segments without any. NULL: no longer. The memory belongs to the caller. */
REEF_API void reef_report_keep_segments(reef_report *report, double *trust);

/* Trust of each agent: mean over coordinates of abar_l(m) / a_l. 1 is the fair share, 0 means ignored. */
REEF_API const double *reef_report_trust(const reef_report *report);
/* Share of the coordinates in which each agent was rejected (abar_l(m) = 0). */
REEF_API const double *reef_report_rejected(const reef_report *report);
/* Why a row was left out as a whole; REEF_USED if it was not. */
REEF_API reef_reason reef_report_reason(const reef_report *report, ptrdiff_t row);
/* Rows left out because they hold NaN or Inf. */
REEF_API ptrdiff_t reef_report_dropped(const reef_report *report);
/* Single entries left out because they are NaN or Inf (nan=drop-coordinate). */
REEF_API int64_t reef_report_masked(const reef_report *report);
/* Mean share of the origin (clip, arc) or of the centre (cclip); if there are both, the share of the centre. */
REEF_API double reef_report_centre_share(const reef_report *report);
/* The efficiency for Gaussian data, relative to the mean, to which the rule is tuned for the rows in use; with n=auto it is less than requested
 * if the cap on the tuning constant binds. NaN: the rule has no such tuning, or follows a pre-aggregator. */
REEF_API double reef_report_efficiency(const reef_report *report);
/* The row that holds half of the weight or more, -1 if none does. In rules that use weights, that agent alone decides. */
REEF_API ptrdiff_t reef_report_dominant(const reef_report *report);
/* Iterations per column, block or vector on average; 0 for rules that do not iterate. */
REEF_API double reef_report_mean_iterations(const reef_report *report);
/* The most iterations that any column, block or vector took. */
REEF_API int reef_report_max_iterations(const reef_report *report);
/* Columns, blocks or vectors whose iteration reached its cap before its tolerance. */
REEF_API int64_t reef_report_unconverged(const reef_report *report);

/* Diagnostics: rules that remember senders (mref) test each of them in several ways and report what every test left of its weight. The tests
 * depend on the rule (`reef list mref` shows them); they are numbered from 0 and have names. Before the first
 * aggregation, and for rules without tests, there are none. */
REEF_API ptrdiff_t reef_report_factor_count(const reef_report *report);
/* "gate", "short window", ...; NULL out of range. */
REEF_API const char *reef_report_factor_name(const reef_report *report, ptrdiff_t factor);
/* One line on what factor i stands for; NULL out of range. */
REEF_API const char *reef_report_factor_meaning(const reef_report *report, ptrdiff_t factor);
/* What a test left of an agent's weight, 0 to 1; 1 also out of range, or if the row was left out. */
REEF_API double reef_report_factor(const reef_report *report, ptrdiff_t row, ptrdiff_t factor);
/* The test that lowered an agent's weight most; -1 if none did. */
REEF_API ptrdiff_t reef_report_cause(const reef_report *report, ptrdiff_t row);
/* Writes why an agent was down-weighted, for instance "long window leaves 0.12", like snprintf; "" if it was not. */
REEF_API size_t reef_report_explain(const reef_report *report, ptrdiff_t row, char *text, size_t size);
/* Numbers that the rule reports about the round as a whole, for instance the lengths of its windows: how many there are. */
REEF_API ptrdiff_t reef_report_number_count(const reef_report *report);
/* The name of number i; NULL out of range. */
REEF_API const char *reef_report_number_name(const reef_report *report, ptrdiff_t number);
/* One line on what number i stands for; NULL out of range. */
REEF_API const char *reef_report_number_meaning(const reef_report *report, ptrdiff_t number);
/* The value of number i; NaN out of range. */
REEF_API double reef_report_number(const reef_report *report, ptrdiff_t number);

/* --- One call --- */

/* Aggregates K rows of M numbers into out (M numbers of the same type, not overlapping a row). report may be NULL.
 * An argument error leaves out untouched; after a data error its content is unspecified. */
REEF_API REEF_MUST_CHECK reef_status reef_agg_apply(const reef_agg *agg, const reef_input *input, ptrdiff_t rows,
                                                    ptrdiff_t length, reef_dtype dtype, void *out, reef_report *report,
                                                    reef_error *error);

/* --- Plans --- */

/* May be used by one aggregation at a time, from any thread; the streaming calls observe, combine and scan may come from several threads at once,
 * each with its own worker number. The aggregator must outlive it. */
typedef struct reef_plan reef_plan;

/* A model is one or more segments (tensors, layers): each row is one pointer per segment. */
typedef struct reef_shape {
    size_t size;        /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    ptrdiff_t rows;     /* K, the largest number of rows in one aggregation */
    ptrdiff_t segments; /* >= 1 */
    const ptrdiff_t *lengths; /* coordinates of each segment, >= 1 */
    reef_dtype dtype;         /* of rows and result */
    ptrdiff_t workers; /* threads that will work on one aggregation at the same time; 0: as many as the context has */
} reef_shape;

/* The exact number of bytes that a plan needs, to place it in the caller's memory (aligned for any type; must outlive the plan;
 * no destroy needed). The aggregator must outlive the plan. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_size(const reef_agg *agg, const reef_shape *shape, size_t *bytes,
                                                    reef_error *error);
/* Lays out a plan in `bytes` bytes at `memory`, which stays the caller's. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_init(reef_plan **plan, const reef_agg *agg, const reef_shape *shape,
                                                    void *memory, size_t bytes, reef_error *error);
/* The same in memory allocated by the aggregator's context. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_create(reef_plan **plan, const reef_agg *agg, const reef_shape *shape,
                                                      reef_error *error);
/* Accepts NULL, sets the pointer to NULL; for plans in the caller's memory nothing is released. */
REEF_API void reef_plan_destroy(reef_plan **plan);

/* One aggregation of one segment, or of all segments: rows[s][l] is row l of segment s. Allocates nothing. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_apply(reef_plan *plan, const reef_input *input, void *out,
                                                     reef_report *report, reef_error *error);
/* The same for models of several segments: out[s] receives segment s. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_apply_segments(reef_plan *plan, const reef_input *input,
                                                              const void *const *const *rows, void *const *out,
                                                              reef_report *report, reef_error *error);

/* --- Streaming: bring your own loop and threads ---
 *     begin
 *     repeat { for (pass = 0; pass < passes; pass++) { observe every range; solve }
 *              combine every range, even if some fail with REEF_E_FAR: a row with NaN further on may be to blame
 *              if (!reef_plan_suspect(plan)) break;
 *              scan every range; reef_plan_drop }        (non-finite rows, at most once)
 *     end
 * Ranges [m0, m1) of a segment start at multiples of the grain and end at one or at the segment's end; rows are K
 * pointers to coordinate m0 of that segment. Different workers may handle different ranges at the same time. The
 * result does not depend on the order, the ranges or the number of workers.
 * The grain grows with the model. Callers without room for that many coordinates of all rows may pass a range in pieces: by one worker,
 * in order and without other ranges in between, each piece but the last ending at a multiple of the piece size (a few thousand coordinates, or the
 * rule's block; after a pre-aggregator that looks at the rows, a common multiple of both). */
REEF_API REEF_MUST_CHECK reef_status reef_plan_begin(reef_plan *plan, const reef_input *input, reef_report *report,
                                                     reef_error *error);
/* How often every range must be observed before it can be combined; 0 for elementwise rules. */
REEF_API ptrdiff_t reef_plan_passes(const reef_plan *plan);
/* Ranges start at multiples of this many coordinates. */
REEF_API ptrdiff_t reef_plan_grain(const reef_plan *plan);
/* A range may be passed in pieces that end at multiples of this many coordinates. */
REEF_API ptrdiff_t reef_plan_piece(const reef_plan *plan);
/* Adds a range to the sums of the current pass. worker: 0 to shape.workers - 1, one range at a time each. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_observe(reef_plan *plan, ptrdiff_t worker, ptrdiff_t segment,
                                                       ptrdiff_t m0, ptrdiff_t m1, const void *const *rows,
                                                       reef_error *error);
/* Ends a pass after all ranges have been observed: K x K work. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_solve(reef_plan *plan, reef_error *error);
/* Computes the result in a range. Elementwise rules without a report accept ranges that start anywhere. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_combine(reef_plan *plan, ptrdiff_t worker, ptrdiff_t segment,
                                                       ptrdiff_t m0, ptrdiff_t m1, const void *const *rows, void *out,
                                                       reef_error *error);
/* True if observe or combine met non-finite values under nan=drop-row or error: the results so far are void. */
REEF_API bool reef_plan_suspect(const reef_plan *plan);
/* Marks the rows that hold non-finite values in this range. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_scan(reef_plan *plan, ptrdiff_t segment, ptrdiff_t m0, ptrdiff_t m1,
                                                    const void *const *rows, reef_error *error);
/* Leaves the marked rows out (or refuses them, under nan=error) and starts again at the first pass. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_drop(reef_plan *plan, reef_error *error);
/* Completes the report and the state. */
REEF_API REEF_MUST_CHECK reef_status reef_plan_end(reef_plan *plan, reef_error *error);

/* --- States --- */

/* With at most this many rows, including the receiver's own, rules that remember senders use the receiver's own row as their centre. */
#define REEF_FEW_ROWS 5

/* Makes a memory for aggregations of this shape by this aggregator, which must outlive it. */
REEF_API REEF_MUST_CHECK reef_status reef_state_create(reef_state **state, const reef_agg *agg, const reef_shape *shape,
                                                       reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_state_destroy(reef_state **state);
/* Forgets everything but the seed. */
REEF_API void reef_state_reset(reef_state *state);
/* The remembered centre of a segment in the shape's dtype, NULL before the first aggregation. */
REEF_API const void *reef_state_centre(const reef_state *state, ptrdiff_t segment);
/* Sets the centre (all segments must be set before it counts): restores a saved state, or provides a first guess. */
REEF_API REEF_MUST_CHECK reef_status reef_state_set_centre(reef_state *state, ptrdiff_t segment, const void *centre,
                                                           reef_error *error);

/* Rules with REEF_TRAIT_SENDERS remember senders by id (input.ids). Rows come in any order and number; absent senders stay remembered, new ones
 * start afresh. At first there is room for as many senders as the shape has rows. More room is allocated as more are heard (at the beginning of an
 * aggregation, which fails with REEF_E_NOMEM and changes nothing if there is no memory), up to the limit: REEF_SENDERS_LIMIT, or the shape's
 * rows if they are more. Beyond it, a new sender takes the place of an absent one: one that would start afresh anyway, otherwise the one that
 * took part in the fewest aggregations, so that a flood of new ids displaces only itself. For mref with sketches, a sender takes about 1 kB. */
#define REEF_SENDERS_LIMIT 65536
/* Changes the limit; memory that is already allocated stays. */
REEF_API void reef_state_set_limit(reef_state *state, ptrdiff_t senders);
/* Senders remembered now. */
REEF_API ptrdiff_t reef_state_senders(const reef_state *state);
/* Sets the seed of the rule's random draws (sketches), before the first aggregation; it is kept with the state. Senders should not know it. Rules
 * whose memory says so (`secret`) get one from the system when the state is created; set it if results must be reproducible. */
REEF_API void reef_state_set_seed(reef_state *state, uint64_t seed);

/* The size in bytes of a saved state, to be loaded into a state made for the same aggregator and shape, on a machine of the same byte order.
 * A saved state has a version, the rule's name, lengths and a checksum; loading fails with a message, and without changing the state, if it is damaged
 * or inconsistent. The size changes as senders are heard. */
REEF_API size_t reef_state_size(const reef_state *state);
/* What the size would be with this many senders; 0: more than the address space. */
REEF_API size_t reef_state_room(const reef_state *state, ptrdiff_t senders);
/* Writes the state to `bytes`; size must be reef_state_size. */
REEF_API REEF_MUST_CHECK reef_status reef_state_save(const reef_state *state, void *bytes, size_t size,
                                                     reef_error *error);
/* Replaces the memory with a saved one; on failure nothing has changed. */
REEF_API REEF_MUST_CHECK reef_status reef_state_load(reef_state *state, const void *bytes, size_t size,
                                                     reef_error *error);
/* Rules with REEF_TRAIT_SENDERS: the number of aggregations in which agent `id` took part, as far as is remembered; 0: none. */
REEF_API int64_t reef_state_age(const reef_state *state, int64_t id);

#ifdef __cplusplus
}
#endif
#endif
