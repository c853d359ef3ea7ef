/* Speed of merging model files, against `cat` of the same files to /dev/null in the same run, page cache warm.
 *
 * The files (32 safetensors of 100 MB, float32, 8 tensors) are made in a temporary folder and removed at the end. Each merge and each
 * cat is a process of its own, timed from start to end; they take turns, the best of some repeats counts. The result is written to
 * /dev/shm where there is one: fsync costs nothing there. `cpu` is processor time, of all threads: on a busy machine the better
 * measure. `peak` is the largest resident set of a merge.
 *
 * usage: bench_merge [--files N] [--megabytes N] [--repeats N] [--folder PATH] [--json FILE]
 */
#define _DEFAULT_SOURCE /* wait4 */
#include <reef/reef.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FILES_MAX = 256, PATH_ROOM = 300, TENSORS = 8 };

typedef struct options {
    int files, megabytes, repeats;
    const char *parent;
    FILE *json;
} options;

typedef struct bench {
    options o;
    char folder[PATH_ROOM - 40];
    char out[PATH_ROOM];
    char paths[FILES_MAX][PATH_ROOM];
} bench;

static const char *const rules[] = {"mean", "median", "ref", "vref", "krum:f=20%"};
enum { RULES = sizeof rules / sizeof rules[0] };

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_merge: %s\n", what);
    exit(1);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the files ---- */

/* Sum of four bytes of a generator around 0: near enough to normal. */
static void fill(float *numbers, size_t count, uint64_t *state)
{
    for (size_t i = 0; i < count; i++) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        uint64_t x = *state;
        long sum = (long)(x & 0xFFFF) + (long)(x >> 16 & 0xFFFF) + (long)(x >> 32 & 0xFFFF) + (long)(x >> 48);
        numbers[i] = (float)(sum - 2 * 0xFFFF) / 0xFFFF;
    }
}

static void make_file(const char *path, size_t numbers, uint64_t seed)
{
    static float block[1 << 16];
    char header[TENSORS * 128 + 8];
    size_t length = 0;
    size_t each = numbers / TENSORS;
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (size_t i = 0; i < TENSORS; i++) {
        length += (size_t)snprintf(header + 8 + length, sizeof header - 8 - length,
                                   "%s\"layer%zu\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}",
                                   i ? "," : "{", i, each, 4 * i * each, 4 * (i + 1) * each);
    }
    header[8 + length++] = '}';
    for (int i = 0; i < 8; i++) {
        header[i] = (char)(length >> (8 * i) & 0xFF);
    }
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(header, 1, length + 8, file) != length + 8) {
        fail("cannot write the files");
    }
    for (size_t left = each * TENSORS; left > 0;) {
        size_t count = left < sizeof block / sizeof block[0] ? left : sizeof block / sizeof block[0];
        fill(block, count, &state);
        if (fwrite(block, sizeof block[0], count, file) != count) {
            fail("cannot write the files");
        }
        left -= count;
    }
    if (fclose(file) != 0) {
        fail("cannot write the files");
    }
}

static void make_files(bench *b)
{
    int used = snprintf(b->folder, sizeof b->folder, "%s/reef_merge_XXXXXX", b->o.parent);
    if (used < 0 || (size_t)used >= sizeof b->folder || !mkdtemp(b->folder)) {
        fail("cannot make a temporary folder");
    }
    for (int i = 0; i < b->o.files; i++) {
        (void)fprintf(stderr, "file %d of %d ...\r", i + 1, b->o.files);
        (void)snprintf(b->paths[i], PATH_ROOM, "%s/%03d.safetensors", b->folder, i);
        make_file(b->paths[i], (size_t)b->o.megabytes * 250000, (uint64_t)i + 1);
    }
    bool shared = access("/dev/shm", W_OK) == 0;
    (void)snprintf(b->out, sizeof b->out, "%s/reef_merge_%ld.safetensors", shared ? "/dev/shm" : b->folder,
                   (long)getpid());
}

static void remove_files(bench *b)
{
    for (int i = 0; i < b->o.files; i++) {
        (void)unlink(b->paths[i]);
    }
    (void)unlink(b->out);
    (void)rmdir(b->folder);
}

/* ---- the processes ---- */

static void run_cat(bench *b)
{
    char *arguments[FILES_MAX + 2] = {"cat"};
    int null = open("/dev/null", O_WRONLY);
    for (int i = 0; i < b->o.files; i++) {
        arguments[i + 1] = b->paths[i];
    }
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0) {
        _exit(1);
    }
    (void)execvp("cat", arguments);
    _exit(1);
}

static void run_merge(bench *b, const char *rule)
{
    const char *paths[FILES_MAX];
    reef_context *context = NULL;
    reef_error error = {REEF_OK, ""};
    reef_merge_options job = {.rule = rule};
    reef_merge_file fates[FILES_MAX];
    reef_merge_report report = {.files = fates};
    for (int i = 0; i < b->o.files; i++) {
        paths[i] = b->paths[i];
    }
    if (reef_context_create(&context, NULL, &error) != REEF_OK ||
        reef_merge_files(context, &job, paths, b->o.files, b->out, &report, &error) != REEF_OK) {
        (void)fprintf(stderr, "bench_merge: %s\n", error.text);
        _exit(1);
    }
    _exit(0);
}

/* The best of some runs of a child. */
typedef struct cost {
    double seconds, cpu;
    double peak; /* largest resident set of all, MB */
} cost;

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* Runs a child, cat (rule NULL) or a merge. */
static void time_child(bench *b, const char *rule, cost *best)
{
    int code = 0;
    struct rusage used;
    double start = seconds();
    pid_t child = fork();
    if (child == 0) {
        if (rule) {
            run_merge(b, rule);
        }
        run_cat(b);
    }
    if (child < 0 || wait4(child, &code, 0, &used) != child || code != 0) {
        remove_files(b);
        fail("a child process failed");
    }
    double taken = seconds() - start;
    double cpu = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    double resident = (double)used.ru_maxrss / 1024;
    best->seconds = taken < best->seconds ? taken : best->seconds;
    best->cpu = cpu < best->cpu ? cpu : best->cpu;
    best->peak = resident > best->peak ? resident : best->peak;
}

static void measure(bench *b, const char *rule)
{
    cost cat = {1e300, 1e300, 0};
    cost merge = cat;
    for (int i = 0; i < b->o.repeats; i++) {
        time_child(b, NULL, &cat);
        time_child(b, rule, &merge);
    }
    double gigabytes = (double)b->o.files * b->o.megabytes / 1000;
    printf("%-12s  %7.3f  %7.3f  %6.2fx  %7.3f  %7.3f  %6.1f  %8.0f\n", rule, cat.seconds, merge.seconds,
           merge.seconds / cat.seconds, cat.cpu, merge.cpu, gigabytes / merge.seconds, merge.peak);
    (void)fflush(stdout);
    if (b->o.json) {
        (void)fprintf(b->o.json,
                      "{\"rule\": \"%s\", \"cat_s\": %.4f, \"merge_s\": %.4f, \"cat_cpu_s\": %.4f, "
                      "\"merge_cpu_s\": %.4f, \"peak_mb\": %.1f}\n",
                      rule, cat.seconds, merge.seconds, cat.cpu, merge.cpu, merge.peak);
    }
}

static int number(const char *text, int most)
{
    long value = strtol(text, NULL, 10);
    if (value < 1 || value > most) {
        fail("a number is out of range");
    }
    return (int)value;
}

int main(int argc, char **argv)
{
    static bench b;
    const char *temporary = getenv("TMPDIR");
    b.o = (options){32, 100, 5, temporary ? temporary : "/tmp", NULL};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--files") == 0) {
            b.o.files = number(argv[i + 1], FILES_MAX);
        } else if (strcmp(argv[i], "--megabytes") == 0) {
            b.o.megabytes = number(argv[i + 1], 100000);
        } else if (strcmp(argv[i], "--repeats") == 0) {
            b.o.repeats = number(argv[i + 1], 1000);
        } else if (strcmp(argv[i], "--folder") == 0) {
            b.o.parent = argv[i + 1];
        } else if (strcmp(argv[i], "--json") == 0) {
            b.o.json = fopen(argv[i + 1], "w");
        }
    }
    make_files(&b);
    printf(
        "Merging %d safetensors files of %d MB against cat of them to /dev/null, page cache warm, all processors.\n\n",
        b.o.files, b.o.megabytes);
    printf("%-12s  %7s  %7s  %7s  %7s  %7s  %6s  %8s\n", "rule", "cat s", "merge s", "ratio", "cat cpu", "cpu", "GB/s",
           "peak MB");
    for (int i = 0; i < RULES; i++) {
        measure(&b, rules[i]);
    }
    remove_files(&b);
    return b.o.json && fclose(b.o.json) != 0;
}
