"""Least squares of minibatches, drawn anew by every replica at every step, as one kernel.

Each datum's part of the normal equations, about the least squares of all data, is a row of numbers; a batch's is the
sum of its rows. ``independent``: of rows drawn with replacement. ``windows``: of neighbours in a fixed random order,
begun anywhere, which is the difference of two running sums, whatever their number.
"""

from targets.minibatch import draw_pair
from targets.quadratic import N_NUMBERS, use_quadratic
from toolkit.compiling import kernel
from toolkit.evaluation import COUNTER_ROWS, MODE
from toolkit.maths import fma

from .lane_rows import own_number, set_own_number

# After the numbers of ``use_quadratic``: data, data drawn, whether these are windows; then the rows, each A_kᵀ A_l
# (l ≤ k), A_kᵀ r, rᵀ r of a datum's equations A β = r + A mean; for windows their sums up to each, from 0 on.
N_DATA, N_DRAWN, IS_WINDOW, N_COUNTS = range(4)
FIRST_SUMS = COUNTER_ROWS + 2  # rows of work that are counters, and two data drawn


@kernel
def use_batch(theta, energy, slope, numbers, work):
    """Energy and gradient in every lane from a batch of its own, scaled to all data; or from all, where so asked."""
    if work[MODE, 0] == 0.0:
        use_quadratic(theta, energy, slope, numbers, work)
        return
    q, lanes = theta.shape
    first = N_NUMBERS + q + q * q
    counts, rows = numbers[first : first + N_COUNTS], numbers[first + N_COUNTS :]
    width = row_width(q)
    picks = work[COUNTER_ROWS:FIRST_SUMS]
    n_data, n_drawn = int(counts[N_DATA]), int(counts[N_DRAWN])
    if counts[IS_WINDOW] != 0.0:
        draw_pair(picks, work, 0, n_data)
        for lane in range(lanes):
            take_window(work, width, lane, rows, int(picks[0, lane]), n_drawn, n_data)
    else:
        for row in range(FIRST_SUMS, FIRST_SUMS + width):
            for lane in range(lanes):
                work[row, lane] = 0.0
        for pair in range((n_drawn + 1) // 2):
            draw_pair(picks, work, pair, n_data)
            for i in range(min(2, n_drawn - 2 * pair)):
                for lane in range(lanes):
                    begin = width * int(picks[i, lane])
                    add_row(work, width, lane, rows[begin : begin + width])
    scale = float(n_data) / float(n_drawn)
    for lane in range(lanes):
        finish(theta, energy, slope, numbers, work, width, scale, lane)


@kernel
def row_width(q):
    """Numbers of a datum's row."""
    return (q * (q + 1)) // 2 + q + 1


@kernel
def add_row(work, width, lane, row):
    """Add a datum's row to a lane's sums."""
    for i in range(width):
        set_own_number(work, FIRST_SUMS, width, lane, i, own_number(work, FIRST_SUMS, width, lane, i) + row[i])


@kernel
def take_window(work, width, lane, sums, begin, n_drawn, n_data):
    """A lane's sums ← the sum of ``n_drawn`` rows from ``begin`` on, after the last of which comes the first."""
    end = begin + n_drawn
    low = sums[width * begin : width * (begin + 1)]
    if end <= n_data:
        high = sums[width * end : width * (end + 1)]
        for i in range(width):
            set_own_number(work, FIRST_SUMS, width, lane, i, high[i] - low[i])
    else:
        high, last = sums[width * (end - n_data) : width * (end - n_data + 1)], sums[width * n_data :]
        for i in range(width):
            set_own_number(work, FIRST_SUMS, width, lane, i, (last[i] - low[i]) + high[i])


@kernel
def finish(theta, energy, slope, numbers, work, width, scale, lane):
    """Energy and gradient of one lane from its batch's normal equations, about the mean in ``numbers``."""
    q = theta.shape[0]
    for k in range(q):
        slope[k, lane] = 0.0
    entry = 0
    for k in range(q):
        gap = theta[k, lane] - numbers[N_NUMBERS + k]
        for j in range(k + 1):
            total = own_number(work, FIRST_SUMS, width, lane, entry)
            slope[k, lane] = fma(total, theta[j, lane] - numbers[N_NUMBERS + j], slope[k, lane])
            if j < k:
                slope[j, lane] = fma(total, gap, slope[j, lane])
            entry += 1
    value = 0.5 * own_number(work, FIRST_SUMS, width, lane, entry + q)
    for k in range(q):
        gap = theta[k, lane] - numbers[N_NUMBERS + k]
        total = own_number(work, FIRST_SUMS, width, lane, entry)
        value = fma(gap, fma(0.5, slope[k, lane], -total), value)
        slope[k, lane] = scale * (slope[k, lane] - total)
        entry += 1
    energy[lane] = scale * value
