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
        'is_met = (difference > 0.0) == (self.aim == "higher")',
        'is_met = (difference > 0.0) == (self.aim == "lower")',
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
        "density: weights ignored",
        "figures/plots/densities.py",
        "weights=shares",
        "weights=None",
        "tests/figures/plots/test_plots.py -k density",
    ),
    Mutant(
        "KL: the band is cut at 1e-12",
        "figures/plots/kl_curves.py",
        "return mean, mean / factor, mean * factor",
        "return mean, np.maximum(2.0 * mean - mean * factor, 1e-12), mean * factor",
        "tests/figures/plots/test_plots.py -k stays_on_the_axis",
    ),
]
