/* JSON on a stream, for `--json`: values one after another, with commas, indentation and escapes seen to.
 *
 *     json j = json_start(stdout);
 *     json_open(&j, NULL, '{');
 *     json_text(&j, "name", "ref");
 *     json_open(&j, "trust", '[');
 *     json_number(&j, NULL, 0.5);
 *     json_close(&j);
 *     json_close(&j);                   the last one also ends the line
 *
 * A value has a name inside an object and none (NULL) inside an array. Bytes that are not UTF-8 (in names of files) become U+FFFD, and
 * numbers that are not finite become null: what is written is always JSON. */
#ifndef REEF_TOOLS_JSON_H
#define REEF_TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { JSON_DEPTH_MAX = 16 };

typedef struct json {
    FILE *to;
    int depth;                    /* brackets that are open */
    char closing[JSON_DEPTH_MAX]; /* what closes each of them */
    bool filled[JSON_DEPTH_MAX];  /* whether it has a value already */
} json;

json json_start(FILE *to);
/* bracket: '{' or '['. */
void json_open(json *j, const char *name, char bracket);
void json_close(json *j);
/* value NULL: null. */
void json_text(json *j, const char *name, const char *value);
/* With as many digits as it takes to read the same number back. */
void json_number(json *j, const char *name, double value);
void json_whole(json *j, const char *name, ptrdiff_t value);
void json_flag(json *j, const char *name, bool value);

#endif
