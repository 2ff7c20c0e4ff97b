"""The rows of the arrays that a block of chains shares, by name, and the kinds of tempering."""

# Energies are exact in ENERGY, and as tempering sees them in NOISY_ENERGY. The gradient is multiplied by MULTIPLIER
# (contour), or by the coupling λ (continuous tempering), which is 1 elsewhere; PROPOSED is MULTIPLIER on the way to a
# Metropolis test, and its uniform then; LENGTH and HEAT are a leapfrog's step and √T. WEIGHT is that of the last draw;
# under MALA and HMC it says, beside POTENTIAL and OUTSIDE, how a trajectory ended, and the noise holds the gradient
# where it began (``metropolis_step.use_trajectory_end``).
(
    ENERGY, NOISY_ENERGY, STEP_SIZE, TEMPERATURE, OUTSIDE, ALIVE, MULTIPLIER, LAMBDA, WEIGHT, PLACE, BIN,
    LOG_PSI, LOG_WEIGHT, POTENTIAL, EXTENDED, LENGTH, SQRT_TEMPERATURE, PROPOSED, ENGINE_ROWS,
) = range(19)  # fmt: skip


# θ at the two ends of a bin (then log θ at the upper), the share of a step that teaches it, what that adds to its place
# in the table, and of each chain the scale that the step leaves.
LOG_THETA, THETA_BELOW, SHARE, ENTRY, NEXT_SCALE, MASSES = range(6)


NO_TEMPERING, EXCHANGE, CONTOUR, CONTINUOUS, OTHER = range(5)


# Rows in which a target that draws minibatches finds what to draw them by (``Target.stochastic``): whether to (0: use
# all data; 1: draw; 2: draw the batch of this step again, elsewhere), and the counters of the random numbers.
MODE, STEP, CHAIN, REPLICA, SEED_HIGH, SEED_LOW, COUNTER_ROWS = range(7)
