"""Files saved before parts were described by public names: they load, with samplers that move."""

import ast
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sysid
import targets
import toolkit
from sysid import identify, likelihoods, systems
from sysid.data import simulate
from targets import constrained, domains, mixtures, posteriors
from toolkit import accumulators, load, sample
from toolkit._compiler.function_digest import as_described_now, name_without_modules

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
STORED = Path(__file__).resolve().parents[2] / "data" / "runs_of_2026_11.zip"
NAMES = sorted(name for name in zipfile.ZipFile(STORED).namelist() if not name.startswith("posterior"))
NOT_STORED = {
    "EnergyHistogram",
    "Plan",
    "Setting",
    "Stored",
    "add_data",
}  # of a name, at most one is ever part of a problem or sampler
RESULTS = {"MomentsSoFar", "BestPoint", "HistogramSoFar", "EnergiesSoFar", "BatchMeansSoFar", "KlSoFar"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("before")
    zipfile.ZipFile(STORED).extractall(place)
    return place


@pytest.mark.parametrize("name", NAMES)
def test_a_run_of_every_constructor_loads_and_its_sampler_gives_the_same_draws(folder, name):
    """The problem given is compared with the file's description, of which functions were named by their modules."""
    target = mixtures.gaussian_grid25() if name == "svgd.npz" else mixtures.cosine25()
    problem = target if name == "svgd.npz" else constrained(target, domains.box([-2.5, -2.5], [2.5, 2.5]))
    run = load(folder / name, problem=problem)
    assert {type(result).__name__ for result in run.accumulated.values()} == RESULTS
    again = sample(
        problem, run.sampler, n_steps=run.n_steps, burn_in=run.burn_in, thin=run.thin, n_chains=2, init=run.init,
        seed=run.seed, accumulators={"moments": accumulators.moments()},
    )  # fmt: skip
    np.testing.assert_array_equal(again.draws, run.draws)
    np.testing.assert_array_equal(again.accumulated["moments"].mean, run.accumulated["moments"].mean)


def test_posteriors_load_and_are_told_apart(folder):
    rng = np.random.default_rng(1)
    features = rng.standard_normal((20, 2))
    logistic = posteriors.logistic_regression(features, np.arange(20) % 2, batch_size=4)
    linear = posteriors.linear_regression(features, features @ [1.0, 2.0], noise=0.5, prior=1.0, batch_size=4)
    for name, problem, other in (("logistic", logistic, linear), ("linear", linear, logistic)):
        run = load(folder / f"posterior_{name}.npz", problem=problem)
        again = sample(problem, run.sampler, n_steps=run.n_steps, n_chains=2, seed=run.seed, init=run.init)
        np.testing.assert_array_equal(again.draws, run.draws)
        with pytest.raises(ValueError, match=r"function: 'targets.l.*_block' there, 'targets.l.*_block' here"):
            load(folder / f"posterior_{name}.npz", problem=other)


def test_the_likelihood_of_a_trajectory_loads_by_its_sizes_and_those_of_another_system_are_told_apart(folder):
    """Its file has the sizes under the names of all functions that once enclosed them."""
    problems = []
    for system in (systems.lotka_volterra(), systems.lorenz()):
        times = np.arange(9) * (0.5 if system.dim == 2 else 0.02)
        data = simulate(system, times, noise=0.02, seed=0)
        problems.append(identify(data, system, likelihood=likelihoods.trajectory(), progress=False))
    run = load(folder / "posterior_trajectory.npz", problem=problems[0])
    again = sample(problems[0], run.sampler, n_steps=run.n_steps, n_chains=2, seed=run.seed, init=run.init)
    np.testing.assert_array_equal(again.draws, run.draws)
    with pytest.raises(ValueError, match=r"shoot\.shape\[0\]: 2 there, 3 here; .*shoot\.shape\[1\]: 4 there, 3 here"):
        load(folder / "posterior_trajectory.npz", problem=problems[1])


def test_another_problem_is_still_told_apart(folder):
    with pytest.raises(ValueError, match=r"target.name: 'cosine25' there, 'gaussian_grid25' here"):
        load(folder / "sgld.npz", problem=mixtures.gaussian_grid25())


@pytest.mark.parametrize(
    ("stored", "now"),
    [
        ("toolkit.dynamics.overdamped.move_langevin", "toolkit.move_langevin"),
        ("toolkit.move_langevin", "toolkit.move_langevin"),
        ("sysid.implicit.look_of.<locals>.look", "sysid.look_of.<locals>.look"),
        ("sysid.a.b.outer.<locals>.inner.<locals>.f", "sysid.outer.<locals>.inner.<locals>.f"),
        ("mine.models.energy", "mine.models.energy"),
        ("energy", "energy"),
    ],
)
def test_names_lose_our_modules_alone(stored, now):
    assert name_without_modules(stored) == now


def test_code_of_the_users_stays_as_it_was():
    given = {
        "function": "mine.energy", "code": {"mine.energy": "0" * 32, "toolkit": "1" * 32},
        "values": {"mine.energy.f": "toolkit.maths.elementary.exp", "mine.energy.k": 2.0},
    }  # fmt: skip
    now = as_described_now(given)
    assert now["function"] == "mine.energy"
    assert now["code"] == {"mine.energy": "0" * 32, "toolkit": "bits 1"}
    assert now["values"] == {"mine.energy.f": "toolkit.exp", "mine.energy.k": 2.0}
    assert as_described_now(now) is now


def test_names_of_what_is_stored_are_unique_in_their_package():
    """Moves, looks, block functions and classes: without their modules one must not be taken for another."""
    for package in (toolkit, targets, sysid):
        root = Path(package.__file__).parent
        names = [
            node.name
            for file in root.rglob("*.py")
            for node in ast.parse(file.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ClassDef)
            or (isinstance(node, ast.FunctionDef) and re.search(r"_block$|^move_|^locate|^add_", node.name))
        ]
        twice = {name for name in names if names.count(name) > 1} - NOT_STORED
        assert not twice, f"{package.__name__}: {twice}"
