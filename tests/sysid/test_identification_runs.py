"""A problem of identification: positions and parameters of runs, starts, initial states, batches, words."""

import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest

import sysid
from sysid import Series, identify, libraries, likelihoods, model_of, priors, systems
from sysid.likelihoods.interface import KERNEL
from toolkit import load, sample, samplers
from toolkit._compiler.block_rows import COUNTER_ROWS
from toolkit._compiler.decorators import compile_part
from toolkit.tempering import Partition

LORENZ = systems.lorenz()
LV = systems.lotka_volterra()
SERIES = sysid.data.simulate(LORENZ, np.arange(0.0, 4.0, 0.01), seed=1)
PREY = sysid.data.simulate(LV, np.arange(0.0, 6.0, 0.5), errors="lognormal", noise=0.1, seed=2)
BACKWARDS = Series(SERIES.times, SERIES.values, SERIES.states, velocities=-SERIES.velocities)


def test_a_run_is_read_in_the_positions_it_was_drawn_in(tmp_path):
    """A run of scaled positions is refused by the problem that is not; a loaded one is read as the run itself."""
    plain = identify(SERIES, LORENZ, likelihood=likelihoods.derivative(noise=50.0))
    scaled = plain.scaled()
    run = sample(scaled, samplers.hmc(0.5, n_leapfrogs=3), n_steps=200, burn_in=20, n_chains=8, seed=1)
    for ask in (plain.estimates, plain.parameters, plain.inclusion, plain.to_datatree):
        with pytest.raises(ValueError, match="in other positions"):
            ask(run)
    with pytest.raises(ValueError, match="in other positions"):
        sysid.simulate(run, [0.0, 0.1], problem=plain)
    run.save(tmp_path / "run.npz")
    loaded = load(tmp_path / "run.npz")
    np.testing.assert_array_equal(scaled.estimates(loaded).mean, scaled.estimates(run).mean)
    with pytest.raises(ValueError, match="in other positions"):
        plain.estimates(loaded)
    with pytest.raises(TypeError, match="give problem with a loaded run"):
        sysid.simulate(loaded, [0.0, 0.1])


@pytest.mark.parametrize("logs", [{}, {"log": ()}, {"log": ("sigma",)}])
def test_starts_of_positive_parameters_are_positive_where_least_squares_are_not(logs):
    """With velocities turned round σ is −10 by least squares: starts and scaled positions are finite all the same."""
    prior = {"sigma": priors.gaussian(0.0, 3.0) if logs.get("log") else priors.lognormal(1.0, 0.5)}
    problem = identify(BACKWARDS, LORENZ, likelihood=likelihoods.derivative(noise=50.0), prior=prior, **logs)
    assert problem.prepared.start[0] < 0.0
    for made in (problem, problem.scaled()):
        starts = made.starts(4, seed=1)
        energy, gradient = made.target.evaluate(starts)
        assert np.isfinite(energy).all()
        assert np.isfinite(gradient).all()
        assert (made.parameters(starts)[:, 0] > 0.0).all()


# Prey alone do not tell how many predators there are.
@pytest.mark.filterwarnings("ignore:identify. no mode was found", "ignore:identify. the posterior is improper")
def test_initial_states_are_those_of_the_likelihood():
    """Columns of data in any order, a start that is given, states without data: none is taken for another."""
    swapped = Series(PREY.times, PREY.values[:, ::-1].copy(), PREY.states[::-1], noise=PREY.noise)
    only_prey = Series(PREY.times, PREY.values[:, :1].copy(), PREY.states[:1])

    def start_of(data, start):
        likelihood = likelihoods.trajectory(errors="lognormal", noise=0.1, start=start)
        problem = identify(data, LV, likelihood=likelihood)
        return problem.start_of(problem.prepared.start)[0]

    np.testing.assert_array_equal(start_of(PREY, "fixed"), PREY.values[0])
    np.testing.assert_array_equal(start_of(swapped, "fixed"), PREY.values[0])
    np.testing.assert_array_equal(start_of(PREY, [11.0, 4.0]), [11.0, 4.0])
    np.testing.assert_array_equal(start_of(only_prey, [11.0, 4.0]), [11.0, 4.0])
    problem = identify(only_prey, LV, likelihood=likelihoods.trajectory(errors="lognormal", noise=0.1))
    np.testing.assert_array_equal(problem.start_of(problem.prepared.start)[0], problem.prepared.start[-2:])


def test_a_batch_of_all_data_has_their_energy_with_its_constants():
    """The window that holds every datum once has the energy of all data, to rounding."""
    n = len(SERIES)
    likelihood = likelihoods.derivative(noise=3.0, batch_size=n, batches="windows")
    prepared = likelihood.prepare(SERIES, LORENZ)
    theta = np.array([[9.0], [27.0], [2.0]])
    compiled = compile_part(prepared.kernel.py_func, KERNEL)
    energies, slopes = [], []
    for mode in (0.0, 1.0):
        energy, slope = np.empty(1), np.empty((3, 1))
        work = np.zeros((prepared.work_rows, 1))
        work[:COUNTER_ROWS] = mode
        compiled(theta, energy, slope, prepared.numbers, work)
        energies.append(energy[0])
        slopes.append(slope)
    assert energies[1] == pytest.approx(energies[0], rel=1e-10)
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-8)


@pytest.mark.parametrize("noise", [(1.0, 2.0), ()])
def test_noise_of_another_number_of_states_is_refused_by_name(noise):
    with pytest.raises(ValueError, match="noise must be one or one per state"):
        identify(SERIES, LORENZ, likelihood=likelihoods.derivative(noise=noise))


@pytest.mark.parametrize("label", ["lambda", "µ", "parameter_1", "a b"])
def test_constraints_read_every_name_a_parameter_may_have(label):
    """Words that Python keeps, letters it changes, and names like its own stand-ins."""
    model = model_of(
        libraries.polynomial(LORENZ.states, 2), tied={label: {"dx:x": -1, "dx:y": 1}}, free=["dy:x", "dz:z"],
        fixed={"dy:y": -1, "dy:xz": -1, "dz:xy": 1},
    )  # fmt: skip
    problem = identify(SERIES, model, constraints=[f"{label} > 3", "dy:x > 11", "-2*dz:z > 2"])
    points = np.array([[4.0, 12.0, -2.0], [2.0, 12.0, -2.0], [4.0, 10.0, -2.0], [4.0, 12.0, 0.0]])
    assert problem.contains(points).tolist() == [True, False, False, False]
    with pytest.raises(ValueError, match=r"must name parameters .*dy:x, dz:z.*, got 'other'"):
        identify(SERIES, model, constraints="other > 1")


@pytest.mark.filterwarnings("ignore:estimates. R-hat")  # 200 draws of three contour chains
def test_a_factor_of_a_contour_chain_s_weights_changes_nothing():
    """Of its estimates, inclusion and trajectories; those of TACT-HMC, which have none, are of all chains together."""
    prior = {"sigma": priors.spike_and_slab(0.1, 20.0)}
    problem = identify(SERIES, LORENZ, likelihood=likelihoods.derivative(noise=50.0), prior=prior).scaled()
    flat = samplers.csgld(0.05, partition=Partition(5_800.0, 0.5, 40))
    run = sample(problem, flat, n_steps=300, burn_in=100, n_chains=3, init=problem.starts(3, seed=4), seed=1)
    assert np.ptp(run.weights) > 0.0
    factors = np.array([1.0, 1e6, 1.0])[:, None, None]
    other = replace(run, replica_weights=run.replica_weights * factors)
    for one, two in zip(problem.estimates(run)[1:], problem.estimates(other)[1:], strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-12)
    np.testing.assert_allclose(problem.inclusion(other), problem.inclusion(run), rtol=1e-12)
    picked = [sysid.simulate(r, [0.0], n_draws=50, seed=2).parameters for r in (run, other)]
    np.testing.assert_array_equal(*picked)
    pooled = replace(other, sampler=samplers.tact_hmc(0.1))
    assert abs(problem.estimates(pooled).mean - problem.estimates(run).mean).max() > 1e-6


def test_weights_that_leave_no_draw_or_one_are_told():
    problem = identify(SERIES, LORENZ, likelihood=likelihoods.derivative(noise=50.0)).scaled()
    run = sample(problem, samplers.sgld(0.05), n_steps=40, burn_in=20, n_chains=2, seed=1)
    none = np.zeros((2, 1, 20))
    one = none.copy()
    one[1, 0, 3] = 1.0
    none, one = (replace(run, sampler=samplers.tact_hmc(0.1), replica_weights=weights) for weights in (none, one))
    for ask in (problem.estimates, problem.inclusion, lambda r: sysid.simulate(r, [0.0])):
        with pytest.raises(ValueError, match="run must have draws of weight > 0, and the run has none"):
            ask(none)
    with pytest.raises(ValueError, match=r"weights must not lie on one draw, .* at \[23\]"):
        problem.estimates(one)
    assert problem.inclusion(one).tolist() == [1.0] * 3
    with pytest.raises(TypeError, match="run must be a Run"):
        problem.inclusion(problem.parameters(run))


@pytest.mark.parametrize("root", [np.eye(3), 2.0 * np.eye(3)])
def test_starts_of_a_scaled_problem_spread_whatever_its_root(root):
    scaled = identify(SERIES, LORENZ).scaled([10.0, 28.0, 2.7], root)
    points = scaled.starts(400, seed=0, spread=0.5)
    np.testing.assert_allclose(points.std(axis=0), 0.5, rtol=0.2)
    assert (identify(SERIES, LORENZ).starts(3, seed=0) == identify(SERIES, LORENZ).starts(1, seed=1)).all()


def test_a_truth_is_taken_by_its_states_names():
    ensemble = sysid.simulate(np.tile(LV.usual, (2, 1)), PREY.times, problem=LV, n_draws=None)
    turned = Series(PREY.times, PREY.values[:, ::-1].copy(), PREY.states[::-1])
    found = ensemble.valid_time(turned, lyapunov=1.0)
    np.testing.assert_array_equal(found, ensemble.valid_time(PREY, lyapunov=1.0))
    assert not np.array_equal(found, ensemble.valid_time(turned.values, lyapunov=1.0))
    with pytest.raises(ValueError, match=r"truth must have all states of the model, .* without 'predator'"):
        ensemble.valid_time(Series(PREY.times, PREY.values[:, :1], PREY.states[:1]), lyapunov=1.0)
    with pytest.raises(ValueError, match="truth must not be 0"):
        ensemble.valid_time(np.zeros_like(PREY.values), lyapunov=1.0)


def test_what_is_no_number_or_no_sequence_of_names_is_refused_by_name():
    problem = identify(SERIES, LORENZ).scaled()
    with pytest.raises(TypeError, match="spread must be"):
        problem.starts(2, seed=1, spread="wide")
    with pytest.raises(ValueError, match="spread must be"):
        problem.starts(2, seed=1, spread=np.nan)
    with pytest.raises(ValueError, match="seed must be ≥ 0"):
        problem.starts(2, seed=2**64)
    assert problem.starts(2, seed=2**64 - 1).shape == (2, 3)
    with pytest.raises(TypeError, match="run must be a Run"):
        problem.estimates("run")
    with pytest.raises(TypeError, match="states must be a sequence of names"):
        systems.own(lambda t, x, p: (p[0] * x[0], x[1]), states="xy", parameters="a", usual=[1.0], start=[1.0, 1.0])


@pytest.mark.cases(0)
def test_parameters_named_like_initial_states_are_refused():
    model = model_of(libraries.polynomial(LV.states, 1), tied={"prey(0)": {"dprey:prey": 1.0}}, free=())
    with pytest.raises(ValueError, match=r"parameters must be distinct and not empty, got 'prey\(0\)'"):
        identify(PREY, model, likelihood=likelihoods.trajectory(errors="lognormal", noise=0.1))


ROOT = np.array([[2.0, 0.0, 0.0], [0.3, 0.5, 0.0], [0.1, -0.1, 0.2]])
POSITIVE = {"rho": priors.lognormal(3.0, 0.5)}
KINDS = {
    "plain": lambda: identify(SERIES, LORENZ, likelihood=likelihoods.derivative(noise=50.0)),
    "scaled": lambda: KINDS["plain"]().scaled([10.0, 28.0, 2.5], ROOT),
    "logarithms": lambda: identify(SERIES, LORENZ, likelihood=likelihoods.derivative(noise=50.0), prior=POSITIVE),
}
SAMPLERS = {
    "one replica": (samplers.hmc(0.01), {}),
    "a ladder": (samplers.pt_mala((1e-4, 1e-4), temperatures=(1.0, 2.0)), {"keep_replicas": True}),
    "weights": (samplers.icsgld(1e-6, n_replicas=2, partition=Partition(5_800.0, 50.0, 40)), {}),
}


def arviz():
    """ArviZ, whatever it warns of when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


@functools.cache
def problem_and_run(kind, moves):
    """Of one kind and sampler: what is written in all formats."""
    problem, (sampler, asked) = KINDS[kind](), SAMPLERS[moves]
    start = problem.positions(np.array([[10.0, 28.0, 2.5], [9.0, 27.0, 2.7]]))
    if moves == "weights":
        start = np.repeat(start[:, None], 2, axis=1)
    run = sample(problem, sampler, n_steps=30, n_chains=2, seed=1, init=start, keep_energies=True, **asked)
    return problem, run


ZARR = (".zarr", ".zarr.zip")  # the tree is the one of .nc


@pytest.mark.slow_cases(
    *(f"{kind}-{moves}-{end}" for kind in ("plain", "scaled") for moves in SAMPLERS for end in ZARR)
)
@pytest.mark.parametrize("suffix", [".nc", *ZARR, ".npz"])
@pytest.mark.parametrize("moves", SAMPLERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")
def test_files_have_parameters_by_name_and_are_loaded_to_the_bit(kind, moves, suffix, tmp_path):
    xarray = pytest.importorskip("xarray")
    problem, run = problem_and_run(kind, moves)
    path = tmp_path / f"run{suffix}"
    run.save(path)
    for loaded in (load(path), load(path, problem)):
        for name in ("init", "replica_draws", "steps", "energies", "replica_weights"):
            np.testing.assert_array_equal(getattr(loaded, name), getattr(run, name))
        np.testing.assert_array_equal(problem.parameters(loaded), problem.parameters(run))
    if suffix in (".npz", ".zarr.zip"):  # of which the first has no tree, and the second that of .zarr
        return
    engine = {"engine": "zarr"} if suffix == ".zarr" else {}
    with xarray.open_datatree(path, **engine) as tree:
        group = tree["weighted_posterior" if moves == "weights" else "posterior"]
        assert group["x_dim"].values.tolist() == ["sigma", "rho", "beta"]
        np.testing.assert_array_equal(group["x"], problem.parameters(run))
        assert ("positions" in tree.children) == (kind != "plain")
        if moves == "a ladder":
            np.testing.assert_array_equal(tree["replicas"]["x"], problem.parameters(run.replica_draws))
            assert tree["replicas"]["x_dim"].values.tolist() == ["sigma", "rho", "beta"]
        if moves == "weights":
            picked = tree["sample_stats"]["source_draw"].values
            drawn = np.take_along_axis(problem.parameters(run), picked[:, :, None], axis=1)
            np.testing.assert_array_equal(tree["posterior"]["x"], drawn)
        np.testing.assert_array_equal(tree["constant_data"]["init"], run.init)


@pytest.mark.parametrize("kind", KINDS)
def test_draws_that_are_no_numbers_are_written_and_read(kind, tmp_path):
    pytest.importorskip("xarray")
    problem = KINDS[kind]()
    start = problem.positions(np.array([[10.0, 28.0, 2.5], [9.0, 27.0, 2.7]]))
    run = sample(problem, samplers.hmc(0.01), n_steps=5, n_chains=2, seed=1, init=start)
    for k, number in enumerate((np.inf, -np.inf, np.nan, 2_000.0)):
        run.replica_draws[0, 0, k, 1] = number
    run.save(tmp_path / "run.nc")
    np.testing.assert_array_equal(load(tmp_path / "run.nc").replica_draws, run.replica_draws)


def test_arviz_shows_the_names_in_a_file_of_scaled_positions(tmp_path):
    az, problem = arviz(), KINDS["scaled"]()
    start = np.zeros((4, 3))
    run = sample(problem, samplers.hmc(0.1), n_steps=60, n_chains=4, seed=1, init=start)
    run.save(tmp_path / "run.nc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = az.from_netcdf(tmp_path / "run.nc")
        table = az.summary(data, round_to="none")
    assert table.index.tolist() == ["x[sigma]", "x[rho]", "x[beta]"]
    np.testing.assert_allclose(table["mean"].to_numpy(float), problem.parameters(run).mean(axis=(0, 1)), rtol=1e-12)
    if hasattr(data, "close"):
        data.close()


def test_the_tree_of_a_scaled_run_has_the_energies_of_its_positions():
    """Evaluated at what was sampled, not at the parameters it stands for; the same from a run and from its problem."""
    pytest.importorskip("xarray")
    problem = KINDS["scaled"]()
    run = sample(problem, samplers.hmc(0.1), n_steps=20, n_chains=2, seed=1, init=np.zeros((2, 3)))
    energies = problem.target.evaluate(run.draws.reshape(-1, 3))[0].reshape(2, 20)
    for tree in (run.to_datatree(), problem.to_datatree(run)):
        np.testing.assert_allclose(tree["sample_stats"]["energy"], energies, rtol=1e-12)
        assert tree["posterior"]["x_dim"].values.tolist() == ["sigma", "rho", "beta"]
    named = run.to_datatree(["s", "r", "b"])
    assert named["posterior"]["x_dim"].values.tolist() == ["s", "r", "b"]
