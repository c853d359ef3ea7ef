/* Counting and timing. */
#include "net/telemetry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const double rfi_bucket_seconds[RFI_BUCKETS] = {0.001, 0.01, 0.1, 0.5, 1, 5, 30, 300};

const char *rfi_stage_text(rfi_telemetry_stage stage)
{
    static const char *const texts[] = {"adapt", "wait", "fetch", "combine", "journal", "checkpoint"};
    return stage >= 0 && stage < RFI_STAGES ? texts[stage] : "?";
}

void rfi_telemetry_start(rfi_telemetry *t)
{
    *t = (rfi_telemetry){.ready_at = -1, .offered_at = -1, .looked_at = -1};
    rfi_telemetry_forget(t);
}

void rfi_telemetry_forget(rfi_telemetry *t)
{
    for (int l = 0; l < RFI_NEIGHBOURS_MAX; l++) {
        t->trust[l] = -1;
        t->age[l] = RFI_AGE_ABSENT;
        t->test[l] = 0;
    }
}

void rfi_telemetry_time(rfi_telemetry *t, rfi_telemetry_stage stage, double seconds)
{
    rfi_histogram *h = &t->stages[stage];
    int bucket = 0;
    while (bucket < RFI_BUCKETS && seconds > rfi_bucket_seconds[bucket]) {
        bucket++;
    }
    h->counts[bucket]++;
    h->count++;
    h->sum += seconds;
    h->last = seconds;
    if (stage == RFI_STAGE_COMBINE || stage == RFI_STAGE_JOURNAL) {
        t->within += seconds;
    }
}

void rfi_telemetry_ready(rfi_telemetry *t, double now)
{
    t->ready_at = t->ready_at < 0 ? now : t->ready_at;
}

void rfi_telemetry_offered(rfi_telemetry *t, double now)
{
    if (t->ready_at >= 0) {
        rfi_telemetry_time(t, RFI_STAGE_ADAPT, fmax(0, now - t->ready_at));
    }
    t->ready_at = -1;
    t->offered_at = now;
    t->fetching = t->within = 0;
}

void rfi_telemetry_looked(rfi_telemetry *t, double now, bool fetching)
{
    if (t->looked_at >= 0) {
        t->fetching += now - t->looked_at;
    }
    t->looked_at = fetching ? now : -1;
}

void rfi_telemetry_ended(rfi_telemetry *t, double now)
{
    if (t->offered_at < 0) {
        return; /* a model was taken over from neighbours */
    }
    rfi_telemetry_time(t, RFI_STAGE_WAIT, fmax(0, now - t->offered_at - t->within));
    if (t->fetching > 0) {
        rfi_telemetry_time(t, RFI_STAGE_FETCH, t->fetching);
    }
    t->offered_at = -1;
    t->fetching = 0;
}

bool rfi_telemetry_note(rfi_telemetry *t, const char *name, double value)
{
    if (!rfi_is_note(name) || !isfinite(value)) {
        return false;
    }
    for (int i = 0; i < RFI_NOTES; i++) {
        rfi_note *note = &t->notes[i];
        if (!note->name[0] || strcmp(note->name, name) == 0) {
            (void)snprintf(note->name, sizeof note->name, "%s", name);
            note->value = value;
            return true;
        }
    }
    return false;
}
