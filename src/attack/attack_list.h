/* The attacks, in the order in which they are listed. One line adds one: REEF_ATTACK(name) stands for the
 * const reef_attack_kind rfi_attack_name of src/attack/name.c. */

/* each liar for itself */
REEF_ATTACK(additive)
REEF_ATTACK(sign_flip)
REEF_ATTACK(gaussian)

/* all liars together, hidden among the honest rows */
REEF_ATTACK(alie)
