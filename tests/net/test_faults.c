/* What an agent begins with, when memory or the disk fails it: each allocation and each call that writes fails once. Then there is an error
 * that says so, nothing is lost that was kept, and the next attempt goes on where the last process was.
 *
 * The linker puts the functions below in place of those of the C library, in the code of Reef alone (cmake/ReefTests.cmake). What leaks is
 * found by the sanitized build. */
#include "net/agent.h"
#include "net/frames.h"
#include "support/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AGENTS = 3, NUMBERS = 100, ROOM = 8192, SIGNED = 7, MOST = 2000 };

/* ---- what fails ---- */

typedef enum weakness { NOTHING, MEMORY, DISK } weakness;

static _Thread_local weakness fails; /* in this thread, */
static _Thread_local int after;      /* so many calls from now */
static _Thread_local bool failed;

static bool now_fails(weakness what)
{
    if (fails != what || after-- > 0) {
        return false;
    }
    fails = NOTHING;
    failed = true;
    return true;
}

static void let_fail(weakness what, int number)
{
    fails = what;
    after = number;
    failed = false;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
ssize_t __real_write(int file, const void *bytes, size_t size);
ssize_t __real_pwrite(int file, const void *bytes, size_t size, off_t at);
int __real_fsync(int file);
int __real_fdatasync(int file);
int __real_rename(const char *from, const char *to);
int __real_mkdir(const char *path, mode_t mode);
int __real_open(const char *path, int flags, ...);

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
ssize_t __wrap_write(int file, const void *bytes, size_t size);
ssize_t __wrap_pwrite(int file, const void *bytes, size_t size, off_t at);
int __wrap_fsync(int file);
int __wrap_fdatasync(int file);
int __wrap_rename(const char *from, const char *to);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_open(const char *path, int flags, ...);

void *__wrap_malloc(size_t bytes)
{
    return now_fails(MEMORY) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return now_fails(MEMORY) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return now_fails(MEMORY) ? NULL : __real_realloc(memory, bytes);
}

static int no_space(void)
{
    errno = ENOSPC;
    return -1;
}

ssize_t __wrap_write(int file, const void *bytes, size_t size)
{
    return now_fails(DISK) ? no_space() : __real_write(file, bytes, size);
}

ssize_t __wrap_pwrite(int file, const void *bytes, size_t size, off_t at)
{
    return now_fails(DISK) ? no_space() : __real_pwrite(file, bytes, size, at);
}

int __wrap_fsync(int file)
{
    return now_fails(DISK) ? no_space() : __real_fsync(file);
}

int __wrap_fdatasync(int file)
{
    return now_fails(DISK) ? no_space() : __real_fdatasync(file);
}

int __wrap_rename(const char *from, const char *to)
{
    return now_fails(DISK) ? no_space() : __real_rename(from, to);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return now_fails(DISK) ? no_space() : __real_mkdir(path, mode);
}

int __wrap_open(const char *path, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
    va_end(more);
    return (flags & O_CREAT) && now_fails(DISK) ? no_space() : __real_open(path, flags, mode);
}

/* ---- a run ---- */

typedef struct desk {
    scratch folder, state;
    char run_file[SCRATCH_PATH], lms_file[SCRATCH_PATH], key[SCRATCH_PATH];
} desk;

/* The line of an agent or observer in a run file. */
static size_t put_keys(char *text, size_t room, const char *name, const rfi_keys *identity, const rfi_keys *login)
{
    char one[RFI_KEY_TEXT] = "";
    char two[RFI_KEY_TEXT];
    if (identity) {
        rfi_key_print(one, RFI_LETTER_IDENTITY, identity->public_key);
    }
    rfi_key_print(two, RFI_LETTER_LOGIN, login->public_key);
    return (size_t)snprintf(text, room, "  %s: \"%s%s%s\"\n", name, one, identity ? " " : "", two);
}

/* A signed run file in which agent0 has the key file. The broker is not there, which an agent does not need to begin. */
static void write_run(const desk *d, const rfi_secret *first, const char *name, const char *more,
                      char path[SCRATCH_PATH])
{
    char text[ROOM + RFI_SIGNED_SIZE];
    char coordinator[RFI_KEY_TEXT];
    rfi_keys boss = frames_keys(90);
    rfi_keys watcher = frames_keys(50);
    rfi_key_print(coordinator, RFI_LETTER_IDENTITY, boss.public_key);
    size_t used = (size_t)snprintf(
        text, ROOM,
        "reef: 1\nrun: t\nid: 5f0c9a1be2d34c77a1b09c55e0d1f2a3\ncoordinator: %s\ngraph: complete\nrule: mref\n"
        "brokers: [\"nats://127.0.0.1:1\"]\n%sobservers:\n",
        coordinator, more);
    used += put_keys(text + used, ROOM - used, "desk", NULL, &watcher);
    used += (size_t)snprintf(text + used, ROOM - used, "agents:\n");
    for (uint32_t k = 0; k < AGENTS; k++) {
        char who[16];
        rfi_keys identity = k ? frames_keys(k) : first->identity;
        rfi_keys login = k ? frames_keys(k + 20) : first->login;
        (void)snprintf(who, sizeof who, "agent%u", (unsigned)k);
        used += put_keys(text + used, ROOM - used, who, &identity, &login);
    }
    used += rfi_runfile_sign(text, used, &boss, text + used);
    (void)scratch_file(&d->folder, name, text, used, path);
}

static int set_up(void **state)
{
    desk *d = calloc(1, sizeof *d);
    rfi_secret secret;
    *state = d;
    if (!d || rfi_crypto_start(NULL) != REEF_OK) {
        return -1;
    }
    scratch_open(&d->folder);
    scratch_open(&d->state);
    (void)scratch_path(&d->folder, "agent0.key", d->key);
    if (rfi_secret_make(d->key, &secret, NULL) != REEF_OK) {
        return -1;
    }
    write_run(d, &secret, "run.yaml", "model: {count: 100}\n", d->run_file);
    write_run(d, &secret, "lms.yaml", "test: {problem: \"lms:dimension=10\", malicious: \"1\"}\n", d->lms_file);
    return 0;
}

static int tear_down(void **state)
{
    desk *d = *state;
    scratch_close(&d->folder);
    scratch_close(&d->state);
    free(d);
    return 0;
}

/* ---- run files, and what they mean ---- */

static reef_status load(const reef_context *context, const char *path)
{
    rfi_runfile file;
    rfi_roster roster;
    reef_error error = {REEF_OK, ""};
    memset(&file, 0x5A, sizeof file);
    rfi_runfile before = file;
    reef_status status = rfi_runfile_load(context, path, &file, &error);
    if (status != REEF_OK) {
        assert_memory_equal(&file, &before, sizeof file); /* whole, or not at all */
        assert_true(strstr(error.text, "memory") != NULL);
        return status;
    }
    status = rfi_roster_create((reef_context *)(uintptr_t)context, &file, &roster, &error);
    CHECK(status == REEF_OK || strstr(error.text, "memory"), "%s", error.text);
    rfi_roster_free(&roster);
    rfi_runfile_free(&file);
    return status;
}

static void a_run_file_is_loaded_whole_or_not_at_all(void **state)
{
    const desk *d = *state;
    const char *const paths[] = {d->run_file, d->lms_file};
    for (ptrdiff_t i = 0; i < COUNT(paths); i++) {
        alloc_log log = {.fail_at = -1};
        reef_context *context = alloc_context(&log, 1);
        int live = log.live;
        reef_status status = REEF_E_NOMEM;
        int number = 0;
        for (bool any = true; any && number < MOST; number++) {
            log.total = 0;
            log.fail_at = number;
            status = load(context, paths[i]);
            any = log.total > number;
            CHECK(status == (any ? REEF_E_NOMEM : REEF_OK), "allocation %d: %s", number, reef_status_text(status));
            CHECK(log.live == live && !log.broken, "allocation %d: %d blocks are left", number, log.live - live);
        }
        assert_int_equal(status, REEF_OK);
        CHECK(number > 10, "only %d allocations", number);
        log.fail_at = -1;
        reef_context_destroy(&context);
        assert_int_equal(log.live, 0);
    }
}

/* ---- agents ---- */

static rfi_agent_setup setup_of(const desk *d)
{
    return (rfi_agent_setup){.run_file = d->run_file, .key = d->key, .state = d->state.folder};
}

static float number_of(ptrdiff_t i)
{
    return (float)i + 0.25F;
}

/* A first process, which has signed a round and kept a model. */
static void work_before(const desk *d)
{
    rfi_agent agent;
    reef_error error = {REEF_OK, ""};
    const unsigned char mark[RFI_HASH_BYTES] = {1};
    float model[NUMBERS];
    const rfi_agent_setup setup = setup_of(d);
    for (ptrdiff_t i = 0; i < NUMBERS; i++) {
        model[i] = number_of(i);
    }
    CHECK(rfi_agent_open(&agent, &setup, &error) == REEF_OK, "%s", error.text);
    CHECK(rfi_journal_record(&agent.journal, SIGNED, mark, &error) == REEF_OK, "%s", error.text);
    reef_member_set_model(agent.member, model);
    rfi_agent_close(&agent, false);
}

/* What the process before has left is there. */
static void check_kept(const rfi_agent *agent, int number)
{
    const float *model = reef_member_model(agent->member);
    CHECK(agent->journal.next == SIGNED + 1, "failure %d: the journal is lost", number);
    for (ptrdiff_t i = 0; i < NUMBERS; i++) {
        CHECK(model[i] == number_of(i), "failure %d: the model is lost", number);
    }
}

/* Nothing that was begun lies about. */
static void check_folder(const desk *d, int number)
{
    DIR *folder = opendir(d->state.folder);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        CHECK(!strstr(entry->d_name, ".tmp"), "failure %d leaves %s", number, entry->d_name);
    }
    (void)closedir(folder);
}

/* Opens an agent again and again, until nothing fails any more; returns how often. `before`: each time after a first process. */
static int try_all(desk *d, weakness what, bool before)
{
    int number = 0;
    for (bool any = true; any && number < MOST; number++) {
        rfi_agent agent;
        reef_error error = {REEF_OK, ""};
        if (before) {
            scratch_close(&d->state);
            scratch_open(&d->state);
            work_before(d);
        }
        const rfi_agent_setup setup = setup_of(d);
        let_fail(what, number);
        reef_status status = rfi_agent_open(&agent, &setup, &error);
        fails = NOTHING;
        any = failed;
        CHECK(any || status == REEF_OK, "%s", error.text);
        CHECK(status == REEF_OK || status == (what == MEMORY ? REEF_E_NOMEM : REEF_E_FILE), "failure %d: %s", number,
              error.text);
        CHECK(status == REEF_OK || error.text[0], "failure %d is not explained", number);
        if (status == REEF_OK && before) { /* what failed was not needed */
            check_kept(&agent, number);
        }
        rfi_agent_close(&agent, false);
        check_folder(d, number);
    }
    return number;
}

static void an_agent_begins_or_says_why_not(void **state)
{
    desk *d = *state;
    for (weakness what = MEMORY; what <= DISK; what++) {
        int first = try_all(d, what, false); /* the state folder is made in the course of this */
        CHECK(first > (what == MEMORY ? 20 : 5) && first < MOST, "%d calls", first);
        scratch_close(&d->state);
        scratch_open(&d->state);
    }
}

static void what_was_kept_survives_every_failure(void **state)
{
    desk *d = *state;
    CHECK(try_all(d, MEMORY, true) > 20, "too few allocations");
    CHECK(try_all(d, DISK, true) > 1, "too few calls");
}

/* The same with its thread, as programs have it. */
static void a_program_gets_an_agent_or_an_error(void **state)
{
    const desk *d = *state;
    bool any = true;
    int number = 0;
    for (; any && number < MOST; number++) {
        reef_agent *agent = NULL;
        reef_error error = {REEF_OK, ""};
        let_fail(MEMORY, number);
        reef_status status = reef_agent_create(&agent, d->run_file, d->key, NULL, d->state.folder, NULL, &error);
        fails = NOTHING;
        any = failed;
        CHECK(status == REEF_OK || (any && status == REEF_E_NOMEM && !agent), "allocation %d: %s", number, error.text);
        reef_agent_destroy(&agent);
    }
    CHECK(number > 25 && number < MOST, "%d allocations", number);
}

/* A file of the network that memory is too short for may be the right one: it is looked at again. */
static void a_file_that_could_not_be_read_is_not_refused(void **state)
{
    const desk *d = *state;
    rfi_file bytes = {0};
    rfi_runfile file;
    rfi_handout handout;
    bool any = true;
    int number = 0;
    assert_int_equal(rfi_file_read(NULL, d->run_file, RFI_RUNFILE_MAX, &bytes, NULL), REEF_OK);
    assert_int_equal(rfi_runfile_load(NULL, d->run_file, &file, NULL), REEF_OK);
    file.hash[0] ^= 1; /* so that the bytes are another file, of the same epoch */
    for (; any && number < MOST; number++) {
        rfi_runfile taken;
        rfi_handout_start(&handout, 0, 0);
        let_fail(MEMORY, number);
        rfi_handed result = rfi_handout_check(&handout, 0, &file, NULL, bytes.bytes, bytes.size, &taken, NULL);
        fails = NOTHING;
        any = failed;
        CHECK(result == (any ? RFI_HANDED_RATE : RFI_HANDED_SECOND), "allocation %d: %s", number,
              rfi_handed_text(result));
        CHECK(handout.seen_count == !any, "allocation %d: the file is remembered", number);
    }
    CHECK(number > 3 && number < MOST, "%d allocations", number);
    rfi_runfile_free(&file);
    rfi_file_free(NULL, &bytes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_run_file_is_loaded_whole_or_not_at_all),     TEST(an_agent_begins_or_says_why_not),
        TEST(what_was_kept_survives_every_failure),         TEST(a_program_gets_an_agent_or_an_error),
        TEST(a_file_that_could_not_be_read_is_not_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
