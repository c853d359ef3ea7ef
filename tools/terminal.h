/* What the person at a terminal sees: colours, words in singular or plural, and names that were probably meant. */
#ifndef REEF_TOOLS_TERMINAL_H
#define REEF_TOOLS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum tint { TINT_HEADING, TINT_WARNING, TINT_ERROR, TINT_GOOD } tint;
/* Begins and ends a colour; "" unless `to` is a terminal that has them. NO_COLOR in the environment (no-color.org) and TERM=dumb
 * switch colours off. */
const char *tint_on(FILE *to, tint colour);
const char *tint_off(FILE *to);

/* "" for one, "s" for any other number. */
const char *plural(ptrdiff_t count);

/* The number of the word that is nearest to what was typed, -1 if none is near: at most a third of its letters have to be changed,
 * left out, added or swapped, or it begins like the word. next(user, i): word number i, NULL past the end. */
int nearest_word(const char *typed, const char *(*next)(const void *user, int i), const void *user);

#endif
