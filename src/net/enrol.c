/* Keys and run files, for those who set a run up. */
#include <reef/net.h>

#include "base/error.h"
#include "base/memory.h"
#include "io/file.h"
#include "net/epoch.h"
#include "net/keys.h"
#include "net/roster.h"
#include "net/say.h"

#include <stdio.h>
#include <string.h>

static void print_keys(const rfi_secret *secret, char keys[REEF_NET_KEYS_SIZE])
{
    char identity[RFI_KEY_TEXT];
    char login[RFI_KEY_TEXT];
    rfi_key_print(identity, RFI_LETTER_IDENTITY, secret->identity.public_key);
    rfi_key_print(login, RFI_LETTER_LOGIN, secret->login.public_key);
    (void)snprintf(keys, REEF_NET_KEYS_SIZE, "%s %s", identity, login);
}

reef_status reef_net_key_make(const char *path, char keys[REEF_NET_KEYS_SIZE], reef_error *error)
{
    rfi_secret secret;
    reef_status status = rfi_crypto_start(error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_secret_make(path, &secret, error);
    if (status != REEF_OK) {
        return status;
    }
    print_keys(&secret, keys);
    rfi_wipe(&secret, sizeof secret);
    return REEF_OK;
}

reef_status reef_net_key_show(const char *path, char keys[REEF_NET_KEYS_SIZE], reef_error *error)
{
    rfi_secret secret;
    reef_status status = rfi_crypto_start(error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_secret_read(path, &secret, error);
    if (status != REEF_OK) {
        return status;
    }
    print_keys(&secret, keys);
    rfi_wipe(&secret, sizeof secret);
    return REEF_OK;
}

/* A run file of a later epoch must be allowed to follow the one before, and leave everybody the time to get it. */
static reef_status check_after(const rfi_runfile *run, const char *after, int64_t current, reef_error *error)
{
    rfi_runfile before;
    reef_status status = rfi_runfile_load(NULL, after, &before, error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_epoch_follows(&before, run, error);
    rfi_runfile_free(&before);
    if (status == REEF_OK && run->terms.from < current + RFI_EPOCH_NOTICE) {
        return rfi_fail(error, REEF_E_ARG, "from: %lld is too early for a run in round %lld: at least %lld",
                        (long long)run->terms.from, (long long)current, (long long)current + RFI_EPOCH_NOTICE);
    }
    return status;
}

/* Which epoch is signed. */
typedef struct succession {
    const char *draft; /* its path */
    const char *after; /* the run file before; NULL: this is the first */
    int64_t current;
} succession;

static reef_status check_epoch(const rfi_runfile *run, const succession *of, reef_error *error)
{
    if (of->after) {
        return check_after(run, of->after, of->current, error);
    }
    return run->terms.epoch == 1 && run->terms.from == 0
               ? REEF_OK
               : rfi_fail(
                     error, REEF_E_ARG,
                     "the first file of a run has epoch: 1 and from: 0; later ones are signed with --after OLD.yaml");
}

/* Once it is signed everybody gets it: what agents and brokers would refuse is refused here. */
static reef_status check_run(const rfi_runfile *run, const succession *of, reef_error *error)
{
    rfi_roster roster;
    reef_status status = check_epoch(run, of, error);
    if (status == REEF_OK) {
        status = rfi_roster_create(NULL, run, &roster, error);
    }
    if (status == REEF_OK) {
        rfi_roster_free(&roster);
    }
    return status;
}

/* The draft and its signature as one text, which must read as a run file. */
static reef_status write_signed(const rfi_file *draft, const rfi_keys *coordinator, const succession *of,
                                const char *to, reef_error *error)
{
    char line[RFI_SIGNED_SIZE];
    rfi_runfile run;
    size_t size = draft->size;
    if (size == 0 || size > RFI_RUNFILE_MAX - RFI_SIGNED_SIZE - 1) {
        return rfi_fail(error, REEF_E_FORMAT, "%s %s", rfi_path_show(of->draft),
                        size > 0 ? "exceeds 256 KiB" : "is empty");
    }
    char *whole = rfi_allocate(NULL, size + 1 + RFI_SIGNED_SIZE);
    if (!whole) {
        return rfi_fail(error, REEF_E_NOMEM, "no memory for a run file");
    }
    memcpy(whole, draft->bytes, size);
    if (whole[size - 1] != '\n') { /* as some editors leave it */
        whole[size++] = '\n';
    }
    size_t length = rfi_runfile_sign(whole, size, coordinator, line);
    memcpy(whole + size, line, length);
    size += length;
    reef_status status = rfi_runfile_read(NULL, whole, size, rfi_path_show(of->draft), &run, error);
    if (status == REEF_OK) {
        status = check_run(&run, of, error);
        rfi_runfile_free(&run);
    }
    if (status == REEF_OK) {
        status = rfi_file_write(NULL, to, &(rfi_piece){whole, size}, 1, error);
    }
    rfi_release(NULL, whole);
    return status;
}

reef_status reef_net_sign(const char *draft, const char *key, const char *to, reef_error *error)
{
    return reef_net_sign_after(draft, key, NULL, 0, to, error);
}

reef_status reef_net_sign_after(const char *draft, const char *key, const char *after, int64_t current, const char *to,
                                reef_error *error)
{
    rfi_secret secret;
    rfi_file file = {0};
    reef_status status = rfi_crypto_start(error);
    if (status == REEF_OK) {
        status = rfi_file_read(NULL, draft, RFI_RUNFILE_MAX, &file, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_secret_read(key, &secret, error);
    if (status == REEF_OK) {
        status = write_signed(&file, &secret.identity, &(succession){draft, after, current}, to, error);
    }
    rfi_wipe(&secret, sizeof secret);
    rfi_file_free(NULL, &file);
    return status;
}

/* ---- checking ---- */

typedef struct listing {
    rfi_teller to;
    ptrdiff_t warnings;
} listing;

static void tell_agent(listing *list, const rfi_roster *roster, ptrdiff_t k)
{
    rfi_tolerance t;
    const rfi_participant *who = &roster->file->participants[k];
    if (who->removed) {
        rfi_say(&list->to, "%-12s removed", who->name);
        return;
    }
    rfi_roster_tolerance(roster, k, &t);
    rfi_say(&list->to,
            "%-12s %3td neighbours, own weight %.3f; tolerates %td malicious, %td absent; %.1f MB memory, %.1f kB per "
            "round",
            who->name, t.neighbours, t.own, t.malicious, t.absent, (double)t.memory * 1e-6, t.traffic * 1e-3);
    if (t.malicious == 0 && roster->file->terms.malicious > 0) {
        list->warnings++;
        rfi_say(&list->to,
                "WARNING %s tolerates no malicious neighbour: each has more than malicious: %g of the weight",
                who->name, roster->file->terms.malicious);
    }
    if (t.absent == 0 && t.neighbours > 0) {
        list->warnings++;
        rfi_say(
            &list->to,
            "WARNING %s combines only while all its neighbours are there: a smaller malicious: would allow absences",
            who->name);
    }
}

static void tell_leaf(listing *list, const rfi_runfile *file, const rfi_leaf *leaf)
{
    ptrdiff_t behind = 0;
    for (ptrdiff_t k = 0; k < file->agents; k++) {
        behind += rfi_runfile_behind(file, k, leaf->login);
    }
    rfi_say(&list->to, "leaf %s at %s, with %td agents behind it", leaf->name, leaf->url, behind);
    if (behind == 0) {
        list->warnings++;
        rfi_say(&list->to, "WARNING no agent is behind leaf %s: its name stands behind the keys of those who are",
                leaf->name);
    }
}

static reef_status tell_roster(listing *list, const rfi_runfile *file, reef_error *error)
{
    rfi_roster roster;
    char key[RFI_KEY_TEXT];
    reef_status status = rfi_roster_create(NULL, file, &roster, error);
    if (status != REEF_OK) {
        return status;
    }
    rfi_key_print(key, RFI_LETTER_IDENTITY, file->coordinator);
    rfi_say(&list->to, "run %s, epoch %lld, signed by %s", file->run, (long long)file->terms.epoch, key);
    rfi_say(&list->to, "%td agents, %s, rule %s; models of %llu numbers, %zu bytes", file->agents,
            file->terms.links[0] ? "links by name" : file->terms.graph, file->terms.rule,
            (unsigned long long)roster.shape.count, rfi_shape_bytes(&roster.shape));
    if (file->terms.seal) {
        rfi_say(&list->to, "models are sealed: brokers see sizes and times, neighbours see the models");
    }
    for (ptrdiff_t k = 0; k < file->agents; k++) {
        tell_agent(list, &roster, k);
    }
    for (ptrdiff_t i = 0; i < file->leaves; i++) {
        tell_leaf(list, file, &file->leaf[i]);
    }
    rfi_roster_free(&roster);
    return REEF_OK;
}

reef_status rfi_runfile_signed_by(const rfi_runfile *file, const char *coordinator, reef_error *error)
{
    unsigned char key[RFI_KEY_BYTES];
    if (!rfi_key_parse(key, RFI_LETTER_IDENTITY, coordinator, strlen(coordinator))) {
        return rfi_fail(error, REEF_E_ARG, "'%.60s' is not the identity of a coordinator (R and 55 more characters)",
                        coordinator);
    }
    if (memcmp(key, file->coordinator, sizeof key) != 0) {
        return rfi_fail(error, REEF_E_FORMAT, "run %s is signed by another coordinator than %s", file->run,
                        coordinator);
    }
    return REEF_OK;
}

reef_status reef_net_check(const char *path, const char *coordinator, reef_tell *tell, void *user, ptrdiff_t *warnings,
                           reef_error *error)
{
    rfi_runfile file;
    listing list = {.to = {tell, user}};
    reef_status status = rfi_crypto_start(error);
    if (status != REEF_OK) {
        return status;
    }
    status = rfi_runfile_load(NULL, path, &file, error);
    if (status != REEF_OK) {
        return status;
    }
    if (coordinator) {
        status = rfi_runfile_signed_by(&file, coordinator, error);
    }
    if (status == REEF_OK) {
        status = tell_roster(&list, &file, error);
    }
    rfi_runfile_free(&file);
    if (warnings) {
        *warnings = list.warnings;
    }
    return status;
}
