"""Seeds derived from a seed, one for each purpose."""

import numpy as np

from ..errors import check_count

# Purposes: the first number of a derived seed's key. A number must never change its meaning.
EXACT_DRAWS, TRUTH, STARTS, PILOT, RESAMPLING, ROUND, HALF_STEP, REPEAT, GIBBS, STEP_SIZE, TUNING, EVIDENCE = range(
    1, 13
)


def derived_seed(seed: int, *key: int) -> int:
    """A seed from 0 to 2⁶⁴ − 1: a hash of ``seed``, from 0 to 2⁶⁴ − 1, and ``key``, a purpose and numbers ≥ 0.

    Different seeds or keys have the same derived seed with probability 2⁻⁶⁴, so streams of random numbers overlap
    neither between users' seeds nor between purposes, as sums of a seed and a number would. The hash is that of NumPy's
    SeedSequence, which is stable between releases. Raises TypeError or ValueError for an invalid ``seed``.
    """
    seed = check_count("seed", seed, at_least=0, below=2**64)
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)[0])
