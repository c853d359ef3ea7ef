/* Internals of experiments.
 *
 *   config.c    file and overrides -> tree -> axes and grid
 *   resolve.c   a cell of the grid: numbers and one spec string per part
 *   records.c   every cell resolved once: what the run needs to know about it
 *   stock.c     objects that cells share, each made once
 *   world.c     the objects of a cell, and which key is at fault if one cannot be made
 *   facts.c     what can be said about a cell without running it
 *   metrics.c   what is measured
 *   run.c       jobs (a cell, or its oracle) in items (blocks of repetitions) on all threads
 *   ranks.c     the same on several ranks, and checkpoints
 *   store.c     results of one job in a file, for resume
 *   check.c     facts as text, warnings among them
 *   results.c   the tables and the manifest
 *   trust.c     the trust each agent received: a table and a picture of the network
 *   arrays.c    curves as npy files
 *   model.c     trained models as safetensors files
 *   figures.h   gnuplot scripts and their data; a file per kind
 *   report.c    one page of HTML from a folder of results
 *   text.c      growing texts
 */
#ifndef RFI_EXPERIMENT_CONFIG_EXPERIMENT_H
#define RFI_EXPERIMENT_CONFIG_EXPERIMENT_H

#include "base/spec.h"
#include "io/yaml.h"

#include <reef/experiment.h>
#include <reef/learn.h>

/* Repetitions that run side by side, where they can. */
enum { RFI_RUN_LANES = 16 };
enum { RFI_AXES_MAX = 32, RFI_CELLS_MAX = 100000, RFI_PAIRS_MAX = 64, RFI_LABEL_SIZE = 256 };

/* What is named by a spec string. */
typedef enum rfi_part {
    RFI_PART_GRAPH,
    RFI_PART_WEIGHTS,
    RFI_PART_LINKS,
    RFI_PART_PROBLEM,
    RFI_PART_STRATEGY,
    RFI_PART_RULE,
    RFI_PART_ATTACK,
    RFI_PART_PLACEMENT,
    RFI_PARTS
} rfi_part;
extern const char *const rfi_part_names[RFI_PARTS];

/* The plain numbers of a cell; their field table is rfi_number_fields. */
typedef struct rfi_cell_numbers {
    int64_t agents, rounds, repetitions, seed;
    int64_t every, steady; /* rounds; -1 in the table means auto, after resolving they are numbers */
    reef_malicious malicious_count;
    bool trust, oracle;
} rfi_cell_numbers;
enum { RFI_NUMBERS = 9 };
extern const reef_field rfi_number_fields[RFI_NUMBERS];

/* ---- metrics.c ---- */

typedef enum rfi_metric {
    RFI_MSD,
    RFI_EXCESS,
    RFI_CONSENSUS,
    RFI_LOSS,
    RFI_ACCURACY,
    RFI_WORST_ACCURACY,
    RFI_TRUST_HONEST,
    RFI_TRUST_MALICIOUS,
    RFI_TRUST_AUC,
    RFI_METRICS
} rfi_metric;

const char *rfi_metric_name(rfi_metric metric);
/* Powers, shown in decibels. */
bool rfi_metric_decibels(rfi_metric metric);
/* NULL if a problem, with or without trust, has this metric; otherwise what it lacks. */
const char *rfi_metric_lacks(rfi_metric metric, const reef_problem *problem, bool trust);
/* Values of the wanted metrics of a run, one row of `lanes` numbers each, in the order of the enum. */
reef_status rfi_metric_eval(const reef_run *run, const bool wanted[RFI_METRICS], double *values, reef_error *error);

/* ---- the tree ---- */

/* A list that is swept. */
typedef struct rfi_axis {
    char path[96];              /* "rule", "attack.delta" */
    const rfi_yaml_node *top;   /* entry of the root */
    const rfi_yaml_node *child; /* entry of that map whose value is the list; NULL: top's own value is */
    ptrdiff_t count;
    ptrdiff_t dimension; /* of the grid; zipped axes share one */
} rfi_axis;

/* stock.h */
typedef struct rfi_stock rfi_stock;
typedef struct rfi_shared rfi_shared;

/* What is known of a cell once it has been resolved. */
typedef struct rfi_cell_record {
    rfi_cell_numbers numbers;
    bool wanted[RFI_METRICS];
    char *key;                   /* everything that determines its results (rfi_world_print) */
    char *oracle_key;            /* the same of its oracle; NULL without one */
    ptrdiff_t agents;            /* whose trust is kept; 0: none */
    const reef_memory *memory;   /* of the rule whose trust is kept, or NULL */
    ptrdiff_t views;             /* numbers kept per agent: trust, and what each of the memory's tests left of it */
    bool lanes, oracle_lanes;    /* repetitions can run side by side */
    double bytes;                /* of its models, roughly */
    const rfi_shared *placement; /* who is malicious, if trust is kept; else NULL */
} rfi_cell_record;

struct reef_experiment {
    reef_context *context;
    char *source; /* path */
    char name[RFI_LABEL_SIZE];
    char *text; /* the file as it was read */
    size_t text_size;
    rfi_yaml yaml;
    char **override_texts;    /* as given */
    char **override_names;    /* "--set ..." for messages */
    rfi_yaml *override_trees; /* two per override: the value, and a spec string turned into a map for it */
    ptrdiff_t override_count;
    rfi_axis axes[RFI_AXES_MAX];
    ptrdiff_t axis_count;
    ptrdiff_t sizes[RFI_AXES_MAX]; /* of the dimensions; the last varies fastest */
    ptrdiff_t dimensions;
    ptrdiff_t cells;
    rfi_stock *stock;         /* objects that cells share */
    rfi_cell_record *records; /* per cell */
    bool chosen_metrics;      /* by the file */
    bool metrics[RFI_METRICS];
    const rfi_yaml_node *metric_nodes[RFI_METRICS];
};

/* Fails with "file:line:column: text"; at_key: the place of the node's key. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
reef_status
rfi_fail_at(reef_error *error, reef_status status, const rfi_yaml_node *node, bool at_key, const char *format, ...);

/* ---- old_keys.c ---- */

/* The name that version 0.2 has for what older files call `name`; the same pointer if that has not changed. */
const char *rfi_name_today(const char *name);
/* Old names of keys, and those in zip and metrics, become those of today. */
reef_status rfi_renew_names(rfi_yaml_node *root, reef_error *error);

/* ---- resolve.c ---- */

/* key = value of a map, chosen from lists where there are such. */
typedef struct rfi_field_value {
    const rfi_yaml_node *entry; /* with the key */
    const rfi_yaml_node *value;
} rfi_field_value;

/* One part as a cell has it. */
typedef struct rfi_object {
    ptrdiff_t part;
    const rfi_yaml_node *node; /* scalar or map; NULL: not given */
    rfi_field_value kind;
    rfi_field_value pairs[RFI_PAIRS_MAX];
    ptrdiff_t pair_count;
} rfi_object;

typedef struct rfi_cell {
    rfi_cell_numbers numbers;
    const rfi_yaml_node *number_nodes[RFI_NUMBERS]; /* NULL: preset */
    rfi_object objects[RFI_PARTS];
    char specs[RFI_PARTS][RFI_SPEC_LENGTH_MAX + 1]; /* "": not given */
} rfi_cell;

/* Index of a part or number of that name, or -1. */
ptrdiff_t rfi_part_find(const char *name);
ptrdiff_t rfi_number_find(const char *name);
/* Whether a value is a list to be swept, rather than the value of a field that is a list. part -1: a number. */
bool rfi_is_swept(ptrdiff_t part, const rfi_yaml_node *value, const char *key);
/* Ways an element of a list of parts can be: product of the lists in it; 0 with a message if it cannot be one. */
ptrdiff_t rfi_element_ways(ptrdiff_t part, const rfi_yaml_node *element, reef_error *error);
reef_status rfi_resolve(const reef_experiment *experiment, ptrdiff_t index, rfi_cell *cell, reef_error *error);
/* The spec of an object with those of its pairs whose bit is set. */
reef_status rfi_object_spec(const rfi_object *object, uint64_t pairs, char spec[RFI_SPEC_LENGTH_MAX + 1],
                            reef_error *error);

/* ---- world.c ---- */

/* The objects of a cell. Graph, links, problem and placement are the stock's, shared with other worlds and cells. */
typedef struct rfi_world {
    const reef_experiment *experiment;
    reef_context *context;
    bool set; /* cell describes the objects */
    ptrdiff_t index;
    rfi_cell cell;
    rfi_cell next;
    const rfi_shared *held[RFI_PARTS]; /* in use here; NULL for parts that are not shared, or not there */
    const reef_graph *graph;
    const reef_links *links;
    const reef_problem *problem;
    const bool *malicious;
    reef_agg *rule;
    reef_attack *attack;
    char rule_spec[RFI_SPEC_LENGTH_MAX + 1], attack_spec[RFI_SPEC_LENGTH_MAX + 1]; /* of which they were made */
    ptrdiff_t agents, malicious_count;
} rfi_world;

/* NULL: no memory. */
rfi_world *rfi_world_create(const reef_experiment *experiment, reef_context *context);
void rfi_world_destroy(rfi_world **world);
reef_status rfi_world_set(rfi_world *world, ptrdiff_t index, reef_error *error);
/* A run of the world's cell; oracle: by the oracle strategy instead. */
typedef struct rfi_repeat_block {
    bool oracle;
    bool dry; /* only to be checked and asked, without memory for models */
    ptrdiff_t lanes, repetition;
    const reef_engine *engine; /* its agents are spread over these ranks; NULL: they are all here */
    bool played;               /* elsewhere: learn/played.h */
} rfi_repeat_block;
reef_status rfi_world_run(rfi_world *world, const rfi_repeat_block *block, reef_run **run, reef_error *error);
/* Whether repetitions of this cell can run side by side. */
bool rfi_world_lanes(const rfi_world *world, bool oracle);
/* ---- facts.c ---- */

/* Metrics of this cell. */
reef_status rfi_world_metrics(const rfi_world *world, bool wanted[RFI_METRICS], reef_error *error);
/* Predicted MSD of the mean over the honest agents, NaN if unknown. */
double rfi_world_theory(rfi_world *world);
/* All facts except theory; same_network: facts is that of a cell with the same network and placement, and that part of it stays. */
reef_status rfi_world_facts(rfi_world *world, bool same_network, reef_cell_facts *facts, reef_error *error);
/* Everything that determines the results of the cell, one "key value" per line. */
reef_status rfi_world_print(rfi_world *world, bool oracle, char *text, size_t size, reef_error *error);

/* Room for rfi_world_print. */
enum { RFI_PRINT_SIZE = 10 * RFI_SPEC_LENGTH_MAX };

/* ---- records.c ---- */

/* Resolves and checks every cell, and keeps what is known of it in experiment->records. */
reef_status rfi_records_make(reef_experiment *experiment, reef_error *error);
void rfi_records_free(reef_experiment *experiment);

#endif
