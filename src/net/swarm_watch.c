/* The processes of a swarm: started some at a time, watched, ended by their ids. */
#include "net/swarm.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Processes that have been started and not yet written their first record: a thousand at once stall a small machine. */
enum { BEGINNERS = 24 };

/* ---- processes ---- */

/* Starts the command with its output in a log; it ends with this process. */
static pid_t start(const rfi_swarm *s, const char *log, const char *const *words)
{
    pid_t parent = getpid();
    pid_t child = fork();
    if (child != 0) {
        return child;
    }
    int file = open(log, O_WRONLY | O_CREAT | O_APPEND, S_IRUSR | S_IWUSR);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) {
        _exit(1);
    }
    (void)setpgid(0, 0); /* Ctrl-C is for the swarm, which ends the others in order */
    (void)execv(s->options->program, (char *const *)(uintptr_t)words);
    _exit(127);
}

static bool log_says(const char *path, const char *word)
{
    char text[1024] = "";
    FILE *log = fopen(path, "re");
    size_t size = log ? fread(text, 1, sizeof text - 1, log) : 0;
    if (log) {
        (void)fclose(log);
    }
    text[size] = '\0';
    return strstr(text, word) != NULL;
}

/* The last line of a log, for a message. */
static void last_line(const char *path, char *line, size_t size)
{
    FILE *log = fopen(path, "re");
    line[0] = '\0';
    for (char text[400]; log && fgets(text, sizeof text, log);) {
        text[strcspn(text, "\n")] = '\0';
        (void)snprintf(line, size, "%.190s", text);
    }
    if (log) {
        (void)fclose(log);
    }
}

static void pause_briefly(void)
{
    (void)nanosleep(&(struct timespec){0, 20000000}, NULL);
}

static reef_status start_broker(rfi_swarm *s, ptrdiff_t i, reef_error *error)
{
    enum { SECONDS = 120, SCHEME = 7 };                  /* nats:// */
    const double patience = SECONDS + (double)s->agents; /* a stream for each */
    char log[RFI_PATH_SIZE];
    char store[RFI_PATH_SIZE];
    char line[200];
    ptrdiff_t number = i > 0 ? i : -1;
    if (!rfi_swarm_path(s, log, "broker.log", number) || !rfi_swarm_path(s, store, "store", number)) {
        return rfi_fail(error, REEF_E_FILE, "the path of the swarm's folder is too long");
    }
    const char *const words[] = {s->options->program, "broker",           s->run_file, "--store", store,
                                 "--listen",          s->url[i] + SCHEME, NULL};
    s->broker[i] = start(s, log, words);
    for (double end = rfi_now() + patience; s->broker[i] > 0 && rfi_now() < end;) {
        if (s->options->stop && *s->options->stop) {
            return rfi_fail(error, REEF_E_ENGINE, "stopped before the broker was ready");
        }
        if (log_says(log, "ready: ")) {
            return REEF_OK;
        }
        if (waitpid(s->broker[i], NULL, WNOHANG) == s->broker[i]) {
            s->broker[i] = 0;
        }
        pause_briefly();
    }
    last_line(log, line, sizeof line);
    return rfi_fail(error, REEF_E_ENGINE, "the broker does not start: %s%s",
                    line[0] ? line : "it says nothing; is the disk full?",
                    s->options->keep ? "" : " (--keep FOLDER keeps the logs)");
}

reef_status rfi_swarm_start_brokers(rfi_swarm *s, reef_error *error)
{
    for (ptrdiff_t i = 0; i < s->brokers; i++) {
        reef_status status = start_broker(s, i, error);
        if (status != REEF_OK) {
            return status;
        }
    }
    return REEF_OK;
}

/* One broker is enough. */
static reef_status watch_brokers(rfi_swarm *s, reef_error *error)
{
    ptrdiff_t left = 0;
    for (ptrdiff_t i = 0; i < s->brokers; i++) {
        if (s->broker[i] > 0 && waitpid(s->broker[i], NULL, WNOHANG) == s->broker[i]) {
            s->broker[i] = 0;
        }
        left += s->broker[i] > 0;
    }
    if (left > 0) {
        return REEF_OK;
    }
    char log[RFI_PATH_SIZE];
    char line[200] = ""; /* the folder, and the log with it, may be gone in a moment */
    if (rfi_swarm_path(s, log, "broker.log", -1)) {
        last_line(log, line, sizeof line);
    }
    return rfi_fail(error, REEF_E_ENGINE, "the broker has ended: %s", line);
}

static reef_status start_agent(rfi_swarm *s, ptrdiff_t k, reef_error *error)
{
    char key[RFI_PATH_SIZE];
    char state[RFI_PATH_SIZE];
    char record[RFI_PATH_SIZE];
    char log[RFI_PATH_SIZE];
    if (!rfi_swarm_path(s, key, "key", k) || !rfi_swarm_path(s, state, "state", k) ||
        !rfi_swarm_path(s, record, "record", k) || !rfi_swarm_path(s, log, "log", k)) {
        return rfi_fail(error, REEF_E_FILE, "the path of the swarm's folder is too long");
    }
    const char *const words[] = {s->options->program, "agent", s->run_file, "--key", key,
                                 "--state",           state,   "--record",  record,  NULL};
    s->pupils[k].process = start(s, log, words);
    return s->pupils[k].process > 0
               ? REEF_OK
               : rfi_fail(error, REEF_E_ENGINE, "no process for agent %td: %s", k, strerror(errno));
}

/* ---- records ---- */

/* Reads what the agent has written since; `least`: stops at the first record of so many rounds or more. */
static void read_records(const rfi_swarm *s, rfi_pupil *p, ptrdiff_t k, uint64_t least)
{
    char path[RFI_PATH_SIZE];
    if (p->record < 0 && rfi_swarm_path(s, path, "record", k)) {
        p->record = open(path, O_RDONLY | O_CLOEXEC);
    }
    bool enough = p->records_read > 0 && p->last.round >= least;
    while (p->record >= 0 && !enough) {
        off_t at = (off_t)p->records_read * (off_t)p->shape.size;
        rfi_record_head head;
        if (pread(p->record, &head, sizeof head, at) != (ssize_t)sizeof head) {
            return;
        }
        bool whole = pread(p->record, p->bytes + p->shape.size, p->shape.size, at) == (ssize_t)p->shape.size;
        if (!whole) {
            return;
        }
        p->records_read++;
        /* An agent that was killed goes on from its checkpoint, so rounds may come again; the later word counts. */
        memcpy(p->bytes, p->bytes + p->shape.size, p->shape.size);
        p->last = head;
        enough = head.round >= least;
    }
}

bool rfi_swarm_reached(rfi_swarm *s, int64_t round)
{
    bool all = true;
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        rfi_pupil *p = &s->pupils[k];
        read_records(s, p, k, (uint64_t)round);
        all = all && (p->ended || (p->records_read > 0 && p->last.round >= (uint64_t)round));
    }
    return all;
}

/* ---- tending ---- */

static bool has_begun(const rfi_swarm *s, ptrdiff_t k)
{
    char path[RFI_PATH_SIZE];
    struct stat about;
    return s->pupils[k].records_read > 0 ||
           (rfi_swarm_path(s, path, "record", k) && stat(path, &about) == 0 && about.st_size > 0);
}

static reef_status start_more(rfi_swarm *s, reef_error *error)
{
    ptrdiff_t beginners = 0;
    for (ptrdiff_t k = 0; k < s->started; k++) {
        beginners += !s->pupils[k].ended && !has_begun(s, k);
    }
    while (s->started < s->agents && beginners < BEGINNERS) {
        reef_status status = start_agent(s, s->started, error);
        if (status != REEF_OK) {
            return status;
        }
        s->started++;
        beginners++;
    }
    return REEF_OK;
}

static reef_status reap(rfi_swarm *s, ptrdiff_t k, reef_error *error)
{
    rfi_pupil *p = &s->pupils[k];
    int status = 0;
    char log[RFI_PATH_SIZE];
    char line[200] = "";
    if (!p->process || waitpid(p->process, &status, WNOHANG) != p->process) {
        return REEF_OK;
    }
    p->process = 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) { /* ours: see kill_some */
        return start_agent(s, k, error);
    }
    p->ended = true;
    p->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (p->exit_code == 0) {
        return REEF_OK;
    }
    if (rfi_swarm_path(s, log, "log", k)) {
        last_line(log, line, sizeof line);
    }
    if (WIFSIGNALED(status)) {
        return rfi_fail(error, REEF_E_ENGINE, "agent %td was ended by signal %d (%s): %s", k, WTERMSIG(status),
                        strsignal(WTERMSIG(status)), line);
    }
    return rfi_fail(error, REEF_E_ENGINE, "agent %td ended with code %d: %s", k, p->exit_code, line);
}

static double draw(rfi_swarm *s)
{
    s->draws = rfi_hash_number(s->draws, 1);
    return (double)(s->draws >> 11) * 0x1p-53;
}

/* Ends an agent as kill -9 does, now and then, spread over the first half of the rounds: the second shows what is left of it. */
static void kill_some(rfi_swarm *s)
{
    int64_t furthest = 0;
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        furthest = (int64_t)s->pupils[k].last.round > furthest ? (int64_t)s->pupils[k].last.round : furthest;
    }
    double wanted = (double)s->options->kills * (2 * (double)furthest / (double)s->rounds - 0.1);
    double done = (double)(s->options->kills - s->kills);
    if (s->kills == 0 || s->started < s->agents || wanted <= done) {
        return;
    }
    ptrdiff_t k = (ptrdiff_t)(draw(s) * (double)s->agents);
    if (s->pupils[k].process && !s->pupils[k].ended) {
        (void)kill(s->pupils[k].process, SIGKILL);
        s->kills--;
        rfi_swarm_note(s, "killed", k);
    }
}

/* Who was away when the others ended, for longer than the store remembers, finds nobody to combine with and would wait for ever: it is told
 * to end. Others come on by a round within a deadline, and hear of who is ahead from neighbour to neighbour. */
static void end_stranded(rfi_swarm *s)
{
    const double patience = fmax(30, (double)(s->agents + 10) * s->options->deadline);
    ptrdiff_t records = 0;
    ptrdiff_t ended = 0;
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        ended += s->pupils[k].ended;
        records += s->pupils[k].records_read;
    }
    if (ended == 0 || records != s->records) {
        s->records = records;
        s->records_at = rfi_now();
    }
    for (ptrdiff_t k = 0; rfi_now() - s->records_at > patience && k < s->agents; k++) {
        if (s->pupils[k].process) {
            (void)kill(s->pupils[k].process, SIGTERM);
            rfi_swarm_note(s, "stranded", k);
        }
    }
    s->records_at = rfi_now() - s->records_at > patience ? rfi_now() : s->records_at;
}

static void show(rfi_swarm *s)
{
    char line[300];
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    uint64_t alone = 0;
    uint64_t all = 0;
    uint64_t refused = 0;
    double now = rfi_now();
    if (now - s->shown_at < 1 || !s->options->tell) {
        return;
    }
    s->shown_at = now;
    for (ptrdiff_t k = 0; k < s->agents; k++) {
        const rfi_record_head *last = &s->pupils[k].last;
        least = last->round < least ? last->round : least;
        most = last->round > most ? last->round : most;
        alone += last->alone;
        all += last->alone + last->combined;
        refused += last->refused;
    }
    if (s->started < s->agents) {
        (void)snprintf(line, sizeof line, "%4.0f s  %td of %td agents started", now - s->began, s->started, s->agents);
    } else {
        char killed[32] = "";
        if (s->options->kills > 0) {
            (void)snprintf(killed, sizeof killed, "  killed %td", s->options->kills - s->kills);
        }
        char score[48] = ""; /* nothing is measured yet */
        if (s->metric[0]) {
            (void)snprintf(score, sizeof score, "%s %.4g  ", s->metric, s->value);
        }
        (void)snprintf(line, sizeof line, "%4.0f s  round %llu to %llu of %lld  %salone %.1f %%  refused %llu%s",
                       now - s->began, (unsigned long long)least, (unsigned long long)most, (long long)s->rounds, score,
                       all ? 100.0 * (double)alone / (double)all : 0, (unsigned long long)refused, killed);
    }
    s->options->tell(s->options->user, line);
}

reef_status rfi_swarm_tend(rfi_swarm *s, reef_error *error)
{
    reef_status status = start_more(s, error);
    for (ptrdiff_t k = 0; k < s->started && status == REEF_OK; k++) {
        status = reap(s, k, error);
    }
    if (status == REEF_OK) {
        status = watch_brokers(s, error);
    }
    if (status != REEF_OK) {
        return status;
    }
    kill_some(s);
    end_stranded(s);
    show(s);
    if (rfi_now() - s->live_at > 0.25) {
        s->live_at = rfi_now();
        rfi_live_tend(&s->live);
    }
    pause_briefly();
    return REEF_OK;
}

static void end_process(pid_t *process)
{
    enum { PAUSES = 400 };
    if (*process <= 0) {
        return;
    }
    for (int i = 0; i < PAUSES; i++) {
        if (waitpid(*process, NULL, WNOHANG) == *process) {
            *process = 0;
            return;
        }
        pause_briefly();
    }
    (void)kill(*process, SIGKILL);
    (void)waitpid(*process, NULL, 0);
    *process = 0;
}

void rfi_swarm_end(rfi_swarm *s)
{
    for (ptrdiff_t k = 0; k < s->started; k++) { /* all are told first, then waited for */
        if (s->pupils[k].process > 0) {
            (void)kill(s->pupils[k].process, SIGTERM);
        }
    }
    for (ptrdiff_t k = 0; k < s->started; k++) {
        end_process(&s->pupils[k].process);
    }
    for (ptrdiff_t i = 0; i < RFI_BROKERS_MAX; i++) {
        if (s->broker[i] > 0) {
            (void)kill(s->broker[i], SIGTERM);
        }
        end_process(&s->broker[i]);
    }
    for (ptrdiff_t k = 0; s->pupils && k < s->agents; k++) {
        if (s->pupils[k].record >= 0) {
            (void)close(s->pupils[k].record);
        }
        rfi_release(NULL, s->pupils[k].bytes);
    }
    rfi_release(NULL, s->pupils);
}
