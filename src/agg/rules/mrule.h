/* M-estimates of location per coordinate: what huber, tukey and ref share. They differ in the weight function, in
 * the start they offer and in their presets. */
#ifndef RFI_AGG_RULES_MRULE_H
#define RFI_AGG_RULES_MRULE_H

#include "num/mest.h"

#include <reef/rule.h>

typedef struct rfi_mrule_params {
    double c;               /* NaN: from efficiency */
    double efficiency;      /* wanted at the Gaussian */
    int n;                  /* enum rfi_mrule_n */
    int scale;              /* rfi_scale_kind */
    double sigma;           /* known scale; NaN: estimated */
    int start;              /* enum rfi_mrule_start */
    int init;               /* enum rfi_mrule_init */
    double scale_floor;     /* absolute */
    double scale_floor_rel; /* relative to the typical scale of the tile */
    double tol;             /* NaN: 1e-6 (float32), 1e-12 (float64) */
    int64_t max_iter;
    double asymptotic_c; /* derived */
} rfi_mrule_params;

enum rfi_mrule_n { RFI_N_ASYMPTOTIC, RFI_N_AUTO };
enum rfi_mrule_start { RFI_START_MEDIAN, RFI_START_MEAN };
enum rfi_mrule_init { RFI_INIT_COUNT, RFI_INIT_WEIGHTED };

/* Field tables: those of ref, and those of tukey and huber (start and sigma to choose, no n=auto). */
#define RFI_MRULE_REF_FIELD_COUNT 9
extern const reef_field rfi_mrule_ref_fields[RFI_MRULE_REF_FIELD_COUNT];
#define RFI_MRULE_FIELD_COUNT 10
extern const reef_field rfi_mrule_fields[RFI_MRULE_FIELD_COUNT];

reef_status rfi_mrule_prepare(rfi_mest_loss family, rfi_mrule_params *params, reef_error *error);
double rfi_mrule_column(rfi_mest_loss family, const rfi_mrule_params *params, const reef_column *column, double *share,
                        reef_effort *effort);
/* The scale of a column before any floor; 0 when more than half the values coincide. */
double rfi_mrule_scale(const void *params, const reef_column *column);
/* Efficiency for n values (n=auto: finite-sample, else asymptotic). */
double rfi_mrule_efficiency(rfi_mest_loss family, const rfi_mrule_params *params, double n);
/* The fast path, for count median and MAD. */
ptrdiff_t rfi_mrule_span(rfi_mest_loss family, const rfi_mrule_params *params, reef_span *span);
double rfi_mrule_relative_floor(const void *params);
/* The tuning constant c for n values (equal ones, or as good as that many). */
double rfi_mrule_tune(const void *params, double n);
/* Traits without and with those that init=weighted adds. */
unsigned rfi_mrule_traits(const void *params);

#define RFI_MRULE_TRAITS                                                                                               \
    (REEF_TRAIT_WEIGHTS | REEF_TRAIT_PERMUTATION | REEF_TRAIT_TRANSLATION | REEF_TRAIT_SCALE | REEF_TRAIT_HULL |       \
     REEF_TRAIT_ROBUST)

#endif
