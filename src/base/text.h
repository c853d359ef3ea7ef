/* Small text helpers: slices, and the nearest valid name for a message. */
#ifndef RFI_BASE_TEXT_H
#define RFI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of somebody else's string, not terminated. */
typedef struct rfi_slice {
    const char *text;
    size_t length;
} rfi_slice;

/* For printf("%.*s"): length cut to what a message can show, then the pointer. */
#define RFI_SHOW(slice) (int)((slice).length > 40 ? 40 : (slice).length), (slice).text

rfi_slice rfi_trim(rfi_slice slice);
bool rfi_equals(rfi_slice slice, const char *word);
/* Control characters, which a terminal would obey: below 32, 127 and C1; and those of Unicode that turn the direction of text round or show
 * nothing, by which a name can look like another. In UTF-8; joiners are not among them. tools/options.c knows the same ones. */
bool rfi_has_control(rfi_slice slice);
/* Makes each byte of them a '?'. */
void rfi_hide_control(char *text);
/* True for a word of at most 32 letters, digits and _-. that a message may repeat. What a file holds besides is not for everybody who
 * reads messages, and may be no text at all. */
bool rfi_is_word(rfi_slice slice);
/* Cuts slice at the first `mark`: returns what comes before it, and leaves in *rest what follows.
 * *found says whether there was one; without it everything is returned and *rest is empty. */
rfi_slice rfi_cut(rfi_slice slice, char mark, rfi_slice *rest, bool *found);
/* Edit distance between a slice and a word (insert, delete, replace, swap neighbours), ignoring the case of letters; large when one is over 32 letters. */
int rfi_edit_distance(rfi_slice slice, const char *word);
/* True if `word` is near enough to `slice` to be suggested; keeps the best seen in *best (start with a large number). */
bool rfi_is_nearer(rfi_slice slice, const char *word, int *best);

/* The empty text, if there is room for it; returns its length, 0. */
size_t rfi_no_text(char *text, size_t size);

/* Appends formatted text to buffer[size] at *used, which grows by the full length even when the text is cut. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void rfi_append(char *buffer, size_t size, size_t *used, const char *format, ...);

#endif
