/* How things look and what they are called in all figures: a rule has its colour and its marker wherever it is drawn, parameters vary
 * the dash; axes are named in words, not by keys of the configuration. */
#include "experiment/present/figures.h"

#include "base/hash.h"

#include <string.h>

/* Neither too dark for a dark page nor too light for a white one. Markers are gnuplot's: filled circle 7, square 5, triangles 9 and 11,
 * diamond 13, pentagon 15, their open forms one less, and 1 to 3: + x *. */
static const struct {
    const char *rule;
    rfi_look look;
} looks[] = {
    {"mean", {"#7f7f7f", 2, 1}},      {"median", {"#e69f00", 7, 1}},  {"trimmed", {"#56b4e9", 5, 1}},
    {"meamed", {"#a6814c", 6, 1}},    {"geomed", {"#009e73", 9, 1}},  {"krum", {"#b8860b", 4, 1}},
    {"multikrum", {"#8f7a1f", 8, 1}}, {"bulyan", {"#b0528f", 12, 1}}, {"mda", {"#8a9a2b", 10, 1}},
    {"cclip", {"#cc79a7", 11, 1}},    {"huber", {"#3aa89a", 14, 1}},  {"tukey", {"#6b8fd6", 3, 1}},
    {"ref", {"#0072b2", 5, 1}},       {"vref", {"#9467bd", 13, 1}},   {"mref", {"#d55e00", 7, 1}},
};
/* Of rules that others have brought, and of lines that differ in something else. */
static const char *const others[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                     "#cc79a7", "#56b4e9", "#a6814c", "#7f7f7f"};

/* The rule's name in "nnm:f=4 | ref:c=4": that of the last part. */
static rfi_slice rule_name(const char *text)
{
    const char *bar = strrchr(text, '|');
    const char *start = bar ? bar + 1 : text;
    start += strspn(start, " ");
    return (rfi_slice){start, strcspn(start, ": ")};
}

static bool same_rule(const char *a, const char *b)
{
    rfi_slice first = rule_name(a);
    rfi_slice second = rule_name(b);
    return first.length == second.length && memcmp(first.text, second.text, first.length) == 0;
}

static rfi_look rule_look(const char *text)
{
    rfi_slice name = rule_name(text);
    for (ptrdiff_t i = 0; i < RFI_COUNT(looks); i++) {
        if (strlen(looks[i].rule) == name.length && memcmp(looks[i].rule, name.text, name.length) == 0) {
            return looks[i].look;
        }
    }
    uint64_t sum = rfi_hash_bytes(RFI_HASH_START, name.text, name.length);
    return (rfi_look){others[sum % RFI_COUNT(others)], (int)(sum / 8 % 12) + 4, 1};
}

rfi_look rfi_figure_look(const rfi_figures *f, const ptrdiff_t *cells, ptrdiff_t i)
{
    static const int dashes[] = {1, 2, 4, 5};
    const reef_experiment *e = f->experiment;
    ptrdiff_t axis = rfi_figure_axis(e, "rule");
    char own[RFI_LABEL_SIZE];
    if (axis < 0) {
        ptrdiff_t colours = RFI_COUNT(others);
        return (rfi_look){others[i % colours], (int)(i % colours) + 4, dashes[i / colours % RFI_COUNT(dashes)]};
    }
    (void)reef_experiment_value(e, cells[i], axis, own, sizeof own);
    rfi_look look = rule_look(own);
    ptrdiff_t before = 0; /* lines of the same rule */
    for (ptrdiff_t k = 0; k < i; k++) {
        char other[RFI_LABEL_SIZE];
        (void)reef_experiment_value(e, cells[k], axis, other, sizeof other);
        before += same_rule(own, other);
    }
    look.dash = dashes[before % RFI_COUNT(dashes)];
    return look;
}

/* ---- words ---- */

static const struct {
    const char *path, *words;
} names[] = {
    {"malicious", "number of malicious agents"},
    {"agents", "number of agents"},
    {"rounds", "rounds"},
    {"strategy.mu", "step size mu"},
    {"strategy.steps", "local steps per round"},
    {"strategy.fraction", "share of agents sampled per round"},
    {"strategy.batch", "samples per gradient"},
    {"strategy.mean_delay", "mean delay of updates [rounds]"},
    {"attack.delta", "attack strength delta"},
    {"attack.z", "attack strength z [honest standard deviations]"},
    {"attack.factor", "attack strength (factor)"},
    {"attack.epsilon", "attack strength epsilon"},
    {"attack.scale", "attack strength (scale)"},
    {"attack.period", "period of the attack [rounds]"},
    {"problem.noise", "noise variance"},
    {"problem.dimension", "number of parameters M"},
    {"problem.heterogeneity", "heterogeneity of the agents"},
    {"graph.p", "probability of a link p"},
    {"graph.degree", "neighbours of every agent"},
    {"links.p", "probability that a link fails"},
};

void rfi_figure_words(const char *path, rfi_text *text)
{
    for (ptrdiff_t i = 0; i < RFI_COUNT(names); i++) {
        if (strcmp(names[i].path, path) == 0) {
            rfi_text_add(text, "%s", names[i].words);
            return;
        }
    }
    char words[RFI_LABEL_SIZE];
    size_t used = 0;
    rfi_append(words, sizeof words, &used, "%s", path);
    for (char *c = words; *c; c++) {
        if (*c == '.' || *c == '_') {
            *c = ' ';
        }
    }
    rfi_figure_safe(text, words);
}

const char *rfi_figure_metric_words(rfi_metric metric)
{
    static const char *const words[RFI_METRICS] = {
        [RFI_MSD] = "mean-square deviation (MSD) [dB]",
        [RFI_EXCESS] = "excess risk [dB]",
        [RFI_CONSENSUS] = "disagreement between agents [dB]",
        [RFI_LOSS] = "test loss",
        [RFI_ACCURACY] = "test accuracy",
        [RFI_WORST_ACCURACY] = "test accuracy of the worst class",
        [RFI_TRUST_HONEST] = "trust in honest agents",
        [RFI_TRUST_MALICIOUS] = "trust in malicious agents",
        [RFI_TRUST_AUC] = "AUC of trust (honest against malicious)",
    };
    return words[metric];
}
