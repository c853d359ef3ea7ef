/* Appending to the audit log. */
#include "net/audit.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH = 4096 };

/* Opens the log, after the old one was put aside if it is full. */
static FILE *open_log(const char *folder)
{
    char path[PATH];
    char old[PATH + 2];
    struct stat about;
    if (snprintf(path, sizeof path, "%s/audit.log", folder) >= (int)sizeof path) {
        return NULL;
    }
    (void)snprintf(old, sizeof old, "%s.1", path);
    if (stat(path, &about) == 0 && about.st_size >= (off_t)RFI_AUDIT_BYTES) {
        (void)rename(path, old);
    }
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    FILE *log = file >= 0 ? fdopen(file, "a") : NULL;
    if (file >= 0 && !log) {
        (void)close(file);
    }
    return log;
}

bool rfi_audit_line(const char *folder, const char *event, const char *format, ...)
{
    char when[32];
    struct tm parts;
    time_t seconds = time(NULL);
    FILE *log = open_log(folder);
    if (!log) {
        return false;
    }
    (void)gmtime_r(&seconds, &parts);
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &parts);
    va_list list;
    va_start(list, format);
    bool written = fprintf(log, "time=%s event=%s ", when, event) > 0 && vfprintf(log, format, list) >= 0 &&
                   fputc('\n', log) != EOF;
    va_end(list);
    return fclose(log) == 0 && written;
}

void rfi_audit_hex(char *text, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * size] = '\0';
}
