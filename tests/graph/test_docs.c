/* The page docs/graphs.md speaks of every kind of graph, weights and links, and of every parameter with its default. */
#include "support/check.h"
#include "support/page.h"

#include <reef/graph.h>
#include <stdio.h>
#include <string.h>

static char *page;

static int load(void **state)
{
    (void)state;
    page = test_page_read("graphs.md");
    return page ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    test_page_free(page);
    return 0;
}

/* `text` is looked through up to `end`. */
static void check_fields(const char *owner, const reef_field *fields, ptrdiff_t count, const char *text,
                         const char *end)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        char want[100];
        (void)snprintf(want, sizeof want, "`%s%s%s`", fields[i].name, fields[i].preset[0] ? "=" : "", fields[i].preset);
        const char *found = strstr(text, want);
        CHECK(found && found < end, "docs/graphs.md does not mention %s of %s", want, owner);
    }
}

/* Weights from a file are looked up in the row of graphs from a file, which has the same parameters. */
static void check_kinds(reef_family family)
{
    const reef_kind *kind = NULL;
    for (ptrdiff_t i = 0; (kind = reef_kind_at(NULL, family, i)) != NULL; i++) {
        char row[100];
        (void)snprintf(row, sizeof row, "\n| `%s` |", kind->name);
        const char *from = strstr(page, row);
        CHECK(from, "docs/graphs.md has no row for %s", kind->name);
        check_fields(kind->name, kind->fields, kind->field_count, from, strchr(from + 1, '\n'));
    }
}

static void everything_is_described(void **state)
{
    ptrdiff_t count = 0;
    (void)state;
    check_kinds(REEF_FAMILY_GRAPH);
    check_kinds(REEF_FAMILY_WEIGHTS);
    check_kinds(REEF_FAMILY_LINKS);
    const reef_field *fields = reef_kind_common(REEF_FAMILY_GRAPH, reef_kind_at(NULL, REEF_FAMILY_GRAPH, 0), &count);
    check_fields("all graphs", fields, count, page, page + strlen(page));
    fields = reef_kind_common(REEF_FAMILY_LINKS, reef_kind_at(NULL, REEF_FAMILY_LINKS, 0), &count);
    check_fields("all links", fields, count, page, page + strlen(page));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_described)};
    return cmocka_run_group_tests(tests, load, drop);
}
