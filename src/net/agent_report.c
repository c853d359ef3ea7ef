/* What became of a round, as JSON for clients in any language; the keys are those of reef.Exchange in Python. */
#include "net/agent.h"

#include "io/json.h"

#include <stdio.h>
#include <string.h>

typedef struct sheet {
    const reef_agent *agent;
    char *to; /* NULL: only measures */
    size_t used;
    bool first; /* nothing is in the list that is open */
} sheet;

static void put(sheet *s, const char *plain)
{
    rfi_json_put(s->to, &s->used, plain);
}

static void put_text(sheet *s, const char *text)
{
    rfi_json_put_text(s->to, &s->used, (rfi_slice){text, strlen(text)});
}

static void put_number(sheet *s, const char *before, double number)
{
    char text[64];
    (void)snprintf(text, sizeof text, "%s%.9g", before, number);
    put(s, text);
}

static void open_list(sheet *s, const char *name, char mark)
{
    const char opened[] = {':', ' ', mark, '\0'};
    put(s, ", ");
    put_text(s, name);
    put(s, opened);
    s->first = true;
}

static void put_name(sheet *s, ptrdiff_t neighbour)
{
    put(s, s->first ? "" : ", ");
    s->first = false;
    put_text(s, reef_agent_name(s->agent, neighbour));
}

static void put_presence(sheet *s, const char *name, reef_presence presence)
{
    open_list(s, name, '[');
    for (ptrdiff_t l = 0; l < reef_agent_neighbours(s->agent); l++) {
        if (reef_agent_presence(s->agent, l) == presence) {
            put_name(s, l);
        }
    }
    put(s, "]");
}

static void put_texts(sheet *s, const char *name, const char *(*text)(const reef_agent *, ptrdiff_t), bool wanted)
{
    open_list(s, name, '{');
    for (ptrdiff_t l = 0; wanted && l < reef_agent_neighbours(s->agent); l++) {
        if (text(s->agent, l)[0]) {
            put_name(s, l);
            put(s, ": ");
            put_text(s, text(s->agent, l));
        }
    }
    put(s, "}");
}

static void put_trust(sheet *s)
{
    open_list(s, "trust", '{');
    for (ptrdiff_t l = 0; reef_agent_combined(s->agent) && l < reef_agent_neighbours(s->agent); l++) {
        if (reef_agent_presence(s->agent, l) != REEF_MISSING) {
            put_name(s, l);
            put_number(s, ": ", reef_agent_trust(s->agent, l));
        }
    }
    put(s, "}");
}

static void put_all(sheet *s, uint64_t round, double seconds, bool explain)
{
    put_number(s, "{\"round\": ", (double)round);
    put(s, reef_agent_combined(s->agent) ? ", \"combined\": true" : ", \"combined\": false");
    put_number(s, ", \"weight\": ", reef_agent_weight(s->agent));
    put_number(s, ", \"seconds\": ", seconds);
    put_trust(s);
    put_presence(s, "present", REEF_FRESH);
    put_presence(s, "stale", REEF_OLD);
    put_presence(s, "missing", REEF_MISSING);
    put_texts(s, "why", reef_agent_explain, explain);
    put_texts(s, "refused", reef_agent_refused, true);
    put(s, "}");
}

size_t rfi_agent_report(const reef_agent *agent, uint64_t round, double seconds, char *to, size_t room)
{
    sheet measured = {.agent = agent};
    put_all(&measured, round, seconds, true);
    sheet s = {.agent = agent, .to = to};
    put_all(&s, round, seconds, measured.used <= room); /* without reasons it always fits */
    return s.used;
}
