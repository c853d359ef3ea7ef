/* Robust merging of model files: N checkpoints of the same model -> one.
 *
 * A model is a safetensors or npy file, or a folder in Hugging Face's layout: model.safetensors, or shards with their index, and small files
 * beside them (configuration, tokenizer), which are copied if they are the same in all folders. Folders are merged into a folder, which must be
 * new or empty, unless out_path ends with .safetensors. Tensors of floating-point numbers (F64, F32, F16, BF16, F8_E4M3, F8_E5M2) are aggregated
 * by the rule; 16-bit and 8-bit ones are widened to float, and the result is rounded to nearest. If a model has an F64 tensor, everything is
 * computed in double. Integer and boolean tensors (counters of BatchNorm, masks) are never averaged: each element gets the value on which files
 * with more than half of the weight agree or, if there is none, the value of the most trusted file.
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
    REEF_MERGE_MAJORITY, /* by weight; without a majority, as TRUSTED */
    REEF_MERGE_TRUSTED   /* from the most trusted file: highest trust, then weight, then first */
} reef_merge_integers;

/* How files are merged. Everything may be left zero. */
typedef struct reef_merge_options {
    size_t size;           /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    const char *rule;      /* rule string; NULL: "ref". nan= in it is the policy for NaN and Inf */
    const double *weights; /* one per file, NULL: equal */
    bool per_tensor;       /* each tensor is aggregated separately; otherwise distances are over the whole model */
    bool drop_bad;         /* leave out files that are malformed or differ from most others, as long as most remain */
    reef_merge_integers integers; /* how integers are merged */
    bool no_trust;                /* do not measure trust, which makes some rules (trimmed, meamed) much faster */
    size_t memory;                /* bytes for blocks of the files, 0: 128 MB */
    size_t shard_size; /* bytes of data per file of the result, which is then a folder; 0: as in the first model */
    /* A file in which a rule that remembers senders (mref) keeps what it knows about the sites from merge to merge: created if missing, checked,
     * and replaced atomically once the result is in place; NULL: nothing is kept. */
    const char *state;
    /* Floating-point tensors of the result get this type ("F32", "BF16", ...), and the files may have different types; NULL: the type
     * that all files have. */
    const char *cast;
    bool common; /* only tensors that all files have are merged; the others are reported by note */
    /* Files may lack tensors. A tensor that more than half of the files have is aggregated separately from those; the others are reported by note. */
    bool ignore_missing;
    /* Pairs of LoRA factors (names with lora_A and lora_B, lora_down and lora_up, lora.down and lora.up): their products are aggregated, and the
     * result is factored back to their rank. With factors = true, each factor is merged separately, like any other tensor. */
    bool factors;
    /* The model from which the files were trained: differences from it are aggregated, and added to it. Rules without an origin
     * (mean, median, ref, vref, krum, ...) give the same result up to rounding; clip, arc and cclip do not. NULL: none. */
    const char *base;
    const char *const *ids; /* with state: the name of each site, one per file; NULL: the last part of its path */
    /* Called now and then by the calling thread with the share of the work that is done, if not NULL. */
    void (*progress)(void *user, double share);
    /* Called with a message for the user, if not NULL: files beside the weights that differ, tensors left out. */
    void (*note)(void *user, const char *sentence);
    /* Called after a merge for each tensor of floating-point numbers, in the order of the result, with those that some files lack last: its name as
     * in the file, how many numbers it has, and the trust of each file in it (NaN: the file took no part). NULL: trust by tensor is not measured.
     * Not called with no_trust. */
    void (*tensor)(void *user, const char *name, int64_t numbers, const double *trust);
    void *user;                        /* passed to progress, note and tensor */
    const volatile sig_atomic_t *stop; /* when it becomes non-zero, the merge ends soon, as a failure; NULL: never */
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
    double rejected;          /* share of the numbers in which it was rejected */
    reef_merge_reason reason; /* whether it took part */
    ptrdiff_t copy_of;        /* the first file whose tensors have the same bytes, so that it has two votes; -1: none */
    char why[320];            /* the reason if it was left out, otherwise empty */
} reef_merge_file;

/* The outcome of a merge. */
typedef struct reef_merge_report {
    reef_merge_file *files;  /* room for one per file, provided by the caller; may be NULL */
    int64_t tensors;         /* in the output */
    int64_t missing;         /* tensors left out because files lack them (common, ignore_missing) */
    int64_t partial;         /* floating-point tensors that not all files have (ignore_missing) */
    int64_t numbers;         /* floating-point numbers, aggregated */
    int64_t integer_tensors; /* integer and boolean tensors */
    int64_t integers;        /* elements of those */
    int64_t disputed;        /* elements on which not all files agreed */
    int64_t undecided;       /* elements without a majority, taken from the most trusted file */
    ptrdiff_t trusted;       /* that file; -1 if there was no integer or boolean tensor */
    int64_t masked;          /* entries left out under nan=drop-coordinate */
    int64_t unconverged;     /* as reef_report_unconverged */
    double centre_share;     /* as reef_report_centre_share */
    int64_t pairs;           /* of LoRA factors, whose products count among the numbers */
    double
        pair_error; /* distance of the new factors' products from the aggregated products, relative to these: root of sums of squares */
    double pair_worst; /* the same for the worst pair */
} reef_merge_report;

/* Merges `count` files into out_path. report may be NULL; it is filled in on success only, except that after a failure
 * because of REEF_MERGE_BAD files their messages are filled in. Threads are those of the context (NULL: the calling one). */
REEF_API REEF_MUST_CHECK reef_status reef_merge_files(reef_context *context, const reef_merge_options *options,
                                                      const char *const *paths, ptrdiff_t count, const char *out_path,
                                                      reef_merge_report *report, reef_error *error);

#ifdef __cplusplus
}
#endif
#endif
