/* file: links from a text file, one per line or as a matrix.
 *
 *   edges    lines "l k" or "l k weight": k hears l; undirected files mean both ways
 *   matrix   row l, column k: whether k hears l (0 or 1), or with which weight a_lk; a matrix is always directed
 *
 * Numbers are separated by blanks, tabs, commas or semicolons; # begins a comment; agents are numbered from 0. */
#include "graph/graph.h"

#include "base/error.h"

#include <math.h>

typedef struct file_params {
    char path[REEF_TEXT_SIZE];
    int format;
    bool directed;
    int values;
} file_params;

enum { EDGES, MATRIX };
enum { AUTO, WEIGHTS, LINKS };
static const char *const formats[] = {"edges", "matrix", NULL};
static const char *const value_words[] = {"auto", "weights", "links", NULL};

static const reef_field file_fields[] = {
    {.name = "path",
     .type = REEF_FIELD_TEXT,
     .offset = offsetof(file_params, path),
     .preset = "",
     .unit = "",
     .help = "the file"},
    {.name = "format",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(file_params, format),
     .preset = "edges",
     .unit = "",
     .help = "one link per line (l k [weight]), or a matrix with a row per sender and a column per receiver",
     .words = formats},
    {.name = "directed",
     .type = REEF_FIELD_BOOL,
     .offset = offsetof(file_params, directed),
     .preset = "false",
     .unit = "",
     .help = "edges: links go only from the first agent to the second"},
    {.name = "values",
     .type = REEF_FIELD_WORD,
     .offset = offsetof(file_params, values),
     .preset = "auto",
     .unit = "",
     .help = "what the values are: weights, or only links; auto: weights, unless a matrix has only 0 and 1",
     .words = value_words},
};

/* One pass over the file. */
typedef struct reading {
    rfi_numbers *input;
    rfi_draft *draft;
    bool weighted;     /* take values as weights */
    bool plain;        /* only 0 and 1 so far (matrix), or lines without a weight (edges) */
    ptrdiff_t largest; /* largest agent number seen */
    ptrdiff_t lines;
} reading;

static reef_status wrong(const reading *r, ptrdiff_t line, reef_error *error, const char *what)
{
    return rfi_fail(error, REEF_E_FORMAT, "%s:%td: %s", r->input->name, line, what);
}

/* The numbers of one line, at most `room` + 1 counted; *count is -1 at the end of the file. */
static reef_status read_line(const reading *r, double *values, ptrdiff_t room, ptrdiff_t *count, ptrdiff_t *line,
                             reef_error *error)
{
    *count = 0;
    for (;;) {
        double value = 0;
        reef_status status = REEF_OK;
        ptrdiff_t at = r->input->line;
        switch (rfi_numbers_next(r->input, &value, &status, error)) {
        case RFI_NUMBERS_ERROR:
            return status;
        case RFI_NUMBERS_END:
            *count = *count > 0 ? *count : -1;
            return REEF_OK;
        case RFI_NUMBERS_LINE_END:
            if (*count > 0) {
                return REEF_OK;
            }
            break;
        case RFI_NUMBERS_VALUE:
            *line = at;
            if (*count < room) {
                values[*count] = value;
            }
            *count += *count <= room;
            break;
        }
    }
}

static bool is_agent(double number)
{
    return number >= 0 && number < INT32_MAX - 1 && number == floor(number);
}

static reef_status add_edge(reading *r, const double *values, ptrdiff_t count, ptrdiff_t line, reef_error *error)
{
    if (count != 2 && count != 3) {
        return wrong(r, line, error, "a line of an edge list reads: sender receiver [weight]");
    }
    if (!is_agent(values[0]) || !is_agent(values[1])) {
        return wrong(r, line, error, "agents are whole numbers from 0");
    }
    double larger = fmax(values[0], values[1]);
    if (r->draft->agents > 0 && larger >= (double)r->draft->agents) {
        return rfi_fail(error, REEF_E_FORMAT, "%s:%td: agent %.0f, but agents are numbered 0 to %td", r->input->name,
                        line, larger, r->draft->agents - 1);
    }
    if (r->weighted && (count == 2 || values[2] < 0)) {
        return wrong(r, line, error, "every line needs a weight >= 0, because the first one has one or values=weights");
    }
    r->largest = larger > (double)r->largest ? (ptrdiff_t)larger : r->largest;
    rfi_draft_add(r->draft, (ptrdiff_t)values[0], (ptrdiff_t)values[1], r->weighted ? values[2] : 0);
    return REEF_OK;
}

/* The first line decides whether there are weights. */
static reef_status read_edges(reading *r, int kind, reef_error *error)
{
    double values[3] = {0};
    ptrdiff_t count = 0;
    ptrdiff_t line = 0;
    reef_status status = read_line(r, values, 3, &count, &line, error);
    r->weighted = kind == WEIGHTS || (kind == AUTO && count == 3);
    r->draft->weighted = r->weighted;
    while (status == REEF_OK && count > 0) {
        status = add_edge(r, values, count, line, error);
        if (status == REEF_OK) {
            r->lines++;
            status = read_line(r, values, 3, &count, &line, error);
        }
    }
    return status;
}

/* A single agent number must not cost memory for millions of agents that nobody spoke of. */
static reef_status settle_agents(const reading *r, reef_error *error)
{
    rfi_draft *draft = r->draft;
    if (draft->agents > 0) {
        return REEF_OK;
    }
    if (r->lines == 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: the file has no link; set the number of agents", r->input->name);
    }
    if (r->largest > 2 * r->lines + 1000) {
        return rfi_fail(
            error, REEF_E_FORMAT,
            "%s: the file mentions agent %td, but has only %td links; if there are so many agents, set their number",
            r->input->name, r->largest, r->lines);
    }
    draft->agents = r->largest + 1;
    return REEF_OK;
}

/* ---- matrix ---- */

static reef_status add_entry(reading *r, ptrdiff_t row, ptrdiff_t column, double value, reef_error *error)
{
    if (value < 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s:%td: the entry %g is negative", r->input->name, r->input->line,
                        value);
    }
    r->plain = r->plain && (value == 0 || value == 1);
    if (value != 0) {
        rfi_draft_add(r->draft, row, column, value);
    }
    return REEF_OK;
}

/* Ends a row: its length must be that of the first. */
static reef_status end_row(const reading *r, ptrdiff_t length, ptrdiff_t *columns, ptrdiff_t line, reef_error *error)
{
    if (*columns == 0) {
        *columns = length;
    }
    if (length != *columns) {
        return rfi_fail(error, REEF_E_FORMAT, "%s:%td: the row has %td entries, the first one has %td", r->input->name,
                        line, length, *columns);
    }
    return REEF_OK;
}

static reef_status check_matrix(const reading *r, ptrdiff_t rows, ptrdiff_t columns, reef_error *error)
{
    if (rows != columns || rows == 0) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: the matrix has %td rows and %td columns; it must be square",
                        r->input->name, rows, columns);
    }
    if (r->draft->agents > 0 && rows != r->draft->agents) {
        return rfi_fail(error, REEF_E_FORMAT, "%s: the matrix is for %td agents, but %td were requested",
                        r->input->name, rows, r->draft->agents);
    }
    r->draft->agents = rows;
    return REEF_OK;
}

static reef_status read_matrix(reading *r, reef_error *error)
{
    ptrdiff_t row = 0;
    ptrdiff_t column = 0;
    ptrdiff_t columns = 0; /* of the first row, once it is over */
    rfi_numbers_item item = RFI_NUMBERS_VALUE;
    reef_status status = REEF_OK;
    r->draft->weighted = true; /* until it is known that all entries are 0 and 1 */
    while (item != RFI_NUMBERS_END && status == REEF_OK) {
        double value = 0;
        ptrdiff_t line = r->input->line;
        item = rfi_numbers_next(r->input, &value, &status, error);
        if (item == RFI_NUMBERS_VALUE) {
            bool fits = column < (columns ? columns : INT32_MAX - 1) && row < (columns ? columns : 1);
            status = fits ? add_entry(r, row, column, value, error)
                          : wrong(r, line, error, "the matrix has more rows or entries in a row than columns");
            column++;
        } else if (item != RFI_NUMBERS_ERROR && column > 0) {
            status = end_row(r, column, &columns, line, error);
            column = 0;
            row++;
        }
    }
    if (status != REEF_OK) {
        return status;
    }
    return check_matrix(r, row, columns, error);
}

static reef_status read_file(const file_params *p, reading *r, reef_error *error)
{
    if (p->format == EDGES) {
        r->draft->directed = p->directed;
        reef_status status = read_edges(r, p->values, error);
        if (status != REEF_OK) {
            return status;
        }
        return settle_agents(r, error);
    }
    r->draft->directed = true;
    reef_status status = read_matrix(r, error);
    r->draft->weighted = p->values == WEIGHTS || (p->values == AUTO && !r->plain);
    return status;
}

static reef_status generate(const void *params, rfi_draft *draft, reef_error *error)
{
    const file_params *p = params;
    rfi_numbers own;
    reading r = {.input = draft->input, .draft = draft, .plain = true};
    if (!draft->input) {
        if (p->path[0] == '\0') {
            return rfi_fail(error, REEF_E_SYNTAX, "file: a path is missing, for instance file:path=network.txt");
        }
        reef_status status = rfi_numbers_open(&own, p->path, error);
        if (status != REEF_OK) {
            return status;
        }
        r.input = &own;
    }
    reef_status status = read_file(p, &r, error);
    if (!draft->input) {
        rfi_numbers_close(&own);
    }
    return status;
}

const rfi_graph_kind rfi_graph_file = {
    .kind = {.name = "file",
             .summary = "links, with weights or without, from a text file: edge list or matrix",
             .citation = "",
             .fields = file_fields,
             .field_count = RFI_COUNT(file_fields),
             .params_size = sizeof(file_params)},
    .generate = generate,
};
