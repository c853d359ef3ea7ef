/* Robust merging of model files: N checkpoints of the same model -> one.
 *
 * A model is a safetensors or npy file, or a folder in Hugging Face's layout: model.safetensors, or shards with their index, and small files
 * beside them (configuration, tokenizer), which are copied if they are the same in all folders. Folders are merged into a folder, which must be new or
 * empty, unless out_path ends with .safetensors. Tensors of floating-point numbers (F64, F32, F16, BF16, F8_E4M3, F8_E5M2) are aggregated by the rule; 16-bit and 8-bit ones are
 * widened to float, and the result is rounded to nearest. If a model has a F64 tensor, everything is computed in double. Integer and
 * boolean tensors (counters of BatchNorm, masks) are never averaged: each element is the value that files with more
 * than half of the weight agree on; or else the value of the most trusted file.
 *
 * Files are read in blocks: memory is bounded for files of any size, and the result is bit-identical to reef_plan_apply_segments on the whole
 * models. The output replaces out_path atomically, after it has been written and flushed; after a failure out_path is unchanged. It
 * must not be an input, under any name. A file that is changed or replaced meanwhile is an error.
 *
 *     reef_merge_options options = {.rule = "ref"};
 *     reef_merge_files(context, &options, paths, count, "merged.safetensors", NULL, &error);
 */
#ifndef REEF_MERGE_H
#define REEF_MERGE_H

#include <reef/context.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How elements of integer and boolean tensors are decided. */
typedef enum reef_merge_integers {
    REEF_MERGE_MAJORITY, /* by weight; without a majority as below */
    REEF_MERGE_TRUSTED   /* from the most trusted file: highest trust, then weight, then first */
} reef_merge_integers;

/* Everything may be left zero. */
typedef struct reef_merge_options {
    size_t size;           /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    const char *rule;      /* rule string; NULL: "ref". nan= in it is the policy for NaN and Inf */
    const double *weights; /* one per file, NULL: equal */
    bool per_tensor;       /* each tensor is aggregated by itself; otherwise distances go over the whole model */
    bool drop_bad;         /* leave out files that are malformed or differ from most others, as long as most are left */
    reef_merge_integers integers; /* how whole numbers are merged */
    bool no_trust;                /* do not measure trust, which makes some rules (trimmed, meamed) much faster */
    size_t memory;                /* bytes for blocks of the files, 0: 128 MB */
    size_t
        shard_size; /* bytes of data per file of the result, which then is a folder; 0: as the first model has them */
    /* A file in which a rule that remembers senders (mref) keeps what it knows of the sites from merge to merge: created if missing, checked,
     * and replaced in one step when the result is in its place; NULL: nothing is kept. */
    const char *state;
    /* Floating-point tensors of the result get this type ("F32", "BF16", ...), and the files may have them in different ones; NULL: the type
     * that all files have. */
    const char *cast;
    bool common; /* only tensors that all files have are merged; the others are reported by note */
    /* Files may lack tensors. One that more than half of the files have is aggregated by itself from those; the others are reported by note. */
    bool ignore_missing;
    /* Pairs of LoRA factors (names with lora_A and lora_B, lora_down and lora_up, lora.down and lora.up): their products are aggregated, and the
     * result is factored back to their rank. With factors = true each factor is merged by itself, like any other tensor. */
    bool factors;
    /* A model whose tensors the files have been trained from: differences from it are aggregated, and added to it. Rules that know no origin
     * (mean, median, ref, vref, krum, ...) give the same up to rounding; clip, arc and cclip do not. NULL: none. */
    const char *base;
    const char *const *ids; /* with state: what each site is called, one per file; NULL: by the last part of its path */
    /* Called now and then by the calling thread with the share of the work that is done, if not NULL. */
    void (*progress)(void *user, double share);
    /* Called with a message for the user, if not NULL: files beside the weights that differ, tensors left out. */
    void (*note)(void *user, const char *sentence);
    /* Called after a merge for each tensor of floating-point numbers, in the order of the result, those that some files lack last: its name as the file has it, how many numbers it has,
     * and the trust of each file in it (NaN: the file took no part). NULL: trust by tensor is not measured. Not called under no_trust. */
    void (*tensor)(void *user, const char *name, int64_t numbers, const double *trust);
    void *user;                        /* handed to progress, note and tensor */
    const volatile sig_atomic_t *stop; /* when it becomes non-zero the merge ends soon, as a failure; NULL: never */
} reef_merge_options;

/* The fate of a file. */
typedef enum reef_merge_reason {
    REEF_MERGE_USED,
    REEF_MERGE_ZERO_WEIGHT,
    REEF_MERGE_NONFINITE, /* holds NaN or Inf */
    REEF_MERGE_BAD        /* is malformed, or differs (drop_bad) */
} reef_merge_reason;

/* The outcome for one file. */
typedef struct reef_merge_file {
    double
        trust; /* mean effective weight over fair share, as in reef_report_trust, among the files that took part; NaN: not measured */
    double rejected;          /* share of the numbers at which it was rejected */
    reef_merge_reason reason; /* whether it took part */
    ptrdiff_t copy_of;        /* the first file whose tensors have the same bytes, so that it has two votes; -1: none */
    char why[320];            /* the reason if it was left out, else empty */
} reef_merge_file;

/* The outcome of a merge. */
typedef struct reef_merge_report {
    reef_merge_file *files;  /* room for one per file, of the caller; may be NULL */
    int64_t tensors;         /* in the output */
    int64_t missing;         /* left out because files lack them (common, ignore_missing) */
    int64_t partial;         /* floating-point ones that not all files have (ignore_missing) */
    int64_t numbers;         /* floating-point ones, aggregated */
    int64_t integer_tensors; /* tensors of whole numbers */
    int64_t integers;        /* elements of those */
    int64_t disputed;        /* of which not all files agreed on */
    int64_t undecided;       /* of which without a majority: taken from the most trusted file */
    ptrdiff_t trusted;       /* that file; -1 if there was no tensor of whole numbers */
    int64_t masked;          /* entries left out under nan=drop-coordinate */
    int64_t unconverged;     /* as reef_report_unconverged */
    double centre_share;     /* as reef_report_centre_share */
    int64_t pairs;           /* of LoRA factors, whose products count among the numbers */
    double
        pair_error; /* what the new factors lack of the aggregated products, relative to these: root of sums of squares */
    double pair_worst; /* the same for the worst pair */
} reef_merge_report;

/* Merges `count` files into out_path. report may be NULL; it is filled in on success only, except that with REEF_MERGE_BAD files and a
 * failure their messages are filled in. Threads are those of the context (NULL: the calling one). */
REEF_API REEF_MUST_CHECK reef_status reef_merge_files(reef_context *context, const reef_merge_options *options,
                                                      const char *const *paths, ptrdiff_t count, const char *out_path,
                                                      reef_merge_report *report, reef_error *error);

#ifdef __cplusplus
}
#endif
#endif
