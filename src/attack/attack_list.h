/* The attacks, in the order in which they are listed. To add one, add a line: REEF_ATTACK(name) stands for the
 * const reef_attack_kind rfi_attack_name of src/attack/name.c. */

/* each malicious agent on its own */
REEF_ATTACK(additive)
REEF_ATTACK(sign_flip)
REEF_ATTACK(gaussian)
REEF_ATTACK(zero)
REEF_ATTACK(random)
REEF_ATTACK(nan)
REEF_ATTACK(few_coordinates)

/* all together, hidden among the honest rows */
REEF_ATTACK(mimic)
REEF_ATTACK(alie)
REEF_ATTACK(shared_noise)
REEF_ATTACK(adaptive)
REEF_ATTACK(frame)
REEF_ATTACK(ipm)
REEF_ATTACK(min_max)
REEF_ATTACK(fang)

/* against the rule in use */
REEF_ATTACK(fang_krum)
REEF_ATTACK(line_search)

/* a different row for every receiver */
REEF_ATTACK(two_faced)
REEF_ATTACK(dissensus)

/* in the data, or in time */
REEF_ATTACK(label_flip)
REEF_ATTACK(silent)
REEF_ATTACK(late)
REEF_ATTACK(whitewash)
REEF_ATTACK(come_and_go)
