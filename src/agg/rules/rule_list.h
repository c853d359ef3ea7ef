/* The built-in rules, in the order in which they are listed. To add one, add a line: REEF_AGG(name) stands for the
 * const reef_rule rfi_agg_name of src/agg/rules/name.c. */

/* rules */
REEF_AGG(mean)
REEF_AGG(median)
REEF_AGG(trimmed)
REEF_AGG(meamed)
REEF_AGG(geomed)
REEF_AGG(krum)
REEF_AGG(multikrum)
REEF_AGG(bulyan)
REEF_AGG(mda)
REEF_AGG(cclip)
REEF_AGG(huber)
REEF_AGG(tukey)
REEF_AGG(ref)
REEF_AGG(vref)
REEF_AGG(mref)

/* pre-aggregators */
REEF_AGG(nnm)
REEF_AGG(bucketing)
REEF_AGG(clip)
REEF_AGG(arc)
