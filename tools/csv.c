/* Lines of csv as Reef writes them. */
#include "commands.h"

char *next_field(char **rest)
{
    char *field = *rest;
    char *to = field;
    bool quoted = field && *field == '"';
    if (!field) {
        return NULL;
    }
    char *from = field + quoted;
    while (*from && (quoted || *from != ',')) {
        if (quoted && *from == '"') {
            quoted = from[1] == '"';
            from += 1;
            if (!quoted) {
                continue;
            }
        }
        *to++ = *from++;
    }
    *rest = *from == ',' ? from + 1 : NULL;
    *to = '\0';
    return field;
}
