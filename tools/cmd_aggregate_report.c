/* reef aggregate: what it prints, for people and as csv. */
#include "cmd_aggregate.h"
#include "commands.h"
#include "files.h"
#include "terminal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SHOWN = 40, COPIES_SHOWN = 4 };

const char trust_head[] = "file,weight,trust,rejected,fate,why\n";

/* The end of a path; valid until the next call. */
static const char *show(const char *path)
{
    static char shown[NAME_SHOWN + 1];
    return printable(path, shown, sizeof shown);
}

/* One line for a file with its copies. */
static void warn_of(const request *r, const reef_merge_report *report, ptrdiff_t first)
{
    ptrdiff_t copies = 0;
    fprintf(stderr, "reef aggregate: warning: %s", show(r->paths[first]));
    for (ptrdiff_t i = first + 1; i < r->count; i++) {
        if (report->files[i].copy_of == first && copies++ < COPIES_SHOWN) {
            fprintf(stderr, ", %s", show(r->paths[i]));
        }
    }
    if (copies > COPIES_SHOWN) {
        fprintf(stderr, " and %td more", copies - COPIES_SHOWN);
    }
    fprintf(stderr, " have the same content: one model with %td votes\n", copies + 1);
}

void warn_of_copies(const request *r, const reef_merge_report *report)
{
    for (ptrdiff_t i = 0; i < r->count; i++) {
        bool first = report->files[i].copy_of < 0;
        for (ptrdiff_t j = i + 1; first && j < r->count; j++) {
            if (report->files[j].copy_of == i) {
                warn_of(r, report, i);
                break;
            }
        }
    }
}

const char *fate_of(const reef_merge_file *file)
{
    static const char *const reasons[] = {"used", "weight 0", "NaN or Inf", "bad file"};
    if (file->reason == REEF_MERGE_USED && file->trust == 0) {
        return "excluded";
    }
    bool low = file->reason == REEF_MERGE_USED && file->trust < DOWN_WEIGHTED; /* false if trust was not measured */
    return low ? "down-weighted" : reasons[file->reason];
}

static void print_table(const request *r, const reef_merge_report *report)
{
    int width = 4;
    for (ptrdiff_t i = 0; i < r->count; i++) {
        int length = (int)strlen(show(r->paths[i]));
        width = length > width ? length : width;
    }
    fprintf(r->say, "%-*s  %8s  %6s  %8s  %s\n", width, "file", "weight", "trust", "rejected", "fate");
    for (ptrdiff_t i = 0; i < r->count; i++) {
        const reef_merge_file *file = &report->files[i];
        fprintf(r->say, "%-*s  %8.4g  ", width, show(r->paths[i]), r->weights ? r->weights[i] : 1.0);
        if (isnan(file->trust)) { /* not measured */
            fprintf(r->say, "%6s  %8s  ", "-", "-");
        } else {
            fprintf(r->say, "%6.3f  %6.1f %%  ", file->trust, 100 * file->rejected);
        }
        fprintf(r->say, "%s\n", fate_of(file));
    }
    for (ptrdiff_t i = 0; i < r->count; i++) {
        if (report->files[i].why[0]) {
            fprintf(r->say, "left out: %s\n", report->files[i].why);
        }
    }
}

static void print_integers(const request *r, const reef_merge_report *report)
{
    bool measured = !isnan(report->files[report->trusted].trust);
    const char *arbiter =
        measured ? "the most trusted file" : "the first file of the highest weight (trust was not measured)";
    fprintf(r->say, "%lld integer or boolean %s with %lld %s, not averaged: ", (long long)report->integer_tensors,
            report->integer_tensors == 1 ? "tensor" : "tensors", (long long)report->integers,
            report->integers == 1 ? "element" : "elements");
    if (r->merge.integers == REEF_MERGE_TRUSTED) {
        fprintf(r->say, "taken from %s, %s; the files differ at %lld\n", show(r->paths[report->trusted]), arbiter,
                (long long)report->disputed);
        return;
    }
    fprintf(r->say, "by majority; the files differ at %lld", (long long)report->disputed);
    if (report->undecided) {
        fprintf(r->say, ", %lld without a majority taken from %s, %s", (long long)report->undecided,
                show(r->paths[report->trusted]), arbiter);
    }
    fprintf(r->say, "\n");
}

void print_report(const request *r, const reef_merge_report *report)
{
    ptrdiff_t used = 0;
    print_table(r, report);
    for (ptrdiff_t i = 0; i < r->count; i++) {
        used += report->files[i].reason == REEF_MERGE_USED;
    }
    ptrdiff_t tensors = (ptrdiff_t)(report->tensors - report->integer_tensors);
    fprintf(r->say, "%lld number%s in %td tensor%s of %td file%s by %s, %s\n", (long long)report->numbers,
            plural((ptrdiff_t)report->numbers), tensors, plural(tensors), used, plural(used), r->spec,
            r->merge.per_tensor ? "each tensor by itself" : "the model as a whole");
    if (report->integer_tensors) {
        print_integers(r, report);
    }
    if (report->pairs) {
        fprintf(
            r->say,
            "%lld LoRA %s: products aggregated and factored back to their rank, relative error %.2g (largest %.2g)\n",
            (long long)report->pairs, report->pairs == 1 ? "pair" : "pairs", report->pair_error, report->pair_worst);
    }
    if (report->partial) {
        fprintf(r->say, "%lld %s not in all files; merged separately, from the files that have %s\n",
                (long long)report->partial, report->partial == 1 ? "tensor is" : "tensors are",
                report->partial == 1 ? "it" : "them");
    }
    if (report->masked) {
        fprintf(r->say, "%lld %s NaN or Inf and left out\n", (long long)report->masked,
                report->masked == 1 ? "entry was" : "entries were");
    }
    if (report->unconverged) {
        fprintf(r->say, "%lld %s ended before reaching the tolerance\n", (long long)report->unconverged,
                report->unconverged == 1 ? "iteration" : "iterations");
    }
}

void put_quoted(FILE *to, const char *text)
{
    unsigned long code = 0;
    (void)fputc('"', to);
    for (; *text; text++) {
        if (*text == '"') {
            (void)fputc('"', to);
        }
        int control = control_length(text, &code);
        (void)fputc(control > 0 ? '?' : *text, to);
        text += control > 1 ? control - 1 : 0;
    }
    (void)fputc('"', to);
}

static void print_trust(const request *r, const reef_merge_report *report, FILE *to)
{
    (void)fputs(trust_head, to);
    for (ptrdiff_t i = 0; i < r->count; i++) {
        const reef_merge_file *file = &report->files[i];
        put_quoted(to, r->paths[i]);
        (void)fprintf(to, ",%.17g,%.17g,%.17g,%s,", r->weights ? r->weights[i] : 1.0, file->trust, file->rejected,
                      fate_of(file));
        put_quoted(to, file->why);
        (void)fputc('\n', to);
    }
}

int write_trust(const request *r, const reef_merge_report *report)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (to) {
        print_trust(r, report, to);
    }
    bool good = to && !ferror(to);
    good = to && fclose(to) == 0 && good;
    int code = good ? write_output("aggregate", r->trust, text, size) : EXIT_FAILED;
    if (!good) {
        fprintf(stderr, "reef aggregate: no memory for the trust table\n");
    }
    free(text);
    return code;
}
