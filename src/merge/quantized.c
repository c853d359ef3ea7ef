/* Quantized models: their integers, and numbers of 8 bits with a scale beside them, are not the weights but stand for them, so that neither votes nor
 * averages give a model. */
#include "io/lines.h"
#include "merge/merge.h"

#include <stdio.h>

/* Fewer bytes of integers are counters and masks, whatever else there is. */
static const double few_bytes = 1 << 20;

static void warn(const rfi_merge *merge, const char *text)
{
    if (merge->options->note) {
        merge->options->note(merge->options->user, text);
    }
}

static bool is_eighth(rfi_type type)
{
    return type == RFI_F8_E4M3 || type == RFI_F8_E5M2;
}

/* x.weight_scale, x.weight_scale_inv, x.scale_weight. */
static bool is_scale(const rfi_tensor *tensor)
{
    return rfi_type_is_real(tensor->type) && !is_eighth(tensor->type) &&
           (rfi_find_word(tensor->name, "weight_scale") >= 0 || rfi_find_word(tensor->name, "scale_weight") >= 0);
}

/* As the files have them: the result may be cast. */
static bool has_eighths(const rfi_merge *merge)
{
    bool found = false;
    for (ptrdiff_t i = 0; !found && i < merge->result.count * merge->rows; i++) {
        found = merge->of[i] && is_eighth(merge->of[i]->type);
    }
    return found;
}

void rfi_merge_warn_of_scales(const rfi_merge *merge)
{
    char text[300];
    char shown[RFI_SHOWN_SIZE];
    const rfi_tensor *scale = NULL;
    if (!has_eighths(merge)) {
        return;
    }
    for (ptrdiff_t t = 0; !scale && t < merge->result.count; t++) {
        scale = is_scale(&merge->list[t]) ? &merge->list[t] : NULL;
    }
    if (scale) {
        (void)snprintf(
            text, sizeof text,
            "warning: '%s' is a scale of numbers of 8 bits; these are aggregated as if all files had the same "
            "scales; save the models in another type (BF16) before they are merged",
            rfi_shown(scale->name, shown));
        warn(merge, text);
    }
}

void rfi_merge_warn_of_integers(const rfi_merge *merge)
{
    double bytes = 0;
    for (ptrdiff_t t = 0; t < merge->result.count; t++) {
        const rfi_tensor *tensor = &merge->list[t];
        bytes += rfi_type_is_real(tensor->type) ? -(double)tensor->bytes : (double)tensor->bytes;
    }
    if (bytes > few_bytes && merge->report.disputed > 0) {
        warn(merge,
             "warning: most of the model is integers, which are not averaged but decided by majority; if they are "
             "quantized weights, the result is of no use: merge the models before they are quantized");
    }
}
