"""Least squares of minibatches, drawn anew by every replica at every step, as kernels.

``independent``: data drawn with replacement, each looked at. ``windows``: a run of data of a fixed random permutation,
begun anywhere, whose normal equations are the difference of two running sums: O(q²) whatever the batch.
"""

from targets.minibatch import draw_pair
from toolkit.compiling import kernel
from toolkit.evaluation import COUNTER_ROWS, MODE
from toolkit.maths import fma

from .quadratic import N_NUMBERS, use_quadratic

# After the numbers of ``use_quadratic``: data, data drawn, terms, states; then their tables.
N_DATA, N_DRAWN, N_TERMS, N_STATES, N_COUNTS = range(5)
PICKS = COUNTER_ROWS  # the first of the rows of work that are no counters
FIRST_SUMS = PICKS + 2


@kernel
def use_windows(theta, energy, slope, numbers, work):
    """A window's least squares about the mean of all data: running sums of rows, A_kᵀ A_l (l ≤ k), A_kᵀ r, r²."""
    if work[MODE, 0] == 0.0:
        use_quadratic(theta, energy, slope, numbers, work)
        return
    q = theta.shape[0]
    counts = N_NUMBERS + q + q * q
    n_data, n_drawn = int(numbers[counts + N_DATA]), int(numbers[counts + N_DRAWN])
    width = (q * (q + 1)) // 2 + q + 1
    sums = numbers[counts + N_COUNTS :]
    picks = work[PICKS : PICKS + 2]
    draw_pair(picks, work, 0, n_data)
    scale = float(n_data) / float(n_drawn)
    for lane in range(energy.size):
        begin = int(picks[0, lane])
        end = begin + n_drawn
        wraps = end > n_data
        low, high, last = width * begin, width * (end - n_data if wraps else end), width * n_data
        total = 0.0
        for k in range(q):
            slope[k, lane] = 0.0
        entry = 0
        for k in range(q):
            gap = theta[k, lane] - numbers[N_NUMBERS + k]
            for j in range(k + 1):
                value = sums[high + entry] - sums[low + entry]
                if wraps:
                    value += sums[last + entry]
                other = theta[j, lane] - numbers[N_NUMBERS + j]
                slope[k, lane] = fma(value, other, slope[k, lane])
                if j < k:
                    slope[j, lane] = fma(value, gap, slope[j, lane])
                entry += 1
        for k in range(q):
            gap = theta[k, lane] - numbers[N_NUMBERS + k]
            value = sums[high + entry] - sums[low + entry]
            if wraps:
                value += sums[last + entry]
            total = fma(gap, fma(0.5, slope[k, lane], -value), total)
            slope[k, lane] = scale * (slope[k, lane] - value)
            entry += 1
        value = sums[high + entry] - sums[low + entry]
        if wraps:
            value += sums[last + entry]
        energy[lane] = scale * fma(0.5, value, total)


@kernel
def use_independent(theta, energy, slope, numbers, work):
    """Data drawn with replacement: residuals of all states at each, in every lane."""
    if work[MODE, 0] == 0.0:
        use_quadratic(theta, energy, slope, numbers, work)
        return
    q, lanes = theta.shape
    counts = N_NUMBERS + q + q * q
    n_data, n_drawn = int(numbers[counts + N_DATA]), int(numbers[counts + N_DRAWN])
    terms, states = int(numbers[counts + N_TERMS]), int(numbers[counts + N_STATES])
    n = terms * states
    directions = counts + N_COUNTS + states + n  # after the states' weights and the constant coefficients
    data = numbers[directions + q * n :]
    coefficients = work[FIRST_SUMS : FIRST_SUMS + n]
    pulls = work[FIRST_SUMS + n : FIRST_SUMS + 2 * n]
    set_coefficients(theta, coefficients, pulls, numbers[counts + N_COUNTS + states : directions + q * n])
    for lane in range(lanes):
        energy[lane] = 0.0
    picks = work[PICKS : PICKS + 2]
    weights = numbers[counts + N_COUNTS : counts + N_COUNTS + states]
    residual = work[FIRST_SUMS + 2 * n]
    for pair in range((n_drawn + 1) // 2):
        draw_pair(picks, work, pair, n_data)
        for i in range(min(2, n_drawn - 2 * pair)):
            add_datum(picks[i], residual, coefficients, pulls, energy, weights, data, terms)
    scale = float(n_data) / float(n_drawn)
    for lane in range(lanes):
        energy[lane] *= scale
    for k in range(q):
        out = slope[k]
        for lane in range(lanes):
            out[lane] = 0.0
        for c in range(n):
            factor, pull = scale * numbers[directions + k * n + c], pulls[c]
            if factor != 0.0:
                for lane in range(lanes):
                    out[lane] = fma(factor, pull[lane], out[lane])


@kernel
def set_coefficients(theta, coefficients, pulls, table):
    """Ξ (states × terms, lane) of θ, and zeros for its gradient."""
    n = coefficients.shape[0]
    for c in range(n):
        constant, out, pull = table[c], coefficients[c], pulls[c]
        for lane in range(out.size):
            out[lane] = constant
            pull[lane] = 0.0
        for k in range(theta.shape[0]):
            factor, x = table[n * (k + 1) + c], theta[k]
            if factor != 0.0:
                for lane in range(out.size):
                    out[lane] = fma(factor, x[lane], out[lane])


@kernel
def add_datum(pick, residual, coefficients, pulls, energy, weights, data, terms):
    """Add one datum's part of the energy, and of dU/dΞ, in every lane: Θ_i and velocities stand in one row."""
    states = weights.size
    width = terms + states
    for e in range(states):
        for lane in range(pick.size):
            residual[lane] = -data[int(pick[lane]) * width + terms + e]
        for t in range(terms):
            coefficient = coefficients[e * terms + t]
            for lane in range(pick.size):
                residual[lane] = fma(data[int(pick[lane]) * width + t], coefficient[lane], residual[lane])
        weight = weights[e]
        for lane in range(pick.size):
            weighted = weight * residual[lane]
            energy[lane] = fma(0.5 * weighted, residual[lane], energy[lane])
            residual[lane] = weighted
        for t in range(terms):
            pull = pulls[e * terms + t]
            for lane in range(pick.size):
                pull[lane] = fma(data[int(pick[lane]) * width + t], residual[lane], pull[lane])
