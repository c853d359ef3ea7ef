/* docs/data.md has a section for every source and partition, docs/problems.md one for every problem, with a row for every field and its
 * default. */
#include "io/file.h"
#include "problem/dataset.h"
#include "problem/partition.h"
#include "support/check.h"

#include <reef/problem.h>
#include <stdio.h>
#include <string.h>

/* `text` between the heading "### name" and the next heading; NULL if there is none. */
static const char *find_section(const char *text, const char *name, size_t *length)
{
    char heading[80];
    (void)snprintf(heading, sizeof heading, "\n### %s\n", name);
    const char *start = strstr(text, heading);
    if (!start) {
        return NULL;
    }
    start += strlen(heading);
    const char *end = strstr(start, "\n##");
    *length = end ? (size_t)(end - start) : strlen(start);
    return start;
}

static void check_rows(const char *page, const char *owner, const char *text, size_t length, const reef_field *fields,
                       ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        char row[200];
        (void)snprintf(row, sizeof row, "\n| `%s` | `%s` |", fields[i].name, fields[i].preset);
        const char *at = strstr(text, row);
        CHECK(at && (size_t)(at - text) < length, "%s, %s: there is no row%s", page, owner, row);
    }
}

static void check_list(const char *text, const rfi_family *list)
{
    for (ptrdiff_t i = 0; i < list->builtin_count; i++) {
        const reef_kind *kind = list->builtin[i];
        size_t length = 0;
        const char *name = strcmp(kind->name, "digits") == 0 ? "The shipped set" : kind->name;
        const char *section = find_section(text, name, &length);
        CHECK(section, "docs/data.md has no section ### %s", name);
        check_rows("docs/data.md", kind->name, section, length, kind->fields, kind->field_count);
    }
}

static void documented(void **state)
{
    rfi_file file;
    (void)state;
    assert_int_equal(rfi_file_read(NULL, REEF_SOURCE_DIR "/docs/data.md", 1 << 20, &file, NULL), REEF_OK);
    const char *text = (const char *)file.bytes;
    check_rows("docs/data.md", "every source", text, file.size, rfi_family_source.common.fields,
               rfi_family_source.common.count);
    check_list(text, &rfi_family_source);
    check_list(text, &rfi_family_partition);
    rfi_file_free(NULL, &file);
}

/* Fields that several problems share stand in the table before their sections. */
static void problems_documented(void **state)
{
    rfi_file file;
    (void)state;
    assert_int_equal(rfi_file_read(NULL, REEF_SOURCE_DIR "/docs/problems.md", 1 << 20, &file, NULL), REEF_OK);
    const char *text = (const char *)file.bytes;
    for (ptrdiff_t i = 0; i < reef_kind_count(NULL, REEF_FAMILY_PROBLEM); i++) {
        const reef_kind *kind = reef_kind_at(NULL, REEF_FAMILY_PROBLEM, i);
        size_t length = 0;
        CHECK(find_section(text, kind->name, &length), "docs/problems.md has no section ### %s", kind->name);
        check_rows("docs/problems.md", kind->name, text, file.size, kind->fields, kind->field_count);
    }
    rfi_file_free(NULL, &file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(documented), cmocka_unit_test(problems_documented)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
