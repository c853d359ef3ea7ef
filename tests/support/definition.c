#include "support/definition.h"

#include "support/check.h"

#include <math.h>

rows_kind definition_rows(ptrdiff_t i)
{
    return (rows_kind)(i % ROWS_KINDS);
}

void definition_make(definition *d, rows_kind kind, ptrdiff_t n, ptrdiff_t m, bool weigh, uint32_t seed)
{
    trial_fill(&d->t, kind, n, m, REEF_F64, seed);
    if (weigh) {
        trial_weigh(&d->t, seed);
    }
    oracle_take(&d->t, &d->x);
}

void definition_check(definition *d, const char *spec, double tol)
{
    const trial *t = &d->t;
    trial_must_run(&d->t, spec);
    for (ptrdiff_t i = 0; i < t->m; i++) {
        CHECK(fabs(t->out[i] - d->want[i]) <= tol, "%s (n = %td, m = %td, weighted %d): %.17g instead of %.17g", spec,
              t->n, t->m, t->weighted, t->out[i], d->want[i]);
    }
}

void definition_check_relative(definition *d, const char *spec, double tol)
{
    definition_check(d, spec, tol * trial_magnitude(&d->t));
}
