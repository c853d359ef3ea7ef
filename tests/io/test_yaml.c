/* YAML: the tree with its places, and what is refused. */
#include "io/yaml.h"
#include "support/alloc.h"
#include "support/check.h"

#include <stdlib.h>
#include <string.h>

static rfi_yaml read_text(const char *text)
{
    rfi_yaml yaml = {0};
    reef_error error = {REEF_OK, ""};
    CHECK(rfi_yaml_read(NULL, text, strlen(text), "f.yaml", &yaml, &error) == REEF_OK, "%s", error.text);
    return yaml;
}

static void gives_tree_with_places(void **state)
{
    (void)state;
    rfi_yaml yaml = read_text("a: 1\nlist: [x, 'y z']\nmap:\n  kind: lms\n  noise: 0.01\n");
    const rfi_yaml_node *root = yaml.root;
    assert_int_equal(root->type, RFI_YAML_MAP);
    assert_int_equal(root->count, 3);
    const rfi_yaml_node *a = rfi_yaml_find(root, "a");
    assert_string_equal(a->text, "1");
    assert_false(a->quoted);
    assert_int_equal(a->line, 1);
    assert_int_equal(a->column, 4);
    assert_int_equal(a->key_column, 1);
    const rfi_yaml_node *list = rfi_yaml_find(root, "list");
    assert_int_equal(list->type, RFI_YAML_LIST);
    assert_int_equal(list->count, 2);
    assert_null(list->first->key);
    assert_string_equal(list->first->next->text, "y z");
    assert_true(list->first->next->quoted);
    const rfi_yaml_node *noise = rfi_yaml_find(rfi_yaml_find(root, "map"), "noise");
    assert_int_equal(noise->key_line, 5);
    assert_int_equal(noise->key_column, 3);
    assert_int_equal(noise->column, 10);
    assert_null(rfi_yaml_find(root, "b"));
    assert_string_equal(noise->source, "f.yaml");
    rfi_yaml_free(NULL, &yaml);
    assert_null(yaml.root);
}

static void byte_order_mark_is_skipped(void **state)
{
    (void)state;
    rfi_yaml yaml = read_text("\xEF\xBB\xBF"
                              "a: 1\nb: 2\n");
    assert_int_equal(yaml.root->count, 2);
    assert_int_equal(rfi_yaml_find(yaml.root, "a")->key_column, 1);
    assert_string_equal(rfi_yaml_find(yaml.root, "b")->text, "2");
    rfi_yaml_free(NULL, &yaml);
}

static void empty_is_an_empty_map(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "# only a remark\n", "\n\n"};
    for (ptrdiff_t i = 0; i < COUNT(texts); i++) {
        rfi_yaml yaml = read_text(texts[i]);
        assert_int_equal(yaml.root->type, RFI_YAML_MAP);
        assert_int_equal(yaml.root->count, 0);
        rfi_yaml_free(NULL, &yaml);
    }
}

static void refuses_what_it_does_not_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *words;
    } cases[] = {
        {"a: 1\na: 2\n", "f.yaml:2:1: ", "'a' is given twice"},
        {"a: &x 1\n", "f.yaml:1:4: ", "anchors"},
        {"a: *x\n", "f.yaml:1:4: ", "aliases"},
        {"a: !!int 1\n", "f.yaml:1:4: ", "tags"},
        {"a: !x {b: 1}\n", "f.yaml:1:4: ", "tags"},
        {"a: 1\n---\nb: 2\n", "f.yaml:2:1: ", "one document"},
        {"? [a, b]\n: 1\n", "f.yaml:1:3: ", "a key must be"},
        {"a: [1, 2\n", "f.yaml:2:1: ", "expected"},
        {"a: \"\\0\"\n", "f.yaml:1:4: ", "control characters"},
        {"a: \"\\e[2J\"\n", "f.yaml:1:4: ", "control characters"},
        {"a: \"x\\r\"\n", "f.yaml:1:4: ", "control characters"},
        {"\"\\x7f\": 1\n", "f.yaml:1:1: ", "control characters"},
        {"a: \"\\x9b\"\n", "f.yaml:1:4: ", "control characters"},
        {"a: \"\xff\"\n", "f.yaml: ", "UTF-8"},
        {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "f.yaml:1:17: ", "nested too deeply"},
    };
    for (ptrdiff_t i = 0; i < COUNT(cases); i++) {
        rfi_yaml yaml = {0};
        reef_error error = {REEF_OK, ""};
        reef_status status = rfi_yaml_read(NULL, cases[i].text, strlen(cases[i].text), "f.yaml", &yaml, &error);
        CHECK(status == REEF_E_FORMAT, "case %td was read", i);
        CHECK(strncmp(error.text, cases[i].place, strlen(cases[i].place)) == 0 && strstr(error.text, cases[i].words),
              "case %td: %s", i, error.text);
        assert_null(yaml.memory);
    }
}

static void bounds_size_and_nodes(void **state)
{
    (void)state;
    enum { BYTES = RFI_YAML_BYTES_MAX + 1 };
    char *text = malloc(BYTES);
    rfi_yaml yaml = {0};
    reef_error error;
    assert_non_null(text);
    memset(text, ' ', BYTES);
    assert_int_equal(rfi_yaml_read(NULL, text, BYTES, "f.yaml", &yaml, &error), REEF_E_FORMAT);
    assert_int_equal(rfi_yaml_read(NULL, text, BYTES - 1, "f.yaml", &yaml, &error), REEF_OK);
    rfi_yaml_free(NULL, &yaml);
    /* the list is one node, so RFI_YAML_NODES_MAX - 1 values fit */
    text[0] = '[';
    for (ptrdiff_t i = 0; i < RFI_YAML_NODES_MAX; i++) {
        text[1 + 2 * i] = 'x';
        text[2 + 2 * i] = ',';
    }
    text[2 * RFI_YAML_NODES_MAX] = ']';
    assert_int_equal(rfi_yaml_read(NULL, text, 2 * RFI_YAML_NODES_MAX + 1, "f.yaml", &yaml, &error), REEF_E_FORMAT);
    text[2 * RFI_YAML_NODES_MAX - 2] = ']';
    assert_int_equal(rfi_yaml_read(NULL, text, 2 * RFI_YAML_NODES_MAX - 1, "f.yaml", &yaml, &error), REEF_OK);
    assert_int_equal(yaml.root->count, RFI_YAML_NODES_MAX - 1);
    rfi_yaml_free(NULL, &yaml);
    free(text);
}

static void failing_allocation_is_a_status(void **state)
{
    (void)state;
    alloc_log log;
    reef_context *context = alloc_context(&log, 1);
    rfi_yaml yaml = {0};
    reef_error error;
    log.fail_at = 0;
    assert_int_equal(rfi_yaml_read(context, "a: 1", 4, "f.yaml", &yaml, &error), REEF_E_NOMEM);
    log.fail_at = -1;
    assert_int_equal(rfi_yaml_read(context, "a: 1", 4, "f.yaml", &yaml, &error), REEF_OK);
    rfi_yaml_free(context, &yaml);
    reef_context_destroy(&context);
    assert_int_equal(log.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_tree_with_places), cmocka_unit_test(byte_order_mark_is_skipped),
        cmocka_unit_test(empty_is_an_empty_map),  cmocka_unit_test(refuses_what_it_does_not_read),
        cmocka_unit_test(bounds_size_and_nodes),  cmocka_unit_test(failing_allocation_is_a_status),
    };
    return rfi_yaml_available() ? cmocka_run_group_tests(tests, NULL, NULL) : 0;
}
