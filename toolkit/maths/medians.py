"""The median of many squared distances: counted in passes of SIMD from where it may be, or else by partition."""

import math

import numpy as np

from .._compiler.decorators import kernel
from .elementary import from_bits, larger, select, smaller, to_bits

MOST_PASSES = 24  # a guess that is far off, or many values alike, are left to the partition
INFINITY = np.int64(0x7FF0000000000000)  # its bits


@kernel
def median(values, guess):
    """Median of at least one value, all ≥ 0 or nan; may reorder them. guess: any number; only the time depends on it.

    One that is nan counts as larger than all others, or makes the median nan.
    """
    n, rank = values.size, values.size // 2
    low, high, below, until = 0.0, math.inf, 0, n  # ``below`` values are < low, at most ``rank``; ``until`` are < high
    pivot = guess if 0.0 < guess < math.inf else middle_of(values[0], values[rank], values[n - 1])
    passes = 0
    while below < rank and low < pivot < high and passes < MOST_PASSES:
        passes += 1
        count = count_below(values, pivot, False)
        if count <= rank:
            low, below = pivot, count
        else:
            high, until = pivot, count
        if high == math.inf:
            pivot = low * (1.0 + 2.0 * (rank + 1 - below) / n)
        elif low == 0.0:
            pivot = high * larger(0.5, 1.0 - 2.0 * (until - rank) / n)
        else:
            pivot = low + (high - low) * ((rank - below + 0.5) / (until - below))
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
    """How many values are below ``bound``, or at it."""
    count = 0
    for i in range(values.size):
        count += int((values[i] < bound) | (equal_too & (values[i] == bound)))
    return count


@kernel
def neighbours(values, bound):
    """The largest value below ``bound``, or 0; the smallest of the others, or inf; and how many are no nan.

    By their bits, which have the same order: LLVM vectorises the extremes of integers only.
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
    upper = smallest_but(values, middle)
    if values.size % 2 == 1:
        return upper
    lower = 0.0
    for value in values[:middle]:
        lower = select(value > lower, value, lower)
    return 0.5 * lower + 0.5 * upper


@kernel
def smallest_but(values, rank):
    """The value that ``rank`` others come before in order; reorders ``values`` so that just those lie before it."""
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
        bound = partition(values, first, last, pivot, True)  # none is smaller: set those that equal it aside
        if rank < bound or bound == first:  # the latter where it is nan
            return pivot
        first = bound


@kernel
def partition(values, first, last, pivot, equal_too):
    """Bring the values below ``pivot`` to the front of ``first`` … ``last − 1``, without a branch; where they end."""
    end = np.uint64(first)
    for i in range(np.uint64(first), np.uint64(last)):
        value = values[i]
        values[i] = values[end]
        values[end] = value
        end += np.uint64(value < pivot or (equal_too and value == pivot))
    return np.int64(end)
