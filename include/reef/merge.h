/* Robust merging of model files: N checkpoints of the same model -> one.
 *
 * Files are safetensors or npy. Tensors of floating-point numbers (F64, F32, F16, BF16) are aggregated by the rule; 16-bit ones are
 * widened to float, and the result is rounded to nearest. If a model has a F64 tensor, everything is computed in double. Tensors of
 * whole numbers and truth values (counters of BatchNorm, masks) are never averaged: each element is the value that files with more
 * than half of the weight agree on; where there is none, that of the most trusted file.
 *
 * Files are read in blocks: memory is bounded whatever their size, and the result has the bits of reef_plan_apply_segments on the whole
 * models. The output takes the place of out_path in one step, after it has been written and flushed; after a failure it is as it was.
 *
 *     reef_merge_options options = {.rule = "ref"};
 *     reef_merge_files(context, &options, paths, count, "merged.safetensors", NULL, &error);
 */
#ifndef REEF_MERGE_H
#define REEF_MERGE_H

#include <reef/context.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How elements of whole-number and truth-value tensors are decided. */
typedef enum reef_merge_integers {
    REEF_MERGE_MAJORITY, /* by weight; without a majority as below */
    REEF_MERGE_TRUSTED   /* from the most trusted file: highest trust, then weight, then first */
} reef_merge_integers;

/* Everything may be left zero. */
typedef struct reef_merge_options {
    const char *rule;      /* spec of the rule; NULL: "ref". nan= in it says what NaN and Inf do */
    const double *weights; /* one per file, NULL: equal */
    bool per_tensor;       /* each tensor is aggregated by itself; otherwise distances go over the whole model */
    bool drop_bad;         /* leave out files that cannot be read, are malformed, or differ from most others */
    reef_merge_integers integers;
    bool no_trust; /* do not measure trust, which makes some rules (trimmed, meamed) much faster */
    size_t memory; /* bytes for blocks of the files, 0: 128 MB */
    /* Called now and then by the calling thread with the share of the work that is done, if not NULL. */
    void (*progress)(void *user, double share);
    void *user;
} reef_merge_options;

typedef enum reef_merge_reason {
    REEF_MERGE_USED,
    REEF_MERGE_ZERO_WEIGHT,
    REEF_MERGE_NONFINITE, /* holds NaN or Inf */
    REEF_MERGE_BAD        /* cannot be read, is malformed, or differs (drop_bad) */
} reef_merge_reason;

/* What became of one file. */
typedef struct reef_merge_file {
    double
        trust; /* mean effective weight over fair share, as in reef_report_trust, among the files that took part; NaN: not measured */
    double rejected; /* share of the numbers at which it was rejected */
    reef_merge_reason reason;
    char why[320]; /* a sentence if it was left out, else empty */
} reef_merge_file;

typedef struct reef_merge_report {
    reef_merge_file *files; /* room for one per file, of the caller; may be NULL */
    int64_t tensors;        /* in the output */
    int64_t numbers;        /* floating-point ones, aggregated */
    int64_t integer_tensors;
    int64_t integers;  /* elements of those */
    int64_t disputed;  /* of which not all files agreed on */
    int64_t undecided; /* of which without a majority: taken from the most trusted file */
    ptrdiff_t trusted; /* that file; -1 if there was no tensor of whole numbers */
    int64_t masked;    /* entries left out under nan=drop-coordinate */
    int64_t unconverged;
    double centre_share; /* as reef_report_centre_share */
} reef_merge_report;

/* Merges `count` files into out_path. report may be NULL; it is filled in on success only, except that with REEF_MERGE_BAD files and a
 * failure their sentences are there. Threads are those of the context (NULL: the calling one). */
REEF_API reef_status reef_merge_files(reef_context *context, const reef_merge_options *options,
                                      const char *const *paths, ptrdiff_t count, const char *out_path,
                                      reef_merge_report *report, reef_error *error);

#ifdef __cplusplus
}
#endif
#endif
