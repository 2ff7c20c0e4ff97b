"""Faults in the boundaries."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "boundary: clamped in place of reflected",
        "toolkit/boundaries/rules.py",
        "position[d, lane] = fma(2.0, mirror_point[d, lane], -position[d, lane])",
        "position[d, lane] = mirror_point[d, lane]",
        "tests/toolkit/boundaries/test_rules.py",
    ),
    Mutant(
        "boundary: momentum not reflected",
        "toolkit/boundaries/rules.py",
        "fma(-2.0 * along / squared, normal",
        "fma(-1.0 * along / squared, normal",
        "tests/toolkit/boundaries/test_rules.py tests/laws/test_step_by_step.py",
    ),
    Mutant(
        "boundary: momentum goes on after a rejection",
        "toolkit/boundaries/rules.py",
        "outside[lane] != 0.0, -momentum[d, lane], momentum[d, lane]",
        "outside[lane] != 0.0, momentum[d, lane], momentum[d, lane]",
        "tests/toolkit/boundaries/test_rules.py tests/laws/test_step_by_step.py tests/laws/test_product.py",
    ),
    Mutant(
        "penalty pushes outwards",
        "toolkit/boundaries/rules.py",
        "pull = coefficient *",
        "pull = -coefficient *",
        "tests/toolkit/boundaries/test_rules.py tests/toolkit/engine/test_loop.py",
    ),
    Mutant(
        "penalty of the distance from the origin",
        "toolkit/boundaries/rules.py",
        "select(from_origin, 0.0, mirror_point[d, lane])",
        "0.0",
        "tests/toolkit/boundaries/test_penalties.py -k closed_form",
    ),
    Mutant(
        "penalty: gradient alone",
        "toolkit/boundaries/rules.py",
        "energy[lane] = fma(0.5 * pull, offset, energy[lane])",
        "energy[lane] = fma(0.0 * pull, offset, energy[lane])",
        "tests/toolkit/boundaries/test_penalties.py -k closed_form",
    ),
    Mutant(
        "penalty: files of the first one are read as the law's",
        "toolkit/boundaries/rules.py",
        'STORED_KINDS = {"penalise": "penalise_by_distance", "penalise_as_printed": "penalise"}',
        'STORED_KINDS = {"penalise": "penalise"}',
        "tests/toolkit/boundaries/test_penalties.py -k files",
    ),
    Mutant(
        "nearest of walls: each wall once",
        "toolkit/boundaries/convex.py",
        "SWEEPS = 10_000",
        "SWEEPS = 1",
        "tests/toolkit/boundaries/test_penalties.py -k nearest_point_of_walls",
    ),
    Mutant(
        "nearest of walls: a wall never lets go",
        "toolkit/boundaries/convex.py",
        "multiplier = larger(multipliers[n] + weight * excess, 0.0)",
        "multiplier = larger(multipliers[n] + weight * excess, multipliers[n])",
        "tests/toolkit/boundaries/test_penalties.py -k nearest_point_of_walls",
    ),
    Mutant(
        "walls: the last, not the worst",
        "toolkit/boundaries/convex.py",
        "select(excess > worst, number, face)",
        "select(excess > 0.0, number, face)",
        "tests/targets/domains/test_domains.py",
    ),
    Mutant(
        "walls: a linear one clamps",
        "toolkit/boundaries/convex.py",
        "fma(-excess, floats[2 * sides + rows + n], position[axis, lane])",
        "fma(-0.5 * excess, floats[2 * sides + rows + n], position[axis, lane])",
        "tests/targets/domains/test_domains.py -k sorts",
    ),
    Mutant(
        "walls: ball's foot at its excess",
        "toolkit/boundaries/convex.py",
        "share = floats[start + dim] / (floats[start + dim] + excess)",
        "share = excess / (floats[start + dim] + excess)",
        "tests/targets/domains/test_domains.py -k clamped",
    ),
]
