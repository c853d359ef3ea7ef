/* reef aggregate: what its files share. cmd_aggregate.c reads the command line, cmd_aggregate_job.c does the
 * job, the others print. */
#ifndef REEF_TOOLS_CMD_AGGREGATE_H
#define REEF_TOOLS_CMD_AGGREGATE_H

#include <reef/reef.h>
#include <stdbool.h>
#include <stdio.h>

enum { RULE_TEXT = 4200 };

/* What the command line says. */
typedef struct request {
    reef_merge_options merge;
    const char *rule, *nan, *out, *trust, *trust_tensors;
    const char *weights_text, *ids_text;
    char *ids_memory; /* ids_text, cut at its commas */
    const char **ids;
    double *weights;
    long threads;
    bool quiet, json;
    FILE *say; /* where people read: standard error if standard output is an output */
    const char *const *paths;
    ptrdiff_t count;
    char spec[RULE_TEXT]; /* rule with nan= */
} request;

/* Trust of every file in one tensor. */
typedef struct tensor_row {
    char *name;
    int64_t numbers;
    double *trust; /* files */
} tensor_row;

typedef struct tensor_table {
    ptrdiff_t files, count, room;
    tensor_row *rows;
    bool failed; /* there was no memory for a row */
} tensor_table;

/* What a merge tells on its way. */
typedef struct findings {
    tensor_table tensors;
    char **notes; /* sentences */
    ptrdiff_t note_count;
} findings;

/* Progress on standard error if that is a terminal: after two seconds, twice a second at most. */
typedef struct meter {
    bool wanted;
    double start, last; /* seconds */
    double bytes;       /* of all models */
    int shown;          /* columns of the line that stands there */
} meter;

/* cmd_aggregate_progress.c */

meter meter_start(const request *r);
/* "42 %  1.31 GB/s  12 s left": share of the work that is done, models read per second. */
void meter_show(meter *m, double share);
/* Removes the line: before anything else is printed, and at the end. */
void meter_clear(meter *m);

/* cmd_aggregate_json.c: on standard output. */
void print_json(const request *r, const reef_merge_report *report, const findings *found);

/* cmd_aggregate_job.c: does it; returns an exit code. */
int do_request(const request *r);

/* cmd_aggregate_tensors.c */

void note_tensor(tensor_table *table, const char *name, int64_t numbers, const double *trust);
/* As csv. Returns an exit code. */
int write_tensors(const request *r, const tensor_table *table);
/* For people: which files were down-weighted where, by common prefix. Sorts the table. */
void print_by_tensor(const request *r, tensor_table *table);
void free_tensors(tensor_table *table);

/* cmd_aggregate_report.c */

/* How the first lines of tables of trust begin. */
extern const char trust_head[], tensors_head[];
/* Below this trust a file, or a tensor of it, is called down-weighted. */
#define DOWN_WEIGHTED 0.5
/* What became of a file, in a few words. */
const char *fate_of(const reef_merge_file *file);
/* A field of a csv line, quoted; control characters become '?', as in the table for people. --json has names exactly. */
void put_quoted(FILE *to, const char *text);

/* Tells of files with the same content, on standard error. */
void warn_of_copies(const request *r, const reef_merge_report *report);
/* For people. */
void print_report(const request *r, const reef_merge_report *report);
/* As csv. Returns an exit code. */
int write_trust(const request *r, const reef_merge_report *report);

#endif
