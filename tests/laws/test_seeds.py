"""Seeds: all 64 bits count, and neither two seeds nor two purposes of one share random numbers."""

import ast
import importlib
import inspect
import pkgutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import figures
import sysid
import targets
import toolkit
from sysid import sparsity
from sysid.discovery import compare
from sysid.discovery.compare import seed_global_state
from targets import catalogue, constrained, domains, mixtures, posteriors, shapes
from toolkit import (
    DivergenceError,
    chains,
    check_gradient,
    check_step_size,
    ladders,
    sample,
    sample_in_rounds,
    samplers,
    stream,
    tempering,
    verify,
)
from toolkit._engine import partition_pilot
from toolkit._output.execution import run_sampler
from toolkit._output.storage import datatree
from toolkit.maths.seeds import derived_seed
from toolkit.problem.definition import as_problem
from toolkit.tuning.attempts import attempt_seeds, run_seed
from toolkit.tuning.study import study_seed
from toolkit.verification import report, step_size
from toolkit.verification.law_runs import at_half_pace
from toolkit.weighting import resample

PACKAGES = (toolkit, targets, sysid, figures)
SOURCES = [path for package in PACKAGES for path in sorted(Path(package.__path__[0]).rglob("*.py"))]
ARITHMETIC = ast.Add | ast.Sub | ast.Mult | ast.LShift | ast.BitXor
SHIFTS = (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03)  # such odd numbers serve where seeds are made by addition
SEEDS = [*dict.fromkeys((1 + shift) % 2**64 for shift in (0, *(1 << k for k in range(64)), *SHIFTS))]
NORMAL = mixtures.gaussian_mixture([[0.0] * 3], 1.0)
LAST = 2**64 - 1
SYSTEM, TIMES = sysid.systems.lotka_volterra(), np.arange(0.0, 6.0, 0.5)
SHORT = sample(NORMAL, samplers.sgld(0.1), n_steps=4, seed=0)
DATA = sysid.data.simulate(SYSTEM, TIMES, noise=0.1, seed=2)


PROPER = sysid.identify(DATA, SYSTEM, prior=sysid.priors.gaussian(0.0, 3.0)).scaled()
OF_PROPER = sample(PROPER, samplers.hmc(0.5), n_steps=100, n_chains=2, seed=0)


def rows(arrays):
    return [tuple(row) for array in arrays for row in np.asarray(array).tolist()]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_two_seeds_share_an_exact_draw(dim):
    """A fifth to two thirds of the target's draws fall inside, so that n take several rounds of proposals."""
    target = mixtures.gaussian_mixture([[0.0] * dim], 1.0)
    region = domains.box([-0.4], [0.4]) if dim == 1 else domains.ball([0.0] * dim, 1.0)
    truth = constrained(target, region).truth
    drawn = rows(truth.independent_draws(3_000, seed=seed) for seed in SEEDS)
    assert len(set(drawn)) == len(SEEDS) * 3_000


def test_the_truth_is_not_made_of_the_exact_draws_of_seed_0():
    """400,000 proposals of the Gaussian's own draws are what 200,000 draws inside take first."""
    truth = constrained(NORMAL, domains.ball([0.0] * 3, 1.0)).truth
    assert set(rows([truth.independent_draws(200_000, seed=0)])).isdisjoint(rows([truth._sample[0]]))


def test_cells_of_a_posterior_are_not_made_of_the_proposals_of_seed_4():
    """Of the Student-t proposals of a seed the first numbers are the directions, whatever their number."""
    data = np.random.default_rng(1).standard_normal((40, 3)), np.arange(40) % 2
    truth = posteriors.logistic_regression(*data).truth
    points = truth.weighted_plane[0]
    theirs = truth.envelope.draw(len(points), np.random.default_rng(4))[:, :2]
    assert not (points == theirs).any()


def test_starts_are_not_exact_draws():
    """Correlations of two independent samples of n are N(0, 1/n): one of 16 is above 5/√n with probability 1e-5."""
    problem = sysid.identify(DATA, SYSTEM).scaled()
    n = 4_000
    starts, exact = problem.starts(n, seed=2), problem.truth.independent_draws(n, seed=2)
    between = np.corrcoef(starts.T, exact.T)[: problem.dim, problem.dim :]
    assert np.abs(between).max() < 5.0 / np.sqrt(n)


def quadratic():
    library = sysid.libraries.polynomial(DATA.states, 1)
    prepared = sysid.likelihoods.weak().prepare(DATA, library)
    return prepared, sparsity.sparse_prior(prepared, sparsity.natural_scales(DATA, library))


def test_the_gibbs_sampler_does_not_draw_the_errors_of_the_data_again(monkeypatch):
    """Errors of unit deviation are the standard normals of the data's stream, to rounding."""
    noisy, exact = (sysid.data.simulate(SYSTEM, TIMES, noise=a, relative=False, seed=5) for a in (1.0, 0.0))
    errors, firsts, chain = (noisy.values - exact.values).ravel(), [], sparsity.run_chain

    def look(*given):
        firsts.append(given[-1].standard_normal(errors.size))
        return chain(*given)

    monkeypatch.setattr(sparsity, "run_chain", look)
    sparsity.sparse_posterior(*quadratic(), sweeps=10, seed=5)
    assert len(firsts) == sparsity.CHAINS
    assert not any(np.isclose(errors, normals, atol=1e-9).any() for normals in firsts)


def seeds_of_verify(seed):
    """Seeds of ``verify``'s eight rounds, and of those at half the step size."""
    plan = report.setting_of(as_problem(NORMAL), samplers.sgld([0.1] * 8), 100, 10, 64, None, seed).plan
    assert len(plan.seeds) == 8
    return [*plan.seeds, *at_half_pace(plan).seeds]


def seeds_of_pilot(seed):
    """Seeds of the four heats of a pilot of which three diverge, and of the run at T."""
    seen = []

    def look(problem, sampler, seed, start, *rest):
        seen.append(seed)
        if len(seen) < 4:
            raise DivergenceError("too hot", chain=0, replica=0, step=0, state=np.zeros(3), run=None)
        return np.random.default_rng(0).chisquare(3, (len(start), 100)), start

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_pilot, "run_pilot", look)
        partition_pilot.find_partition(as_problem(NORMAL), samplers.csgld(0.1), seed=seed, init=np.zeros((1, 1, 3)))
    assert len(seen) == 5
    return seen


def seeds_of_step_size_check(seed):
    """Seeds of the two runs of ``check_step_size`` of a run of a seed."""
    seen = []

    def look(problem, sampler, options):
        seen.append(options.seed)
        return run_sampler(problem, sampler, options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_size, "run_sampler", look)
        check_step_size(replace(SHORT, seed=seed), n_chains=8)
    assert len(seen) == 2
    return seen


def seeds_of_ladder(seed):
    """Seeds of the rounds of ``adapted_ladder``."""
    seen = []

    def look(problem, sampler, options):
        seen.append(options.seed)
        counts = SimpleNamespace(attempted=np.full((1, 2), 100), accepted=np.full((1, 2), 50))
        return SimpleNamespace(counts=counts, replica_draws=np.zeros((1, 3, 1, 3)), steps=np.ones(1))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ladders, "run_sampler", look)
        ladder = samplers.resgld((0.1, 0.2, 0.3), temperatures=(1.0, 2.0, 3.0))
        ladders.adapted_ladder(NORMAL, ladder, n_steps=10, n_chains=1, seed=seed)
    assert len(seen) == 5
    return seen


def seeds_of_tuning(seed):
    """Seeds of the runs of a tuning, and of those of the second attempt."""
    return [study_seed(each, n) for each in attempt_seeds(seed) for n in range(1, 40)] + [run_seed(seed, 1)]


@pytest.mark.parametrize(
    "seeds_of", [seeds_of_tuning, seeds_of_verify, seeds_of_pilot, seeds_of_ladder, seeds_of_step_size_check]
)
def test_no_two_seeds_share_a_run(seeds_of):
    """Of the seeds themselves ``verify`` runs each, in its first round."""
    seeds = [0, *SEEDS]  # neighbours too: 0, 1, 2, 3
    made = [made for seed in seeds for made in seeds_of(seed)]
    assert len(set(made)) == len(made)
    own = seeds if seeds_of is seeds_of_verify else []
    assert set(made) & set(seeds) == set(own)


def test_a_pilot_of_one_seed_is_no_run_of_another():
    for seed in range(20):
        assert not {(seed + k * SHIFTS[0]) % 2**64 for k in range(6)} & {*seeds_of_pilot(seed)}


def test_seeds_of_resampling_are_no_sums():
    """Differences of hashes are all different; of seeds to which one number is added they are all 1."""
    made = np.array([datatree.resample_seed(SimpleNamespace(seed=s)) for s in range(100)], np.uint64)
    assert np.unique(np.diff(made)).size == 99


def test_derived_seeds_keep_their_values():
    """NumPy's hash, written again: Python integers, from O'Neill's seed_seq_fe128."""
    for seed, key in ((0, (1,)), (1, (2, 3)), (LAST, (9, 0, 1))):
        assert derived_seed(seed, *key) == hashed(seed, key)
    assert len({derived_seed(s, *key) for s in SEEDS for key in ((1,), (2,), (1, 0), (1, 1), (2, 1))}) == 5 * len(SEEDS)


def hashed(seed, key):
    """64 bits of the pool of four words into which the seed's two words and the key's are mixed."""
    mask = 2**32 - 1
    words = [seed & mask, seed >> 32, 0, 0, *key]
    constant = 0x43B0D7E5

    def hash_word(value):
        nonlocal constant
        value ^= constant
        constant = constant * 0x931E8875 & mask
        value = value * constant & mask
        return value ^ value >> 16

    def mix(x, y):
        value = (0xCA01F9DD * x - 0x4973F715 * y) & mask
        return value ^ value >> 16

    pool = [hash_word(word) for word in words[:4]]
    for source in range(4):
        for to in range(4):
            if source != to:
                pool[to] = mix(pool[to], hash_word(pool[source]))
    for word in words[4:]:
        for to in range(4):
            pool[to] = mix(pool[to], hash_word(word))
    constant, out = 0x8B51F9DD, []
    for word in pool[:2]:
        value = word ^ constant
        constant = constant * 0x58F38DED & mask
        value = value * constant & mask
        out.append(value ^ value >> 16)
    return out[0] | out[1] << 32


def batches(seed):
    """Places after steps that are moved by minibatches alone, for the noise of so low a temperature is 1e-15."""
    data = np.random.default_rng(1).standard_normal((40, 3)), np.arange(40) % 2
    problem = posteriors.logistic_regression(*data, batch_size=4)
    run = sample(problem, samplers.sgld(1e-2, temperature=1e-28), n_steps=4, seed=seed, init=np.zeros(3))
    return run.draws.round(10)


def chunks(seed):
    return next(iter(stream(NORMAL, samplers.sgld(0.1), n_steps=4, seed=seed))).draws


def held(seed):
    with chains(NORMAL, samplers.sgld(0.1), seed=seed) as c:
        c.advance(2)
        return c.positions


def in_rounds(seed):
    sampler = samplers.icsgld(0.1, n_replicas=2, partition=tempering.Partition(2.0, 10.0, 20))
    return sample_in_rounds(
        NORMAL, sampler, n_groups=2, steps_per_round=2, n_steps=4, burn_in=3, seed=seed, threads=1
    ).draws


class Door(NamedTuple):
    """A public function with a seed: what is called with the seed, and the arrays it gives."""

    name: str
    call: object


PREPARED, PRIOR = quadratic()
DOORS = [
    Door("toolkit sample", lambda s: sample(NORMAL, samplers.sgld(0.1), n_steps=2, seed=s).draws),
    Door("toolkit sample", batches),
    Door("toolkit stream", chunks),
    Door("toolkit chains", held),
    Door("toolkit sample_in_rounds", in_rounds),
    Door("toolkit resample",
         lambda s: resample(np.arange(400.0).reshape(4, 100, 1), 1.0 + np.arange(400.0).reshape(4, 100), seed=s)),
    Door("toolkit check_gradient", lambda s: check_gradient(NORMAL, n_points=3, seed=s).point),
    Door("toolkit check_gradient",
         lambda s: check_gradient(NORMAL, n_points=3, init=np.zeros(3), seed=s).point),
    Door("toolkit check_step_size", lambda s: check_step_size(SHORT, n_chains=8, seed=s).sds),
    Door("toolkit check_step_size", seeds_of_step_size_check),
    Door("toolkit adapted_ladder", seeds_of_ladder),
    Door("toolkit find_partition", seeds_of_pilot),
    Door("targets Shape uniform_draws", lambda s: shapes.flower().uniform_draws(1, seed=s)),
    *(Door("targets Convex uniform_draws", partial(lambda region, s: region.uniform_draws(1, seed=s), region))
      for region in (domains.box([0.0] * 3, [1.0] * 3), domains.ball([0.0] * 3, 1.0), domains.simplex(3))),
    Door("sysid simulate", lambda s: sysid.data.simulate(SYSTEM, TIMES, noise=0.1, seed=s).values),
    Door("sysid simulate", lambda s: sysid.data.simulate(SYSTEM, TIMES, noise=0.0, missing=0.4, seed=s).values),
    Door("sysid simulate",
         lambda s: sysid.simulate(SYSTEM.usual, [0.0, 0.1], problem=SYSTEM, noise=0.1, seed=s).observed),
    Door("sysid Identification starts",
         lambda s: sysid.identify(DATA, SYSTEM).scaled().starts(1, seed=s)),
    Door("sysid Identification evidence", lambda s: PROPER.evidence(OF_PROPER, seed=s).log_evidence),
    Door("sysid sparse_posterior",
         lambda s: sparsity.sparse_posterior(PREPARED, PRIOR, sweeps=10, seed=s).draws),
    Door("sysid inclusion_probabilities",
         lambda s: [*sparsity.inclusion_probabilities(PREPARED, PRIOR, sweeps=40, seed=s).values()]),
    Door("sysid largest_lyapunov",
         lambda s: sysid.largest_lyapunov(SYSTEM, time=0.1, burn_in=0.0, interval=0.1, n_paths=2, seed=s).value),
    *(Door("truth independent_draws", partial(lambda truth, s: truth.independent_draws(1, seed=s), target.truth))
      for target in catalogue()),
]  # fmt: skip
# Too slow for 67 calls, and made of what is in the list; or with seeds of numbers that are no user's.
OTHERS = {
    "toolkit verify", "toolkit RunOptions __init__", "toolkit tune",
    "sysid compare_pysindy", "sysid discover", "sysid Discovery simulate", "sysid Discovery forecast",
    "sysid Discovery forecast_check", "sysid forecast_check",
    "figures produce", "targets run_chains", "targets numeric_data_set",
    "targets numbers",
}  # fmt: skip


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_no_bit_of_a_seed_is_lost(door):
    found = [np.asarray(door.call(seed)).tobytes() for seed in SEEDS]
    assert len(set(found)) == len(SEEDS)
    assert np.asarray(door.call(LAST)).tobytes() not in found


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", None, True])
def test_what_is_no_seed_is_refused_in_words(seed):
    kind = TypeError if isinstance(seed, float | str | bool) or seed is None else ValueError
    verifies = Door("", lambda s: verify(NORMAL, samplers.sgld(0.1), n_steps=40, n_chains=8, seed=s))
    compares = Door("", lambda s: sysid.compare_pysindy(DATA, 1, methods=(), seed=s))
    for door in (*DOORS, verifies, compares):
        if seed is None and door.name == "toolkit check_step_size":
            continue  # for which it means the run's
        with pytest.raises(kind, match=r"^seed must be"):
            door.call(seed)


def functions_with_seeds():
    """Package and name of every function and method of the packages that takes a seed by its name."""
    for package in PACKAGES:
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if info.name.endswith("__main__"):
                continue
            module = importlib.import_module(info.name)
            for name, thing in vars(module).items():
                if getattr(thing, "__module__", None) != module.__name__ or name.startswith("_"):
                    continue
                methods = vars(thing).items() if inspect.isclass(thing) else ()
                for path, function in ((name, thing), *((f"{name} {key}", value) for key, value in methods)):
                    if inspect.isfunction(function):
                        seed = inspect.signature(function).parameters.get("seed")
                        if seed is not None and seed.kind is inspect.Parameter.KEYWORD_ONLY:
                            yield f"{package.__name__} {path}"


def test_no_function_with_a_seed_is_left_out():
    known = {door.name for door in DOORS} | OTHERS
    assert {name for name in functions_with_seeds() if not name.endswith("Truth independent_draws")} - known == set()


def state_of_a_method(seed):
    """NumPy's own generator as ``compare_pysindy`` leaves it to a method."""
    found = []

    def look(trial):
        found.append(np.random.get_state()[1].tobytes())
        return np.zeros(1), None

    compare.pysindy_row("a method", SimpleNamespace(seed=seed), look)
    return found[0]


def test_numpys_own_generator_gets_all_bits():
    """A seed below 2³² gives the state that NumPy's own function gives."""
    states = [state_of_a_method(seed) for seed in SEEDS]
    assert len(set(states)) == len(SEEDS)
    kept = np.random.get_state()
    try:
        np.random.seed(SEEDS[1])
        assert states[1] == np.random.get_state()[1].tobytes()
        for seed, state in zip(SEEDS, states, strict=True):
            seed_global_state(seed)
            assert np.random.get_state()[1].tobytes() == state
    finally:
        np.random.set_state(kept)


def test_no_seed_is_computed_by_arithmetic():
    """Sums, products and shifts of seeds meet other seeds: ``derived_seed`` hashes. Words of a seed may be cut."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ARITHMETIC):
                names = {getattr(side, "id", getattr(side, "attr", "")) for side in (node.left, node.right)}
                if any(name.lower().endswith(("seed", "seeds")) for name in names):
                    found.append(f"{path.name}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
