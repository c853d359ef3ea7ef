/* reef aggregate --json: everything that is printed for people, for programs. */
#include "cmd_aggregate.h"
#include "json.h"

static void put_file(json *j, const request *r, const reef_merge_report *report, ptrdiff_t i)
{
    const reef_merge_file *file = &report->files[i];
    json_open(j, NULL, '{');
    json_text(j, "path", r->paths[i]);
    json_number(j, "weight", r->weights ? r->weights[i] : 1.0);
    json_number(j, "trust", file->trust);
    json_number(j, "rejected", file->rejected);
    json_text(j, "fate", fate_of(file));
    json_text(j, "why", file->why);
    if (file->copy_of >= 0) {
        json_text(j, "copy_of", r->paths[file->copy_of]);
    }
    json_close(j);
}

static void put_integers(json *j, const request *r, const reef_merge_report *report)
{
    json_open(j, "integers", '{');
    json_text(j, "by", r->merge.integers == REEF_MERGE_TRUSTED ? "trusted" : "majority");
    json_whole(j, "tensors", (ptrdiff_t)report->integer_tensors);
    json_whole(j, "elements", (ptrdiff_t)report->integers);
    json_whole(j, "disputed", (ptrdiff_t)report->disputed);
    json_whole(j, "undecided", (ptrdiff_t)report->undecided);
    if (report->trusted >= 0) {
        json_text(j, "most_trusted", r->paths[report->trusted]);
    }
    json_close(j);
}

static void put_tensors(json *j, const tensor_table *table)
{
    json_open(j, "tensors", '[');
    for (ptrdiff_t t = 0; t < table->count; t++) {
        json_open(j, NULL, '{');
        json_text(j, "name", table->rows[t].name);
        json_whole(j, "numbers", (ptrdiff_t)table->rows[t].numbers);
        json_open(j, "trust", '[');
        for (ptrdiff_t i = 0; i < table->files; i++) {
            json_number(j, NULL, table->rows[t].trust[i]);
        }
        json_close(j);
        json_close(j);
    }
    json_close(j);
}

void print_json(const request *r, const reef_merge_report *report, const findings *found)
{
    json j = json_start(stdout);
    json_open(&j, NULL, '{');
    json_text(&j, "output", r->out);
    json_text(&j, "rule", r->spec);
    json_flag(&j, "per_tensor", r->merge.per_tensor);
    json_whole(&j, "numbers", (ptrdiff_t)report->numbers);
    json_whole(&j, "float_tensors", (ptrdiff_t)(report->tensors - report->integer_tensors));
    json_whole(&j, "missing", (ptrdiff_t)report->missing);
    json_whole(&j, "partial", (ptrdiff_t)report->partial);
    json_open(&j, "lora", '{');
    json_whole(&j, "pairs", (ptrdiff_t)report->pairs);
    json_number(&j, "error", report->pair_error);
    json_number(&j, "worst", report->pair_worst);
    json_close(&j);
    json_whole(&j, "masked", (ptrdiff_t)report->masked);
    json_whole(&j, "unconverged", (ptrdiff_t)report->unconverged);
    put_integers(&j, r, report);
    json_open(&j, "files", '[');
    for (ptrdiff_t i = 0; i < r->count; i++) {
        put_file(&j, r, report, i);
    }
    json_close(&j);
    if (r->trust_tensors) {
        put_tensors(&j, &found->tensors);
    }
    json_open(&j, "notes", '[');
    for (ptrdiff_t i = 0; i < found->note_count; i++) {
        json_text(&j, NULL, found->notes[i]);
    }
    json_close(&j);
    json_close(&j);
}
