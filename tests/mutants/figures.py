"""Faults in `figures`."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "seeds: chains of exact draws of the next seed",
        "figures/papers/r2sgld/nine_samplers.py",
        "derived_seed(study.seed, REPEAT, i)",
        "study.seed + i",
        "tests/laws/test_seeds.py -k arithmetic",
    ),
    Mutant(
        "hostile: figures saved anywhere",
        "figures/scripts/output.py",
        "Path(name).name != name",
        "False",
        "tests/hostile/test_found_inputs.py",
    ),
    Mutant(
        "figures: data of other sources are read back",
        "figures/scripts/cached_data.py",
        "return found[1] if found and found[0] == key else None",
        "return found[1] if found else None",
        "tests/figures/scripts/test_runner.py tests/figures/scripts/test_cached_data.py",
    ),
    Mutant(
        "figures: a digest of the function alone",
        "figures/scripts/source_digest.py",
        "elif isinstance(inner, ast.Name) and inner.id in top_level(module):",
        "elif isinstance(inner, ast.Name) and inner.id in ():",
        "tests/figures/scripts/test_source_digest.py",
    ),
    Mutant(
        "figures: an interrupted run's draws are kept",
        "figures/scripts/study.py",
        "if run.interrupted:",
        "if False:",
        "tests/figures/scripts/test_runner.py",
    ),
    Mutant(
        "figures: lower is better where higher is",
        "figures/scripts/claims.py",
        'difference = -difference if self.aim == "lower" else difference',
        'difference = -difference if self.aim == "higher" else difference',
        "tests/figures/scripts/test_runner.py",
    ),
    Mutant(
        "figures: nearer the paper's number is better than nearer the truth",
        "figures/scripts/claims.py",
        'return "better" if abs(self.ours - self.aim) < abs(self.printed - self.aim) else "worse"',
        'return "worse"',
        "tests/figures/scripts/test_runner.py",
    ),
    Mutant(
        "figures: a claim in words that is not seen is as claimed",
        "figures/scripts/claims.py",
        'return "as claimed" if z > SHOWN_FROM else',
        'return "as claimed" if z > -SHOWN_FROM else',
        "tests/figures/scripts/test_runner.py",
    ),
    Mutant(
        "figures: a law missed on the better side is better",
        "figures/scripts/claims.py",
        "return self.origin == THEORY or",
        "return False and self.origin == THEORY or",
        "tests/figures/scripts/test_runner.py",
    ),
    Mutant(
        "figures: numbers that are not of the same quantity are compared",
        "figures/scripts/claims.py",
        "if not self.is_same:",
        "if False:",
        "tests/figures/scripts/test_runner.py",
    ),
    Mutant(
        "figures: no numbers in the report of quick versions",
        "figures/report/html.py",
        "comparison(contents.entries, named=True",
        "comparison(contents.judged, named=True",
        "tests/figures/report/test_report.py",
    ),
    Mutant(
        "figures: an error of pairs as if their seeds were not shared",
        "figures/scripts/statistics.py",
        "error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())",
        "error = np.hypot(*(squares.std(axis=1, ddof=1) / np.sqrt(n) / (2.0 * squares.mean(axis=1))))",
        "tests/figures/papers/test_r2sgld.py -k paired",
    ),
    Mutant(
        "digits: reflected methods without walls",
        "figures/papers/csgmcmc/digits.py",
        "boundary=boundaries.reflect())\n\n\ndef reflected_method",
        "boundary=boundaries.ignore())\n\n\ndef reflected_method",
        "tests/figures/papers/test_digits.py -k reflected",
    ),
    Mutant(
        "density: weights ignored",
        "figures/plots/densities.py",
        "weights=shares",
        "weights=None",
        "tests/figures/plots/test_plots.py -k density",
    ),
]
