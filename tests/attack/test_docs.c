/* The page docs/attacks.md has a section for every attack, with every parameter and its default, and cites what the kind cites. */
#include "support/check.h"
#include "support/page.h"

#include <reef/attack.h>
#include <stdio.h>
#include <string.h>

static char *page;

static int load(void **state)
{
    (void)state;
    page = test_page_read("attacks.md");
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
        (void)snprintf(want, sizeof want, "`%s=%s`", fields[i].name, fields[i].preset);
        const char *found = strstr(text, want);
        CHECK(found && found < end, "docs/attacks.md does not mention %s of %s", want, owner);
    }
}

static void everything_is_described(void **state)
{
    ptrdiff_t count = 0;
    (void)state;
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_ATTACK); i++) {
        const reef_kind *kind = reef_kind_at(NULL, REEF_FAMILY_ATTACK, i);
        char head[100];
        (void)snprintf(head, sizeof head, "\n### %s\n", kind->name);
        const char *from = strstr(page, head);
        CHECK(from, "docs/attacks.md has no section on %s", kind->name);
        const char *end = strstr(from + 1, "\n##");
        CHECK(end, "nothing follows the section on %s", kind->name);
        check_fields(kind->name, kind->fields, kind->field_count, from, end);
        char author[60];
        (void)snprintf(author, sizeof author, "%.*s", (int)strcspn(kind->citation, ","), kind->citation);
        const char *cited = strstr(from, author);
        CHECK(cited && cited < end, "the section on %s does not cite %s", kind->name, author);
    }
    const reef_field *fields = reef_kind_common(REEF_FAMILY_ATTACK, reef_kind_at(NULL, REEF_FAMILY_ATTACK, 0), &count);
    check_fields("all attacks", fields, count, page, page + strlen(page));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_described)};
    return cmocka_run_group_tests(tests, load, drop);
}
