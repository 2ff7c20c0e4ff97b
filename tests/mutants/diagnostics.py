"""Faults in the diagnostics."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "advice: chains that stand still pass",
        "toolkit/diagnostics/standstill.py",
        "worst.steps > BEYOND * chance * per_draw",
        "worst.steps < 0",
        "tests/toolkit/diagnostics/test_standstill.py",
    ),
    Mutant(
        "bins of energy by the table",
        "toolkit/diagnostics/energies.py",
        'getattr(truth, "energy_tails", None)',
        "None",
        "tests/targets/truth/test_energy_levels.py -k bins",
    ),
    Mutant(
        "cycles: the cut normal taken for a whole one",
        "toolkit/diagnostics/cycles.py",
        "+ log_share",
        "",
        "tests/toolkit/diagnostics/test_cycles.py",
    ),
    Mutant(
        "stepping stones: sign",
        "toolkit/diagnostics/exchange.py",
        "logsumexp(-drop * energy",
        "logsumexp(drop * energy",
        "tests/toolkit/test_ladders.py",
    ),
    Mutant(
        "diagnostics: ESS: sequence not made to decrease",
        "toolkit/diagnostics/convergence.py",
        "decreasing = np.minimum.accumulate(pairs[:end])",
        "decreasing = pairs[:end]",
        "tests/toolkit/diagnostics/test_convergence.py",
    ),
    Mutant(
        "diagnostics: weighted ESS: autocorrelation of the values, not of their weighted parts",
        "toolkit/diagnostics/convergence.py",
        "correlation_time(parts, within, between)",
        "correlation_time(values, *chain_variances(values))",
        "tests/toolkit/diagnostics/test_convergence.py",
    ),
    Mutant(
        "diagnostics: R-hat: no folding",
        "toolkit/diagnostics/convergence.py",
        "for v in (values, folded)",
        "for v in (values, values)",
        "tests/toolkit/diagnostics/test_convergence.py",
    ),
    Mutant(
        "diagnostics: MMD: a point's pair with itself counts",
        "toolkit/diagnostics/distances.py",
        "within = (within - [v_squares, w_squares])",
        "within = within",
        "tests/toolkit/diagnostics/test_distances.py",
    ),
    Mutant(
        "diagnostics: KSD: trace of the kernel's second derivatives without its second half",
        "toolkit/diagnostics/stein_discrepancy.py",
        "along - dim - 2.0 * (beta - 1.0) * square * inverse",
        "along - dim",
        "tests/toolkit/diagnostics/test_distances.py",
    ),
    Mutant(
        "diagnostics: modes: covered from the threshold on",
        "toolkit/diagnostics/modes.py",
        "covered = counts > threshold",
        "covered = counts >= threshold",
        "tests/toolkit/diagnostics/test_modes.py",
    ),
    Mutant(
        "diagnostics: theta: the power forgotten",
        "toolkit/diagnostics/energies.py",
        'power = tempering.zeta if tempering.field == "theta" else 1.0',
        "power = 1.0",
        "tests/toolkit/diagnostics/test_energies.py",
    ),
    Mutant(
        "round trips: expected of steps without attempts",
        "toolkit/diagnostics/exchange.py",
        "attempted[:2].sum() / run.n_chains",
        "run.sampling_steps / exchange.swap_every",
        "tests/toolkit/diagnostics/test_exchange.py",
    ),
]
