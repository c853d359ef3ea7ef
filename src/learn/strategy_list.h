/* The strategies, in the order in which they are listed. To add one, add a line: REEF_STRATEGY(name) stands for the
 * const rfi_strategy rfi_strategy_name of src/learn. */
REEF_STRATEGY(diffusion)
REEF_STRATEGY(federated)
REEF_STRATEGY(rsa)
REEF_STRATEGY(rsa_tv)
REEF_STRATEGY(local)
REEF_STRATEGY(oracle)
