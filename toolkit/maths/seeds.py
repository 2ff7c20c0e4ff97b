"""Seeds computed from a seed, each for a purpose of its own."""

import numpy as np

from ..errors import check_count

# What a derived seed is for: the first number of its key. A number, once given, keeps its meaning.
EXACT_DRAWS, TRUTH, STARTS, PILOT, RESAMPLING, ROUND, HALF_STEP, REPEAT, GIBBS, STEP_SIZE = range(1, 11)


def derived_seed(seed: int, *key: int) -> int:
    """A seed from 0 to 2⁶⁴ − 1: a hash of ``seed``, from 0 to 2⁶⁴ − 1, and ``key``, a purpose and numbers ≥ 0.

    Seeds or keys that differ in any bit have the same derived seed with probability 2⁻⁶⁴, so streams of random numbers
    meet neither between seeds of users nor between purposes; of sums of seeds and numbers they do. Hash: of NumPy's
    SeedSequence, which no release of NumPy changes. Raises TypeError or ValueError where ``seed`` is none.
    """
    seed = check_count("seed", seed, at_least=0, below=2**64)
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)[0])
