/* What a person should know about LoRA adapters: where merging them is not what it seems to be. */
#include "io/lines.h"
#include "merge/merge.h"
#include "merge/pairs.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* With the option factors: adapters are merged like any other tensors. */
static void warn_of_factors(const rfi_merge *merge)
{
    char text[200];
    ptrdiff_t count = 0;
    for (ptrdiff_t t = 0; t < merge->result.count; t++) {
        count += rfi_is_down_factor(merge->list[t].name);
    }
    if (count > 0 && merge->options->note) {
        (void)snprintf(
            text, sizeof text,
            "warning: the factors of %td LoRA %s are merged separately; the product of merged factors is not "
            "the merged product",
            count, count == 1 ? "pair" : "pairs");
        merge->options->note(merge->options->user, text);
    }
}

/* Factors of another kind, whose product is not simply that of two matrices. */
static void warn_of_others(const rfi_merge *merge)
{
    static const char *const words[] = {"hada_w1", "hada_w2", "lokr_w1", "lokr_w2"};
    ptrdiff_t count = 0;
    for (ptrdiff_t t = 0; t < merge->result.count; t++) {
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            count += rfi_find_word(merge->list[t].name, words[i]) >= 0;
        }
    }
    if (count > 0 && merge->options->note) {
        merge->options->note(merge->options->user,
                             "warning: there are factors of LoHa or LoKr, which are merged one by one; the product of "
                             "merged factors is not the merged product");
    }
}

/* A number by which a product is scaled when it is used. */
static bool is_scale(const rfi_tensor *tensor)
{
    static const char end[] = ".alpha";
    size_t length = sizeof end - 1;
    return tensor->count == 1 && rfi_type_is_real(tensor->type) && tensor->name.length > length &&
           memcmp(tensor->name.text + tensor->name.length - length, end, length) == 0;
}

/* Whether the files that have a tensor of few bytes differ in it. */
static reef_status differ(const rfi_merge *merge, ptrdiff_t tensor, bool *found, reef_error *error)
{
    unsigned char first[sizeof(double)] = {0};
    unsigned char other[sizeof(double)] = {0};
    const rfi_tensor *known = NULL;
    *found = false;
    for (ptrdiff_t l = 0; l < merge->rows; l++) {
        const rfi_tensor *theirs = merge->of[tensor * merge->rows + l];
        if (!theirs || merge->weights[l] <= 0) {
            continue;
        }
        assert(theirs->bytes <= sizeof first);
        reef_status status =
            rfi_model_get(&merge->models[merge->file_of[l]], theirs, 0, known ? other : first, theirs->bytes, error);
        if (status != REEF_OK) {
            return status;
        }
        *found = *found || (known && (known->type != theirs->type || memcmp(first, other, theirs->bytes) != 0));
        known = known ? known : theirs;
    }
    return REEF_OK;
}

/* Products are aggregated as if all had the same scale. */
static reef_status warn_of_scales(const rfi_merge *merge, reef_error *error)
{
    char text[300];
    char shown[RFI_SHOWN_SIZE];
    ptrdiff_t count = 0;
    const rfi_tensor *first = NULL;
    for (ptrdiff_t t = 0; merge->pair_count > 0 && t < merge->result.count; t++) {
        bool found = false;
        reef_status status = is_scale(&merge->list[t]) ? differ(merge, t, &found, error) : REEF_OK;
        if (status != REEF_OK) {
            return status;
        }
        first = found && count == 0 ? &merge->list[t] : first;
        count += found;
    }
    if (count > 0 && merge->options->note) {
        (void)snprintf(text, sizeof text,
                       "warning: the files differ in '%s'%s: products are aggregated as if all had the same scale; "
                       "multiply factors by the scale, or train with one alpha",
                       rfi_shown(first->name, shown), count > 1 ? " and other scales" : "");
        merge->options->note(merge->options->user, text);
    }
    return REEF_OK;
}

/* Sites whose products have little in common: their aggregate has a higher rank than theirs. */
void rfi_pairs_warn_of_error(const rfi_merge *merge)
{
    char text[300];
    static const double much = 0.5;
    if (merge->report.pair_error > much && merge->options->note) {
        (void)snprintf(text, sizeof text,
                       "warning: the new factors miss %.0f %% of the aggregated products, which need a higher rank; "
                       "merge each adapter into its base (merge_and_unload) and merge the full models instead",
                       100 * merge->report.pair_error);
        merge->options->note(merge->options->user, text);
    }
}

reef_status rfi_pairs_warn(const rfi_merge *merge, reef_error *error)
{
    warn_of_others(merge);
    if (merge->options->factors) {
        warn_of_factors(merge);
    }
    return warn_of_scales(merge, error);
}
