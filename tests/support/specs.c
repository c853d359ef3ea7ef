/* The list of specs. */
#include "support/specs.h"

#include <string.h>

const char *const all_specs[] = {
    "mean",
    "median",
    "median:even=lower",
    "median:even=upper",
    "median:keep_self=true",
    "trimmed",
    "trimmed:f=max",
    "trimmed:beta=0.1",
    "trimmed:f=max,keep_self=true",
    "meamed",
    "meamed:f=25%",
    "geomed",
    "geomed:dialect=byzfl",
    "krum",
    "krum:f=20%",
    "krum:dialect=byzfl",
    "multikrum",
    "multikrum:m=2",
    "multikrum:f=0.1,dialect=byzfl",
    "bulyan",
    "bulyan:f=10%",
    "mda:f=25%",
    "mda:dialect=byzfl,f=20%",
    "cclip",
    "cclip:tau=1,L=5",
    "cclip:start=median,tau=2,L=3",
    "huber",
    "huber:start=mean,efficiency=0.99",
    "huber:sigma=1",
    "huber:init=weighted",
    "tukey",
    "tukey:start=mean,c=9",
    "tukey:init=weighted",
    "tukey:sigma=0.5",
    "ref",
    "ref:c=3",
    "ref:efficiency=0.85",
    "ref:efficiency=0.95,n=auto",
    "ref:scale=mad-exact",
    "ref:scale=mad-finite",
    "ref:scale=qn",
    "ref:scale=s",
    "ref:init=weighted",
    "ref:init=weighted,scale=s",
    "ref:scale_floor=0.5",
    "ref:scale_floor_rel=0.5",
    "ref:tol=1e-13,max_iter=1000",
    "vref",
    "vref:efficiency=0.95",
    "vref:block=segment",
    "vref:block=7",
    "vref:block=1,efficiency=0.95",
    "mref",
    "mref:sketch=16",
    "mref:sketch=full,lazy=0,horizon=64",
    "nnm | mean",
    "nnm | ref",
    "nnm:f=20% | krum",
    "nnm | vref",
    "nnm | vref:block=segment",
    "nnm | vref:block=3",
    "nnm | cclip:tau=1",
    "nnm | bulyan",
    "nnm:f=10% | mda:f=20%",
    "nnm | geomed:dialect=byzfl",
    "clip | ref",
    "clip:c=1 | mean",
    "clip:c=0 | mean",
    "clip:c=3 | geomed",
    "clip | cclip:tau=1,L=2",
    "arc | median",
    "arc | krum",
    "arc:f=20% | geomed",
    "arc | vref:block=5",
    "bucketing | ref",
    "bucketing:s=3 | trimmed:f=max",
    "bucketing | krum",
    "bucketing:s=2,seed=7 | vref",
    "bucketing:s=1 | median",
    "bucketing:s=1000 | huber",
    "nnm | arc | trimmed",
    "clip:c=3 | nnm | ref",
    "bucketing | nnm | ref",
    "arc | bucketing | geomed",
    "clip | bucketing | vref:block=5",
    "arc | nnm | meamed",
    "nnm | bucketing:s=3 | multikrum",
    "bucketing | clip:c=2 | tukey:init=weighted",
};
const ptrdiff_t all_specs_count = sizeof all_specs / sizeof all_specs[0];

const ptrdiff_t row_counts[] = {1, 2, 3, 4, 5, 8, 16, 31, 32, 33};
const ptrdiff_t row_counts_count = sizeof row_counts / sizeof row_counts[0];
const ptrdiff_t lengths[] = {1, 2, 3, 7, 63, 64, 65, 70};
const ptrdiff_t lengths_count = sizeof lengths / sizeof lengths[0];

bool spec_uses(const char *spec, const char *rule)
{
    size_t length = strlen(rule);
    for (const char *part = spec; part; part = strchr(part, '|')) {
        part += strspn(part, "| ");
        if (strncmp(part, rule, length) == 0 && strchr(": |", part[length])) {
            return true;
        }
    }
    return false;
}

double spec_tolerance(const char *spec, bool single)
{
    /* steps shorter than 1e-9 may leave a slowly converging iteration farther away than that */
    double slow = spec_uses(spec, "geomed") ? 1e-5 : (spec_uses(spec, "vref") ? 1e-7 : 1e-10);
    return single && slow < 3e-6 ? 3e-6 : slow;
}
