/* The page docs/learning.md speaks of every strategy and of every parameter with its default. */
#include "support/check.h"
#include "support/page.h"

#include <reef/learn.h>
#include <stdio.h>
#include <string.h>

static char *page;

static int load(void **state)
{
    (void)state;
    page = test_page_read("learning.md");
    return page ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    test_page_free(page);
    return 0;
}

static bool mentions(const char *from, const char *end, const reef_field *field)
{
    char want[100];
    (void)snprintf(want, sizeof want, "`%s=%s`", field->name, field->preset);
    const char *found = strstr(from, want);
    return found && found < end;
}

/* A strategy's own parameters stand in its row, those of all strategies in the rows of a table. */
static void everything_is_described(void **state)
{
    const char *common = strstr(page, "\n| parameter |");
    (void)state;
    assert_non_null(common);
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_STRATEGY); i++) {
        const reef_kind *kind = reef_kind_at(NULL, REEF_FAMILY_STRATEGY, i);
        char row[100];
        (void)snprintf(row, sizeof row, "\n| `%s` |", kind->name);
        const char *from = strstr(page, row);
        CHECK(from, "docs/learning.md has no row for %s", kind->name);
        const char *end = strchr(from + 1, '\n');
        for (ptrdiff_t f = 0; f < kind->field_count; f++) {
            const reef_field *field = &kind->fields[f];
            CHECK(mentions(from, end, field) || mentions(common, strstr(common, "\n\n"), field),
                  "docs/learning.md does not mention %s=%s of %s", field->name, field->preset, kind->name);
            for (ptrdiff_t v = 0; field->words && field->words[v]; v++) {
                char word[60];
                (void)snprintf(word, sizeof word, "%s`", field->words[v]);
                CHECK(strstr(page, word), "docs/learning.md does not mention the word %s of %s", word, kind->name);
            }
        }
    }
}

/* Every counter stands in the table. */
static void counters_are_described(void **state)
{
    static const char *const counters[] = {"rounds", "messages", "bytes",  "gradients",
                                           "kept",   "dropped",  "silent", "late"};
    _Static_assert(sizeof(reef_run_counts) == sizeof(int64_t) * 8, "a counter is new: describe it");
    (void)state;
    for (ptrdiff_t i = 0; i < COUNT(counters); i++) {
        char row[100];
        (void)snprintf(row, sizeof row, "\n| `%s` |", counters[i]);
        CHECK(strstr(page, row), "docs/learning.md has no row for the counter %s", counters[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_described),
                                       cmocka_unit_test(counters_are_described)};
    return cmocka_run_group_tests(tests, load, drop);
}
