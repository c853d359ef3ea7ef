/* Names of version 0.1 that older files still use: they are read as today's names.
 *
 *     liars -> malicious      iterations -> rounds      runs -> repetitions      trust_liars -> trust_malicious */
#include "base/error.h"
#include "experiment/config/experiment.h"

#include <string.h>

static const struct {
    const char *old, *now;
} renamed[] = {
    {"liars", "malicious"}, {"iterations", "rounds"}, {"runs", "repetitions"}, {"trust_liars", "trust_malicious"}};

const char *rfi_name_today(const char *name)
{
    for (ptrdiff_t i = 0; i < RFI_COUNT(renamed); i++) {
        if (strcmp(name, renamed[i].old) == 0) {
            return renamed[i].now;
        }
    }
    return name;
}

/* The names in a list of names, or in lists of such lists. */
static void renew_texts(rfi_yaml_node *node)
{
    if (node->type == RFI_YAML_SCALAR) {
        node->text = rfi_name_today(node->text);
        node->length = strlen(node->text);
    }
    for (rfi_yaml_node *child = node->first; child; child = child->next) {
        renew_texts(child);
    }
}

reef_status rfi_renew_names(rfi_yaml_node *root, reef_error *error)
{
    for (rfi_yaml_node *top = root->first; top && root->type == RFI_YAML_MAP; top = top->next) {
        const char *now = rfi_name_today(top->key);
        if (now != top->key && rfi_yaml_find(root, now)) {
            return rfi_fail_at(error, REEF_E_FORMAT, top, true, "'%s' is the old name of '%s', which is given too",
                               top->key, now);
        }
        top->key = now;
        if (strcmp(top->key, "zip") == 0 || strcmp(top->key, "metrics") == 0) {
            renew_texts(top);
        }
    }
    return REEF_OK;
}
