"""The rows of the arrays that a block of chains shares, by name, and the kinds of tempering."""

# Rows (lane,) of ``State.rows``, and what they hold between the phases of a step:
# ENERGY          energy of the target at the position, penalty included
# NOISY_ENERGY    the energy that tempering uses: ENERGY plus the energy noise
# STEP_SIZE, TEMPERATURE   of this step, by the schedule
# OUTSIDE         1 where the last look-up found the lane outside the domain
# ALIVE           scratch of divergence checks: neither 0 nor nan only if diverged; in swaps, 1 if not diverged
# MULTIPLIER      contour's multiplier of the gradient
# LAMBDA          continuous tempering's multiplier of the gradient, its coupling λ; 1 without it
# WEIGHT          importance weight of the last draw
# PLACE, BIN, LOG_PSI, LOG_WEIGHT   contour: position of the energy in the partition, its bin, log Ψ, log weight
# POTENTIAL       tempered energy at the end of a trajectory
# EXTENDED        tempered plus kinetic energy at its start
# LENGTH, SQRT_TEMPERATURE   leapfrog's step length; square root of the temperature
# PROPOSED        MULTIPLIER along a trajectory
(
    ENERGY, NOISY_ENERGY, STEP_SIZE, TEMPERATURE, OUTSIDE, ALIVE, MULTIPLIER, LAMBDA, WEIGHT, PLACE, BIN,
    LOG_PSI, LOG_WEIGHT, POTENTIAL, EXTENDED, LENGTH, SQRT_TEMPERATURE, PROPOSED, ENGINE_ROWS,
) = range(19)  # fmt: skip

# Parts that never occur in the same run use the same rows as scratch, under names of their own.
SWAPPED, ENERGY_DIFFERENCE, FIRST_RUNG = WEIGHT, POTENTIAL, PLACE  # replica exchange; ``exchange.RUNG_ROWS`` rows
KERNEL, BANDWIDTH = WEIGHT, POTENTIAL  # Stein's particles
FIRST_NORMAL = PLACE  # continuous tempering: two rows
# The Metropolis test; the next step reads these rows at its start (``phases.use_trajectory_end``).
ACCEPTED, UNIFORM = WEIGHT, PROPOSED

# Rows of ``State.masses`` with contour: θ of the bin, later its logarithm; θ of the bin below; the step ω c of a lane;
# the increment of the bin's entry in the table; the chain's scale after the step.
LOG_THETA, THETA_BELOW, SHARE, ENTRY, NEXT_SCALE, MASSES = range(6)

# Kinds of tempering.
NO_TEMPERING, EXCHANGE, CONTOUR, CONTINUOUS, OTHER = range(5)


# Scratch rows of a target that draws minibatches (``Target.stochastic``): the mode (0: use all data; 1: draw a
# minibatch; 2: draw this step's minibatch again, for another position), and the counters of the random numbers.
MODE, STEP, CHAIN, REPLICA, SEED_HIGH, SEED_LOW, COUNTER_ROWS = range(7)
