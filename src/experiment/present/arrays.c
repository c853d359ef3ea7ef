/* Curves as npy files, for further work in Python: arrays/METRIC.npy and METRIC_se.npy have one row per cell and one column per
 * point, arrays/round.npy the rounds of the points; arrays/trust.npy one row per cell and one column per agent. Rows of shorter curves
 * are filled up with NaN. */
#include "base/error.h"
#include "base/memory.h"
#include "experiment/run/outcome.h"
#include "io/npy.h"

#include <math.h>
#include <stdio.h>

/* What a file has in each place. */
typedef enum content { ROUND, MEAN, ERROR, TRUST } content;

typedef struct sheet {
    const rfi_results *results;
    content content;
    int metric;
    ptrdiff_t rows, columns;
    double *numbers;
} sheet;

static double number_at(const sheet *s, ptrdiff_t cell, ptrdiff_t column)
{
    const rfi_outcome *o = s->results->cells[cell];
    if (s->content == TRUST) {
        return column < o->agents ? rfi_outcome_trust(o, column).mean : (double)NAN;
    }
    if (column >= o->points || (s->content != ROUND && !o->wanted[s->metric])) {
        return (double)NAN;
    }
    if (s->content == ROUND) {
        return (double)rfi_outcome_round(o, column);
    }
    ptrdiff_t row = 0;
    for (int m = 0; m < s->metric; m++) {
        row += o->wanted[m];
    }
    rfi_moments m = rfi_outcome_at(o, row, column);
    return s->content == MEAN ? m.mean : rfi_outcome_error(o, m);
}

static reef_status write_sheet(const sheet *s, const char *folder, const char *name, const char *more,
                               reef_error *error)
{
    char path[4096];
    const ptrdiff_t shape[] = {s->rows, s->columns};
    if ((size_t)snprintf(path, sizeof path, "%s/%s%s.npy", folder, name, more) >= sizeof path) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results folder is too long");
    }
    for (ptrdiff_t i = 0; i < s->rows; i++) {
        for (ptrdiff_t j = 0; j < s->columns; j++) {
            s->numbers[i * s->columns + j] = number_at(s, i, j);
        }
    }
    return rfi_npy_write(s->results->experiment->context, path, RFI_F64, 2, shape, s->numbers, error);
}

static reef_status write_metrics(sheet *s, const char *folder, reef_error *error)
{
    s->content = ROUND;
    reef_status status = write_sheet(s, folder, "round", "", error);
    for (int m = 0; m < RFI_METRICS && status == REEF_OK; m++) {
        bool wanted = false;
        for (ptrdiff_t i = 0; i < s->rows; i++) {
            wanted = wanted || s->results->cells[i]->wanted[m];
        }
        if (!wanted) {
            continue;
        }
        s->metric = m;
        s->content = MEAN;
        status = write_sheet(s, folder, rfi_metric_name((rfi_metric)m), "", error);
        s->content = ERROR;
        if (status == REEF_OK) {
            status = write_sheet(s, folder, rfi_metric_name((rfi_metric)m), "_se", error);
        }
    }
    return status;
}

reef_status rfi_arrays_write(const rfi_results *results, const char *folder, reef_error *error)
{
    char path[4096];
    ptrdiff_t points = 1;
    ptrdiff_t agents = 0;
    sheet s = {.results = results, .rows = results->experiment->cells};
    for (ptrdiff_t i = 0; i < s.rows; i++) {
        const rfi_outcome *o = results->cells[i];
        points = o->points > points ? o->points : points;
        agents = o->agents > agents ? o->agents : agents;
    }
    if ((size_t)snprintf(path, sizeof path, "%s/arrays", folder) >= sizeof path) {
        return rfi_fail(error, REEF_E_FILE, "the path of the results folder is too long");
    }
    ptrdiff_t count = 0;
    if (!rfi_mul(s.rows, points > agents ? points : agents, &count)) {
        return rfi_fail(error, REEF_E_OVERFLOW, "the curves are too large for arrays");
    }
    s.numbers = rfi_allocate_many(results->experiment->context, count, sizeof *s.numbers);
    if (!s.numbers) {
        return rfi_fail(error, REEF_E_NOMEM, "not enough memory for the arrays of %td configurations", s.rows);
    }
    s.columns = points;
    reef_status status = rfi_make_folder(path, error);
    if (status == REEF_OK) {
        status = write_metrics(&s, path, error);
    }
    if (status == REEF_OK && agents > 0) {
        s.content = TRUST;
        s.columns = agents;
        status = write_sheet(&s, path, "trust", "", error);
    }
    rfi_release(results->experiment->context, s.numbers);
    return status;
}
