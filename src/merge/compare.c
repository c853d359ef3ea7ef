/* What differs between two models. */
#include "base/error.h"
#include "base/text.h"
#include "io/file.h"
#include "io/lines.h"
#include "merge/model.h"
#include "merge/pairs.h"

#include <stdio.h>
#include <string.h>

static bool same_shape(const rfi_tensor *a, const rfi_tensor *b)
{
    return a->rank == b->rank && (a->rank == 0 || memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0);
}

/* Factors of a LoRA adapter whose shapes differ in nothing but the rank of the product. */
static bool differ_in_rank(const rfi_tensor *a, const rfi_tensor *b)
{
    ptrdiff_t axis = rfi_is_down_factor(a->name) ? 0 : 1;
    bool factors = rfi_is_factor(a->name) && a->rank >= 2 && a->rank == b->rank;
    for (ptrdiff_t i = 0; factors && i < a->rank; i++) {
        factors = i == axis || a->shape[i] == b->shape[i];
    }
    return factors;
}

enum { SHAPE_TEXT = 64 };

static const char *show_shape(const rfi_tensor *tensor, char text[SHAPE_TEXT])
{
    size_t used = 0;
    rfi_append(text, SHAPE_TEXT - 4, &used, "[");
    for (ptrdiff_t i = 0; i < tensor->rank && used < SHAPE_TEXT - 4; i++) {
        rfi_append(text, SHAPE_TEXT - 4, &used, i ? ", %td" : "%td", tensor->shape[i]);
    }
    used = used < SHAPE_TEXT - 4 ? used : SHAPE_TEXT - 5;
    rfi_append(text, SHAPE_TEXT, &used, used == SHAPE_TEXT - 5 ? "..]" : "]");
    return text;
}

/* The array of an npy file has no name. */
static const char *name_tensor(const rfi_tensor *tensor, char text[RFI_SHOWN_SIZE + 16])
{
    char shown[RFI_SHOWN_SIZE];
    if (tensor->name.length == 0) {
        return "its array";
    }
    (void)snprintf(text, RFI_SHOWN_SIZE + 16, "tensor '%s'", rfi_shown(tensor->name, shown));
    return text;
}

reef_status rfi_tensor_match(const rfi_model *model, const rfi_tensor *a, const rfi_model *reference,
                             const rfi_tensor *b, rfi_lenience allow, reef_error *error)
{
    char named[RFI_SHOWN_SIZE + 16];
    char mine[SHAPE_TEXT];
    char theirs[SHAPE_TEXT];
    const char *path = rfi_path_show(model->path);
    const char *other = rfi_path_show(reference->path);
    bool real = rfi_type_is_real(a->type) && rfi_type_is_real(b->type);
    if (a->type != b->type && !(allow.types && real)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: %s has type %s; in %s it has %s%s", path, name_tensor(a, named),
                        rfi_safetensors_type(a->type), other, rfi_safetensors_type(b->type),
                        real ? "; --cast gives the result one type" : "");
    }
    if (!same_shape(a, b)) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: %s has shape %s; in %s it has %s%s", path, name_tensor(a, named),
                        show_shape(a, mine), other, show_shape(b, theirs),
                        differ_in_rank(a, b) ? "; adapters of different ranks cannot be merged" : "");
    }
    return REEF_OK;
}

/* What every name of a model begins with, if the rest of them are the names of another one. Their order is then the same. */
static rfi_slice find_prefix(const rfi_model *model, const rfi_model *other)
{
    const rfi_slice none = {NULL, 0};
    if (model->count == 0 || model->count != other->count ||
        model->by_name[0]->name.length <= other->by_name[0]->name.length) {
        return none;
    }
    rfi_slice prefix = model->by_name[0]->name;
    prefix.length -= other->by_name[0]->name.length;
    for (ptrdiff_t i = 0; i < model->count; i++) {
        rfi_slice longer = model->by_name[i]->name;
        rfi_slice shorter = other->by_name[i]->name;
        if (longer.length != prefix.length + shorter.length || memcmp(longer.text, prefix.text, prefix.length) != 0 ||
            (shorter.length > 0 && memcmp(longer.text + prefix.length, shorter.text, shorter.length) != 0)) {
            return none;
        }
    }
    return prefix;
}

/* Training puts models into wrappers, and some sites save the model with its wrapper. */
static reef_status fail_prefix(const rfi_model *model, const rfi_model *other, rfi_slice prefix, reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    const char *advice = "save all models in the same way";
    if (rfi_equals(prefix, "module.")) {
        advice = "DataParallel and DistributedDataParallel do that: save model.module";
    } else if (rfi_equals(prefix, "_orig_mod.")) {
        advice = "torch.compile does that: save model._orig_mod";
    }
    return rfi_fail(error, REEF_E_FORMAT, "%s: the names of its tensors begin with '%s', those of %s do not; %s",
                    rfi_path_show(model->path), rfi_shown(prefix, shown), rfi_path_show(other->path), advice);
}

/* "...-00001-of-00002...": all shards of a model were given, as if they were models. */
static bool is_shard_name(const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') : path;
    const char *of = strstr(name, "-of-");
    return of && strspn(of + 4, "0123456789") >= 2;
}

/* The earlier name is the one that the other file lacks. */
static reef_status fail_missing(const rfi_model *model, const rfi_model *reference, const rfi_tensor *alone, bool mine,
                                reef_error *error)
{
    char shown[RFI_SHOWN_SIZE];
    rfi_slice mine_only = find_prefix(model, reference);
    rfi_slice theirs_only = find_prefix(reference, model);
    if (mine_only.text || theirs_only.text) {
        return mine_only.text ? fail_prefix(model, reference, mine_only, error)
                              : fail_prefix(reference, model, theirs_only, error);
    }
    bool shards = is_shard_name(model->path) && is_shard_name(reference->path);
    return rfi_fail(
        error, REEF_E_FORMAT, "%s: %s the tensor '%s'; %s %s%s", rfi_path_show(model->path), mine ? "has" : "lacks",
        rfi_shown(alone->name, shown), rfi_path_show(reference->path), mine ? "lacks it" : "has it",
        shards ? "; for a model in shards give the folder that they are in" : "; --common merges what all files have");
}

static reef_status compare_format(const rfi_model *model, const rfi_model *reference, reef_error *error)
{
    const char *path = rfi_path_show(model->path);
    const char *other = rfi_path_show(reference->path);
    if (model->npy != reference->npy) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: is %s npy file; %s is %s", path, model->npy ? "an" : "no", other,
                        model->npy ? "not" : "one");
    }
    if (model->fortran != reference->fortran) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: is in %s order; %s is not", path, model->fortran ? "Fortran" : "C",
                        other);
    }
    return REEF_OK;
}

reef_status rfi_model_compare(const rfi_model *model, const rfi_model *reference, rfi_lenience allow, reef_error *error)
{
    reef_status status = compare_format(model, reference, error);
    if (status == REEF_OK && (allow.tensors || model->tensors == reference->tensors)) {
        return REEF_OK; /* the same header, or not to be compared here */
    }
    ptrdiff_t i = 0;
    ptrdiff_t j = 0;
    while (status == REEF_OK && (i < model->count || j < reference->count)) {
        bool mine = i < model->count;
        bool theirs = j < reference->count;
        int order = mine && theirs ? rfi_tensor_compare(model->by_name[i], reference->by_name[j]) : mine ? -1 : 1;
        if (order == 0) {
            status = rfi_tensor_match(model, model->by_name[i], reference, reference->by_name[j], allow, error);
        } else if (!allow.missing) {
            return fail_missing(model, reference, order < 0 ? model->by_name[i] : reference->by_name[j], order < 0,
                                error);
        }
        i += order <= 0;
        j += order >= 0;
    }
    return status;
}
