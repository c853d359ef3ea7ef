/* Colours, plurals, near misses. */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool has_colours(FILE *to)
{
    const char *none = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return !(none && none[0]) && terminal && strcmp(terminal, "dumb") != 0 && isatty(fileno(to)) == 1;
}

const char *tint_on(FILE *to, tint colour)
{
    static const char *const codes[] = {"\033[1m", "\033[33m", "\033[31m", "\033[32m"};
    return has_colours(to) ? codes[colour] : "";
}

const char *tint_off(FILE *to)
{
    return has_colours(to) ? "\033[0m" : "";
}

const char *plural(ptrdiff_t count)
{
    return count == 1 ? "" : "s";
}

enum { WORD_MAX = 24 };

static int least(int a, int b, int c)
{
    int two = a < b ? a : b;
    return two < c ? two : c;
}

/* Letters to change, leave out, add or swap with their neighbour (optimal string alignment). */
static int distance(const char *a, int a_length, const char *b, int b_length)
{
    int d[WORD_MAX + 1][WORD_MAX + 1];
    for (int i = 0; i <= a_length; i++) {
        d[i][0] = i;
    }
    for (int k = 0; k <= b_length; k++) {
        d[0][k] = k;
    }
    for (int i = 1; i <= a_length; i++) {
        for (int k = 1; k <= b_length; k++) {
            d[i][k] = least(d[i - 1][k] + 1, d[i][k - 1] + 1, d[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
            bool swapped = i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1];
            if (swapped && d[i - 2][k - 2] + 1 < d[i][k]) {
                d[i][k] = d[i - 2][k - 2] + 1;
            }
        }
    }
    return d[a_length][b_length];
}

int nearest_word(const char *typed, const char *(*next)(const void *user, int i), const void *user)
{
    const char *word = NULL;
    int found = -1;
    int best = WORD_MAX;
    size_t length = strlen(typed);
    for (int i = 0; length > 0 && (word = next(user, i)) != NULL; i++) {
        size_t other = strlen(word);
        bool begins =
            (length >= 2 && strncmp(typed, word, length) == 0) || (other >= 2 && strncmp(typed, word, other) == 0);
        bool short_enough = length <= WORD_MAX && other <= WORD_MAX;
        int apart = begins ? 0 : short_enough ? distance(typed, (int)length, word, (int)other) : WORD_MAX;
        bool near = begins || 3 * apart <= (int)(length > other ? length : other);
        if (near && apart < best) {
            best = apart;
            found = i;
        }
    }
    return found;
}
