"""Faults in `verify`."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "step size check: both runs at h",
        "toolkit/verification/step_size.py",
        "((sampler, 1), (halved(sampler), 2))",
        "((sampler, 1), (sampler, 2))",
        "tests/toolkit/verification/test_step_size.py -k sgld",
    ),
    Mutant(
        "verify: a report passes without a law judged",
        "toolkit/verification/report.py",
        "return not self.failed and self.judged",
        "return not self.failed",
        "tests/toolkit/verification/test_report.py -k only_where",
    ),
    Mutant(
        "verify: exact starts stand in for changes of mode",
        "toolkit/verification/laws.py",
        "bool((between > BETWEEN",
        "bool((between < -BETWEEN",
        "tests/toolkit/verification/test_report.py -k never_change",
    ),
    Mutant(
        "seeds: verify's rounds are those of its neighbours",
        "toolkit/verification/report.py",
        "derived_seed(seed, ROUND, i) for",
        "(seed + i) % 2**64 for",
        "tests/laws/test_seeds.py -k share_a_run",
    ),
    Mutant(
        "seeds: half the step size of one seed is the step size of another",
        "toolkit/verification/law_runs.py",
        "derived_seed(seed, HALF_STEP)",
        "(seed + 2**63) % 2**64",
        "tests/laws/test_seeds.py -k share_a_run",
    ),
    Mutant(
        "seeds: the step size is checked with the next run's",
        "toolkit/verification/step_size.py",
        "derived_seed(run.seed, STEP_SIZE) if",
        "(run.seed + 1) % 2**64 if",
        "tests/laws/test_seeds.py -k share_a_run",
    ),
    Mutant(
        "verify extrapolates in the wrong direction",
        "toolkit/verification/laws.py",
        "else 2.0 * at_half.values[i] - values",
        "else 2.0 * values - at_half.values[i]",
        "tests/toolkit/verification/test_laws.py -k taken_back",
    ),
    Mutant(
        "verify halves the step size and not the pace of the schedule",
        "toolkit/verification/law_runs.py",
        "schedule.factors(steps // 2, total_steps // 2)",
        "schedule.factors(steps, total_steps)",
        "tests/toolkit/verification/test_laws.py -k half_its_pace",
    ),
    Mutant(
        "verify excuses whatever it finds",
        "toolkit/verification/laws.py",
        "> DRIFTS * drift.std",
        "> -DRIFTS * drift.std",
        "tests/toolkit/verification/test_laws.py -k wrong_law",
    ),
    Mutant(
        "verify takes weights of contour as if of one factor",
        "toolkit/verification/law_runs.py",
        "2.0 * whole - 0.5 * (first + second)",
        "whole",
        "tests/toolkit/verification/test_laws.py -k ratio",
    ),
    Mutant(
        "verify compares values and not bits",
        "toolkit/verification/bits.py",
        "differs = np.ascontiguousarray(a).view(kind) != np.ascontiguousarray(b).view(kind)",
        "differs = a != b",
        "tests/toolkit/verification/test_bits.py -k first_difference",
    ),
    Mutant(
        "verify's first chains have step sizes of others",
        "toolkit/verification/bits.py",
        "name: values[:n].tolist()",
        "name: values[-n:].tolist()",
        "tests/toolkit/verification/test_bits.py -k their_own",
    ),
    Mutant(
        "verify runs the other process here",
        "toolkit/verification/subprocess_run.py",
        "    results: list[Arrays] = [{} for _ in orders]\n",
        "    return [arrays_of(sample(problem, sampler, **given)) for problem, sampler, given in orders]\n"
        "    results: list[Arrays] = [{} for _ in orders]\n",
        "tests/toolkit/verification/test_bits.py -k knows_its_process",
    ),
    Mutant(
        "verify: skewed means taken for normal ones",
        "toolkit/verification/laws.py",
        "t + skewness * (t**2 / 3.0 + 1.0 / 6.0)",
        "t",
        "tests/toolkit/verification/test_laws.py -k skewed",
    ),
]
