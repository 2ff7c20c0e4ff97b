"""Faults in the maths: elementary functions, random numbers, medians."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "noise shared between coordinates",
        "toolkit/maths/philox.py",
        "purpose, uint64(pair))\n        to_normals(first, second)",
        "purpose, uint64(0))\n        to_normals(first, second)",
        "tests/toolkit/dynamics/test_overdamped.py tests/toolkit/maths/test_philox.py",
    ),
    Mutant(
        "noise shared within a pair",
        "toolkit/maths/philox.py",
        "radius * cosine, radius * sine",
        "radius * cosine, radius * cosine",
        "tests/toolkit/dynamics/test_overdamped.py tests/toolkit/maths/test_philox.py",
    ),
    Mutant(
        "replicas share their noise",
        "toolkit/maths/philox.py",
        "(replica | (index << HALF_WORD)) & LOW",
        "(index << HALF_WORD) & LOW",
        "tests/toolkit/maths/test_philox.py tests/toolkit/engine/test_loop.py",
    ),
    Mutant(
        "median: of values alike, the one below is taken",
        "toolkit/maths/medians.py",
        "(upper if below < rank else lower)",
        "lower",
        "tests/toolkit/maths/test_medians.py",
    ),
    Mutant(
        "shares of a sum off by two",
        "toolkit/maths/elementary.py",
        "scale = from_bits((exponent + np.uint64(1023)) << np.uint64(52))",
        "scale = from_bits((exponent + np.uint64(1022)) << np.uint64(52))",
        "tests/toolkit/maths/test_elementary.py -k shares",
    ),
    Mutant(
        "log1p: lost bits forgotten",
        "toolkit/maths/special.py",
        "select(abs(lost) < 1.0, lost, 0.0)",
        "0.0 * lost",
        "tests/toolkit/maths/test_elementary.py -k stated_error",
    ),
    Mutant(
        "tanh by the wrong ratio",
        "toolkit/maths/special.py",
        "abs(e) / (2.0 + e)",
        "abs(e) / (2.0 - e)",
        "tests/toolkit/maths/test_elementary.py -k stated_error",
    ),
    Mutant(
        "seeds: a hash of the low word",
        "toolkit/maths/seeds.py",
        "SeedSequence(seed, spawn_key=key)",
        "SeedSequence(seed % 2**32, spawn_key=key)",
        "tests/laws/test_seeds.py -k keep_their_values",
    ),
    Mutant(
        "powers: of complex numbers by Numba's exp and log",
        "toolkit/maths/powers.py",
        'POWER_OPERATIONS = {operation_number("a ** b"), operation_number("a **= b")}',
        "POWER_OPERATIONS: set[int] = set()",
        "tests/toolkit/maths/test_powers.py -k closed_form",
    ),
    Mutant(
        "powers: an exponent that is a float is no integer",
        "toolkit/maths/powers.py",
        "if abs(p) <= LARGEST_INTEGER and int(p) == p:",
        "if abs(p) < 0.0 and int(p) == p:",
        "tests/toolkit/maths/test_powers.py -k without_a_fraction",
    ),
    Mutant(
        "powers: roots of negative numbers have slopes",
        "toolkit/maths/powers.py",
        "if x > 0.0:",
        "if x != 0.0:",
        "tests/toolkit/maths/test_powers.py -k other_powers",
    ),
]
