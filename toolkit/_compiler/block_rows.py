"""The rows of the arrays that a block of chains shares, by name, and the kinds of tempering."""

# Rows (lane,) of ``State.rows``, with these meanings between the phases of a step:
# ENERGY          of the target at the position, with the penalty
# NOISY_ENERGY    the same as tempering sees it
# STEP_SIZE, TEMPERATURE   as the schedule has them in this step
# OUTSIDE         1 where the lane is outside the domain, as far as the last look-up says
# ALIVE           scratch of checks for divergence: not 0 or nan where a lane has diverged; of swaps, 1 where it has not
# MULTIPLIER      of the gradient, by contour
# LAMBDA          of the gradient, by continuous tempering: its coupling λ; 1 elsewhere
# WEIGHT          importance weight of the last draw
# PLACE, BIN, LOG_PSI, LOG_WEIGHT   where contour finds the energy in its partition, log Ψ there, log of the weight
# POTENTIAL       tempered energy where a trajectory ends; EXTENDED: with the kinetic energy, where it began
# LENGTH, SQRT_TEMPERATURE   of a leapfrog
# PROPOSED        MULTIPLIER along a trajectory
(
    ENERGY, NOISY_ENERGY, STEP_SIZE, TEMPERATURE, OUTSIDE, ALIVE, MULTIPLIER, LAMBDA, WEIGHT, PLACE, BIN,
    LOG_PSI, LOG_WEIGHT, POTENTIAL, EXTENDED, LENGTH, SQRT_TEMPERATURE, PROPOSED, ENGINE_ROWS,
) = range(19)  # fmt: skip

# Parts that do not meet in a run share rows as scratch, under names of their own.
SWAPPED, ENERGY_DIFFERENCE, FIRST_RUNG = WEIGHT, POTENTIAL, PLACE  # replica exchange; ``exchange.RUNG_ROWS`` rows
KERNEL, BANDWIDTH = WEIGHT, POTENTIAL  # Stein's particles
FIRST_NORMAL = PLACE  # continuous tempering: two rows
# The Metropolis test; its rows are read again where the next step begins (``metropolis_step.use_trajectory_end``).
ACCEPTED, UNIFORM = WEIGHT, PROPOSED

# Rows of ``State.masses`` under contour: θ of the bin, then its logarithm; θ of the bin below; the step ω c of a lane;
# what that adds to the bin's entry in the table; the scale that the step leaves to each chain.
LOG_THETA, THETA_BELOW, SHARE, ENTRY, NEXT_SCALE, MASSES = range(6)


NO_TEMPERING, EXCHANGE, CONTOUR, CONTINUOUS, OTHER = range(5)


# Rows in which a target that draws minibatches finds what to draw them by (``Target.stochastic``): whether to (0: use
# all data; 1: draw; 2: draw the batch of this step again, elsewhere), and the counters of the random numbers.
MODE, STEP, CHAIN, REPLICA, SEED_HIGH, SEED_LOW, COUNTER_ROWS = range(7)
