"""The median of many squared distances: by vectorised counting from a guess, or else by partition."""

import math

import numpy as np

from .._compiler.decorators import kernel
from .elementary import from_bits, larger, select, smaller, to_bits

MOST_PASSES = 24  # then partition, as for a bad guess or many equal values
INFINITY = np.int64(0x7FF0000000000000)  # its bits


@kernel
def median(values, guess):
    """Median of at least one value, all ≥ 0 or nan; may reorder them. guess: any number; only the time depends on it.

    A nan counts as larger than all others, or makes the median nan.
    """
    n, rank = values.size, values.size // 2
    # ``below`` values are < low, at most ``rank`` of them; ``below_high`` are < high.
    low, high, below, below_high = 0.0, math.inf, 0, n
    pivot = guess if 0.0 < guess < math.inf else middle_of(values[0], values[rank], values[n - 1])
    passes = 0
    while below < rank and low < pivot < high and passes < MOST_PASSES:
        passes += 1
        count = count_below(values, pivot, False)
        if count <= rank:
            low, below = pivot, count
        else:
            high, below_high = pivot, count
        if high == math.inf:
            pivot = low * (1.0 + 2.0 * (rank + 1 - below) / n)
        elif low == 0.0:
            pivot = high * larger(0.5, 1.0 - 2.0 * (below_high - rank) / n)
        else:
            pivot = low + (high - low) * ((rank - below + 0.5) / (below_high - below))
    lower, upper, numbers = neighbours(values, low)
    if numbers < n or (below < rank and count_below(values, upper, True) <= rank):
        return median_by_partition(values)
    if n % 2 == 1:
        return upper
    return 0.5 * (upper if below < rank else lower) + 0.5 * upper


@kernel
def middle_of(a, b, c):
    """The middle one of three numbers."""
    return larger(smaller(a, b), smaller(larger(a, b), c))


@kernel
def count_below(values, bound, equal_too):
    """How many values are below ``bound``, or with ``equal_too`` also equal to it."""
    count = 0
    for i in range(values.size):
        count += int((values[i] < bound) | (equal_too & (values[i] == bound)))
    return count


@kernel
def neighbours(values, bound):
    """The largest value below ``bound``, or 0; the smallest of the others, or inf; and how many are not nan.

    It compares bits, which have the same order: LLVM vectorises only integer minima and maxima.
    """
    before, after, numbers = np.int64(0), INFINITY, 0
    for i in range(values.size):
        value = values[i]
        bits = np.int64(to_bits(value))
        before = max(before, select(value < bound, bits, np.int64(0)))
        after = min(after, select(value >= bound, bits, INFINITY))
        numbers += int(value == value)
    return from_bits(np.uint64(before)), from_bits(np.uint64(after)), numbers


@kernel
def median_by_partition(values):
    """``median`` of any values, by quickselect, which reorders them."""
    middle = values.size // 2
    upper = select_rank(values, middle)
    if values.size % 2 == 1:
        return upper
    lower = 0.0
    for value in values[:middle]:
        lower = select(value > lower, value, lower)
    return 0.5 * lower + 0.5 * upper


@kernel
def select_rank(values, rank):
    """The value of rank ``rank`` (from 0), by quickselect; reorders ``values`` so that the smaller ones come first."""
    first, last = np.int64(0), values.size
    while True:
        pivot = middle_of(values[first], values[(first + last) // 2], values[last - 1])
        bound = partition(values, first, last, pivot, False)
        if rank < bound:
            last = bound
            continue
        if bound > first:
            first = bound
            continue
        bound = partition(values, first, last, pivot, True)  # none is smaller: move those equal to it to the front
        if rank < bound or bound == first:  # the latter where it is nan
            return pivot
        first = bound


@kernel
def partition(values, first, last, pivot, equal_too):
    """Move the values below ``pivot`` to the front of ``first`` … ``last − 1``, branch-free; returns where they end."""
    end = np.uint64(first)
    for i in range(np.uint64(first), np.uint64(last)):
        value = values[i]
        values[i] = values[end]
        values[end] = value
        end += np.uint64(value < pivot or (equal_too and value == pivot))
    return np.int64(end)
