/* Leaves in run files: who they are, and which agents are behind them. */
#include "net/runfile_leaves.h"

#include "base/error.h"
#include "base/memory.h"
#include "experiment/config/experiment.h"
#include "net/keys.h"
#include "net/runfile_text.h"

#include <stdio.h>
#include <string.h>

static bool same_login(const unsigned char *a, const unsigned char *b)
{
    return memcmp(a, b, RFI_KEY_BYTES) == 0;
}

/* "U... tls://HOST:PORT". */
static reef_status read_leaf(rfi_leaf *leaf, const rfi_yaml_node *node, reef_error *error)
{
    enum { KEY = RFI_KEY_TEXT - 1 };
    if (!rfi_is_name(node->key)) {
        return rfi_fail_at(error, REEF_E_FORMAT, node, true, "names have 1 to 32 letters a-z, digits, _ and -");
    }
    (void)snprintf(leaf->name, sizeof leaf->name, "%s", node->key);
    leaf->url = node->type == RFI_YAML_SCALAR && node->length > KEY + 1 ? node->text + KEY + 1 : "";
    return leaf->url[0] && node->text[KEY] == ' ' && rfi_is_broker(leaf->url) &&
                   rfi_key_parse(leaf->login, RFI_LETTER_LOGIN, node->text, KEY)
               ? REEF_OK
               : rfi_fail_at(error, REEF_E_FORMAT, node, false,
                             "a leaf is \"U... tls://HOST:PORT\": its login, which `reef keys show` prints, and where "
                             "its agents reach it");
}

reef_status rfi_leaves_read(rfi_runfile *file, const rfi_yaml_node *map, reef_error *error)
{
    if (map->type != RFI_YAML_MAP || map->count < 1 || map->count > RFI_LEAVES_MAX) {
        return rfi_fail_at(error, REEF_E_FORMAT, map, false, "leaves is a map of 1 to %d names", RFI_LEAVES_MAX);
    }
    file->leaf = rfi_allocate_many(file->context, map->count, sizeof *file->leaf);
    if (!file->leaf) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for %td leaves", map->count);
    }
    for (const rfi_yaml_node *node = map->first; node; node = node->next) {
        reef_status status = read_leaf(&file->leaf[file->leaves], node, error);
        if (status != REEF_OK) {
            return status;
        }
        file->leaves++;
    }
    return REEF_OK;
}

/* ---- the whole ---- */

/* The places of the leaves that an agent names. */
static reef_status find_leaves(const rfi_runfile *file, rfi_participant *who, const char *source, reef_error *error)
{
    const char *at = who->behind;
    while (at && *at) {
        size_t length = strcspn(at, " ");
        unsigned char i = 0;
        while (i < file->leaves &&
               (strlen(file->leaf[i].name) != length || memcmp(file->leaf[i].name, at, length) != 0)) {
            i++;
        }
        if (i == file->leaves || memchr(who->leaf, i, (size_t)who->leaves) || who->leaves == RFI_BROKERS_MAX) {
            return rfi_fail(error, REEF_E_FORMAT,
                            "%s: behind the keys of %s stand names of leaves:, at most %d, each once; "
                            "'%.32s' is not one",
                            source, who->name, RFI_BROKERS_MAX, at);
        }
        who->leaf[who->leaves++] = i;
        at += length + (at[length] == ' ' && at[length + 1] != '\0');
    }
    return REEF_OK;
}

/* Every login at a broker is somebody else's. */
reef_status rfi_leaves_check(const rfi_runfile *file, const char *source, reef_error *error)
{
    for (ptrdiff_t i = 0; i < file->leaves; i++) {
        const rfi_leaf *leaf = &file->leaf[i];
        bool taken = rfi_runfile_leaf(file, leaf->login) != leaf;
        for (ptrdiff_t k = 0; k < file->agents; k++) {
            taken = taken || (!file->participants[k].removed && same_login(file->participants[k].login, leaf->login));
        }
        for (ptrdiff_t k = 0; k < file->observers; k++) {
            taken = taken || same_login(file->observer[k].login, leaf->login);
        }
        if (taken) {
            return rfi_fail(error, REEF_E_FORMAT, "%s: leaf %s has the key of somebody else", source, leaf->name);
        }
    }
    for (ptrdiff_t k = 0; k < file->agents; k++) {
        reef_status status = find_leaves(file, &file->participants[k], source, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

void rfi_runfile_stand(rfi_runfile *file, ptrdiff_t place)
{
    const rfi_participant *who = &file->participants[place];
    for (int i = 0; i < who->leaves; i++) {
        file->broker[i] = file->leaf[who->leaf[i]].url;
    }
    file->brokers = who->leaves > 0 ? who->leaves : file->brokers;
}

const rfi_leaf *rfi_runfile_leaf(const rfi_runfile *file, const unsigned char login[RFI_KEY_BYTES])
{
    for (ptrdiff_t i = 0; i < file->leaves; i++) {
        if (same_login(file->leaf[i].login, login)) {
            return &file->leaf[i];
        }
    }
    return NULL;
}

bool rfi_runfile_behind(const rfi_runfile *file, ptrdiff_t place, const unsigned char login[RFI_KEY_BYTES])
{
    const rfi_leaf *leaf = rfi_runfile_leaf(file, login);
    if (!leaf || place >= file->agents || file->participants[place].removed) {
        return false;
    }
    const rfi_participant *who = &file->participants[place];
    return memchr(who->leaf, (int)(leaf - file->leaf), (size_t)who->leaves) != NULL;
}
