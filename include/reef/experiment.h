/* Experiments: a YAML file names agents, graph, problem, strategy, rules and attack; every list in it is swept, and the grid of all
 * lists is run, repeated, averaged and written to a folder.
 *
 *     reef_experiment *experiment = NULL;
 *     reef_experiment_load(context, &experiment, "paper.yaml", NULL, 0, &error);        everything is checked here
 *     reef_experiment_run(experiment, &(reef_experiment_options){.folder = "results"}, &outcome, &error);
 *     reef_experiment_destroy(&experiment);
 *
 * The context's threads share the work; results do not depend on their number. docs/experiments.md describes the format.
 */
#ifndef REEF_EXPERIMENT_H
#define REEF_EXPERIMENT_H

#include <reef/engine.h>
#include <reef/graph.h>
#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An experiment: immutable after it is read. Several threads may run it at once, each into a separate folder. The context must outlive it. */
typedef struct reef_experiment reef_experiment;

/* Reads a file and checks all of it: every cell's objects are made once. Messages begin with file:line:column. overrides: `count`
 * texts "path=value" ("strategy.mu=0.05") with the value in YAML, which replace what the file says. The context, which may be NULL (one
 * thread), must outlive the experiment. */
REEF_API REEF_MUST_CHECK reef_status reef_experiment_load(reef_context *context, reef_experiment **experiment,
                                                          const char *path, const char *const *overrides,
                                                          ptrdiff_t count, reef_error *error);
/* The same from memory; `source` replaces the file's name in messages. */
REEF_API REEF_MUST_CHECK reef_status reef_experiment_read(reef_context *context, reef_experiment **experiment,
                                                          const void *text, size_t size, const char *source,
                                                          const char *const *overrides, ptrdiff_t count,
                                                          reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_experiment_destroy(reef_experiment **experiment);

/* The name given in the file or, without one, the file's name without folder and ending. */
REEF_API const char *reef_experiment_name(const reef_experiment *experiment);
/* Cells of the grid, >= 1. */
REEF_API ptrdiff_t reef_experiment_cells(const reef_experiment *experiment);
/* How many parameters vary. Axes are in the order of the file and have paths such as "attack.delta". */
REEF_API ptrdiff_t reef_experiment_axes(const reef_experiment *experiment);
/* The path of an axis; NULL out of range. */
REEF_API const char *reef_experiment_axis(const reef_experiment *experiment, ptrdiff_t axis);
/* The value of an axis in a cell, like snprintf; returns the length. */
REEF_API size_t reef_experiment_value(const reef_experiment *experiment, ptrdiff_t cell, ptrdiff_t axis, char *text,
                                      size_t size);

/* The progress of a run; times in seconds. */
typedef struct reef_progress {
    ptrdiff_t cells, cells_done; /* jobs: cells and, if wanted, oracles */
    ptrdiff_t items, items_done; /* blocks of repetitions */
    double seconds;              /* since the start */
    ptrdiff_t finished;          /* the cell that has just been finished, or -1 */
    const char *metric;          /* its first metric */
    double value;                /* the steady state of that metric; in decibels where that is usual */
} reef_progress;

/* What is spread over the ranks of an engine. */
typedef enum reef_distribute {
    REEF_DISTRIBUTE_AUTO,   /* cells if each fits the memory of a rank, agents otherwise */
    REEF_DISTRIBUTE_CELLS,  /* blocks of repetitions, each on one rank */
    REEF_DISTRIBUTE_AGENTS, /* the agents of each run */
} reef_distribute;

/* How an experiment is run. Everything may be left zero. */
typedef struct reef_experiment_options {
    size_t size;        /* sizeof of this struct, so that later versions can add members; 0: as version 0.2 has it */
    const char *folder; /* created if it does not exist; NULL: nothing is written */
    bool resume;        /* cells that the folder already has are not run again */
    bool force;         /* use a folder even if it has results of another configuration (otherwise REEF_E_EXISTS) */
    bool arrays;        /* also write the curves as .npy files, in arrays/ */
    bool models;        /* also write the trained model of each cell's first repetition as safetensors, in models/ */
    /* Called after every block of repetitions, from any thread but one at a time; NULL: not wanted. */
    void (*progress)(void *user, const reef_progress *progress);
    void *user;                        /* passed to progress */
    const volatile sig_atomic_t *stop; /* when it becomes non-zero, the run ends soon, cleanly; NULL: never */
    /* NULL: one process. Otherwise every rank loads the same experiment and calls run; the folder must be given, and all ranks must
     * see it. Results are bit-identical to those of one process. */
    const reef_engine *engine;
    reef_distribute distribute; /* auto, cells or agents */
    /* If agents are spread over ranks: a checkpoint is written at the first point of the curve after so many rounds; 0: not by rounds. */
    int64_t checkpoint_rounds;
    double checkpoint_seconds; /* or after so many seconds; 0: 300 s, or only by rounds */
} reef_experiment_options;

/* The outcome of a run. */
typedef struct reef_experiment_outcome {
    bool stopped;     /* not all configurations were run; run again with resume to complete them */
    ptrdiff_t reused; /* cells reused from the folder */
    /* damaged files of cells and models, and damaged checkpoints, whose content was computed again */
    ptrdiff_t damaged;
    double seconds; /* duration */
} reef_experiment_outcome;

/* Runs all cells. Only one run at a time may use a folder (otherwise REEF_E_FILE, with the number of the other process); manifest.json exists if
 * and only if the run was finished. The folder then has summary.csv, curves.csv, check.txt, manifest.json, the configuration, scripts of the figures, and
 * one file per cell in cells/. */
REEF_API REEF_MUST_CHECK reef_status reef_experiment_run(const reef_experiment *experiment,
                                                         const reef_experiment_options *options,
                                                         reef_experiment_outcome *outcome, reef_error *error);

/* What is known about a configuration before it runs. */
typedef struct reef_cell_facts {
    bool has_graph;                /* graph, has_spectrum and spectrum are filled in */
    bool no_attack;                /* malicious agents, but no attack: they behave honestly */
    reef_graph_facts graph;        /* of its network */
    bool has_spectrum;             /* the honest agents are connected */
    reef_spectrum spectrum;        /* with has_spectrum */
    double perron_min, perron_max; /* over the honest agents */
    ptrdiff_t malicious_count;     /* placed */
    ptrdiff_t
        tolerated; /* malicious agents that the rule tolerates in the smallest neighbourhood with its own f; -1: it states none */
    double theory; /* predicted MSD of the mean over the honest agents; NaN if unknown */
} reef_cell_facts;
/* Facts about a cell, without running it. */
REEF_API REEF_MUST_CHECK reef_status reef_experiment_check(const reef_experiment *experiment, ptrdiff_t cell,
                                                           reef_cell_facts *facts, reef_error *error);
/* The facts of all cells, in order. This is much faster than one by one, because cells share what they have in common. */
REEF_API REEF_MUST_CHECK reef_status reef_experiment_check_all(const reef_experiment *experiment,
                                                               void (*tell)(void *user, ptrdiff_t cell,
                                                                            const reef_cell_facts *facts),
                                                               void *user, reef_error *error);
/* Writes the facts as indented lines, like snprintf; warnings begin with WARNING. *warnings (or NULL): their number. */
REEF_API size_t reef_cell_facts_print(const reef_cell_facts *facts, char *text, size_t size, ptrdiff_t *warnings);

/* Generates the scripts and data of the figures in folder/figures again from folder/config.yaml, manifest.json and cells/. No script found in the
 * folder is run, since it may come from a stranger. Files that the configuration names (data, graphs) are read again. */
REEF_API REEF_MUST_CHECK reef_status reef_experiment_redraw(reef_context *context, const char *folder,
                                                            reef_error *error);

/* Makes folder/report.html, one file that needs no others, from what a run has left in the folder: figures that have been drawn as svg,
 * tables, warnings, configuration. Missing figures and tables are left out. */
REEF_API REEF_MUST_CHECK reef_status reef_experiment_report(reef_context *context, const char *folder,
                                                            reef_error *error);

/* summary.csv of a results folder in memory: a row per cell, as text. Rows and columns from 0; column 0 is the number of the cell,
 * columns 1 .. axes are what varies. Out of range: NULL. May be read from many threads; the context must outlive it. */
typedef struct reef_summary reef_summary;
/* Reads summary.csv of a results folder. */
REEF_API REEF_MUST_CHECK reef_status reef_summary_load(reef_context *context, reef_summary **summary,
                                                       const char *folder, reef_error *error);
/* Accepts NULL, sets the pointer to NULL. */
REEF_API void reef_summary_destroy(reef_summary **summary);
/* Cells in the table. */
REEF_API ptrdiff_t reef_summary_rows(const reef_summary *summary);
/* Columns, including the number of the cell. */
REEF_API ptrdiff_t reef_summary_columns(const reef_summary *summary);
/* How many columns after the first say what varies. */
REEF_API ptrdiff_t reef_summary_axes(const reef_summary *summary);
/* The name of a column; NULL out of range. */
REEF_API const char *reef_summary_name(const reef_summary *summary, ptrdiff_t column);
/* A field as text; NULL out of range. */
REEF_API const char *reef_summary_field(const reef_summary *summary, ptrdiff_t row, ptrdiff_t column);

#ifdef __cplusplus
}
#endif
#endif
