"""The median of squared distances by counting: passes of SIMD, from where it was a step before."""

import math

from .fused_points import fused

LARGEST = 2**63 - 1


@fused
def count_below(values, bound):
    """How many of ``values`` are below ``bound``."""
    count = 0
    for i in range(values.size):
        count += int(values[i] < bound)
    return count


@fused
def median(values, bits, guess, out):
    """out ← the two middle ones of ``values`` ≥ 0; ``bits``: the same memory as integers, which have the same order."""
    n = values.size
    rank = n // 2
    low, high, below, until = 0.0, math.inf, 0, n
    pivot = guess
    while until - below > 1:
        count = count_below(values, pivot)
        if count <= rank:
            low, below = pivot, count
        else:
            high, until = pivot, count
        if high == math.inf:
            pivot = low * (1.0 + 2.0 * (rank + 1 - below) / n)
        elif low == 0.0 and below == 0:
            pivot = high * (1.0 - 2.0 * (until - rank) / n) if until - rank < n // 4 else 0.5 * high
        else:
            pivot = low + (high - low) * ((rank - below + 0.5) / (until - below))
            if pivot <= low or pivot >= high:
                break
    upper, lower = LARGEST, 0
    for i in range(n):
        upper = min(upper, bits[i] if values[i] >= low else LARGEST)
        lower = max(lower, bits[i] if values[i] < low else 0)
    out[0], out[1] = upper, upper if below < rank or n % 2 == 1 else lower
