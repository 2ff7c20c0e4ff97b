"""A run as ArviZ reads it, 0.23 and 1.x alike: groups, numbers beside our own, a plot; weighted runs resampled."""

import dataclasses
import json
import warnings

import numpy as np
import pytest

from targets import constrained, domains, mixtures
from toolkit import ContourWarning, DivergenceError, boundaries, from_callable, load, sample, samplers, schedules
from toolkit._output.storage.datatree import resample_seed
from toolkit._output.storage.description import from_json
from toolkit.tempering.contour_tempering import Partition
from toolkit.weighting import resample

xarray = pytest.importorskip("xarray")
pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ

NORMAL = mixtures.gaussian_mixture([[0.5, -1.0]], 1.0)
BOX = constrained(NORMAL, domains.box([-2.0, -2.0], [2.0, np.inf]))
PARTITION = Partition(1.5, 0.5, 16)
EXCHANGE = samplers.r2sgld(step_sizes=(0.05, 0.1), temperatures=(1.0, 3.0))
SCHEMA = {"inference_library", "inference_library_version", "created_at", "sampling_time", "tuning_steps"}


def arviz():
    """ArviZ, whatever it warns of when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


def as_arviz_reads(path):
    """A saved file opened by ArviZ's own functions, where the version has them; lazily."""
    az = arviz()
    if path.suffix == ".nc":
        return az.from_netcdf(path)
    tree = xarray.open_datatree(path, engine="zarr")
    return az.from_datatree(tree) if hasattr(az, "from_datatree") else tree


def table(data):
    """az.summary's mean, sd, bulk ESS and R-hat of every coordinate, unrounded."""
    az = arviz()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = az.summary(data, round_to="none")
    assert list(found.index) == ["x[0]", "x[1]"]
    return {name: found[name].to_numpy(np.float64) for name in ("mean", "sd", "ess_bulk", "r_hat")}


@pytest.fixture(scope="module")
def run():
    return sample(
        BOX, EXCHANGE, n_steps=3_000, burn_in=500, n_chains=4, seed=2**64 - 1, keep_energies=True, keep_replicas=True,
        trace_every=100,
    )  # fmt: skip


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_arviz_opens_a_saved_run_and_finds_our_numbers(run, suffix, tmp_path):
    path = tmp_path / f"run{suffix}"
    run.save(path)
    data = as_arviz_reads(path)
    found = table(data)
    flat = run.draws.reshape(-1, 2)
    np.testing.assert_allclose(found["mean"], flat.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found["sd"], flat.std(axis=0, ddof=1), rtol=1e-10)
    assert (found["ess_bulk"] > 100).all()
    assert (found["r_hat"] < 1.1).all()
    energy = np.asarray(data["sample_stats"]["energy"])
    np.testing.assert_array_equal(energy, run.energies[:, 0])
    if hasattr(data, "close"):
        data.close()


@pytest.mark.cases(0)
def test_arviz_draws_a_plot_of_a_run_in_memory(run):
    import matplotlib.pyplot as plt

    az = arviz()
    tree = run.to_datatree(names=["left", "right"])
    data = az.from_datatree(tree) if hasattr(az, "from_datatree") else tree
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(az, "plot_trace_dist"):
            figure = az.plot_trace_dist(data, compact=False, backend="matplotlib").viz["figure"].item()
        else:
            figure = az.plot_trace(data, compact=False).ravel()[0].figure
        figure.canvas.draw()
    words = " ".join(
        text.get_text() for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label)
    )
    assert "left" in words
    assert "right" in words
    plt.close(figure)


def test_groups_and_dimensions_are_those_of_the_schema(run):
    tree = run.to_datatree()
    assert set(tree.children) == {"posterior", "sample_stats", "replicas", "constant_data", "trace", "run"}
    assert tree["posterior"]["x"].dims == ("chain", "draw", "x_dim")
    np.testing.assert_array_equal(tree["posterior"]["x"], run.draws)
    for name, variable in tree["sample_stats"].data_vars.items():
        assert variable.dims == ("chain", "draw"), name
        assert variable.shape == (4, 2_500), name
        assert variable.attrs["description"]
    assert set(tree["posterior"].attrs) >= SCHEMA
    assert tree.attrs["tuning_steps"] == run.burn_in
    assert tree.attrs["sampling_time"] == run.elapsed
    np.testing.assert_array_equal(tree["replicas"]["x"], run.replica_draws)
    assert tree["replicas"]["temperature"].values.tolist() == [1.0, 3.0]
    np.testing.assert_array_equal(tree["constant_data"]["init"], run.init)
    np.testing.assert_array_equal(tree["constant_data"]["target_parameters"], NORMAL.parameters)
    np.testing.assert_array_equal(tree["constant_data"]["domain_real"], BOX.domain.float_table)
    np.testing.assert_array_equal(tree["trace"]["walker"], run.trace.fields["walker"])
    np.testing.assert_array_equal(tree["trace"]["step"], run.trace.steps)
    np.testing.assert_array_equal(tree["run"]["counts.attempted"], run.counts.attempted)
    assert tree["run"]["counts.attempted"].dims == ("chain", "pair")


def test_attributes_repeat_the_run(run):
    """From the attributes and the arrays they name alone, the same bits."""
    from toolkit._output.storage.description import rebuild_sampler

    attributes = run.to_datatree().attrs
    sampler = rebuild_sampler(from_json(attributes["sampler"], {}))
    counts = {name: int(attributes[name]) for name in ("seed", "burn_in", "thin")}
    again = sample(BOX, sampler, n_steps=int(attributes["total_steps"]), n_chains=4, **counts)
    np.testing.assert_array_equal(again.draws, run.draws)
    assert json.loads(attributes["made_with"])["numba"]
    assert json.loads(attributes["problem"])["target"]["name"] == NORMAL.name
    assert attributes["gradient_evaluations"] == str(run.gradient_evaluations)


def test_statistics_of_every_draw(run):
    stats = run.to_datatree()["sample_stats"]
    swaps = run.statistics.swaps[:, 0]
    swapped = np.diff(swaps, axis=1, prepend=0) > 0
    np.testing.assert_array_equal(stats["swap_accepted"], swapped)
    assert 0.05 < swapped.mean() < 0.95
    np.testing.assert_array_equal(stats["reflections"], run.statistics.reflections[:, 0])
    np.testing.assert_array_equal(stats["walker"], run.statistics.walker[:, 0])
    np.testing.assert_array_equal(stats["step"], np.broadcast_to(run.steps, (4, 2_500)))
    assert (stats["step_size"] == 0.05).all()
    assert (stats["temperature"] == 1.0).all()
    assert (stats["weight"] == 1.0).all()
    assert not stats["diverging"].any()


def test_step_sizes_and_temperatures_follow_the_schedule_and_the_chain():
    schedule = schedules.custom(np.linspace(1.0, 0.5, 30), temperature=np.linspace(2.0, 1.0, 30))
    swept = samplers.sgld([0.1, 0.2], temperature=[1.0, 3.0], schedule=schedule)
    run = sample(NORMAL, swept, n_steps=30, burn_in=10, thin=2, n_chains=2, seed=1)
    stats = run.to_datatree()["sample_stats"]
    for chain, (h, t) in enumerate([(0.1, 1.0), (0.2, 3.0)]):
        np.testing.assert_allclose(stats["step_size"][chain], h * np.linspace(1.0, 0.5, 30)[run.steps], rtol=1e-15)
        np.testing.assert_allclose(stats["temperature"][chain], t * np.linspace(2.0, 1.0, 30)[run.steps], rtol=1e-15)


def test_energies_that_were_not_kept_are_those_of_the_target_at_the_draws():
    run = sample(NORMAL, samplers.sgld(0.1), n_steps=50, n_chains=3, seed=1)
    energy = run.to_datatree()["sample_stats"]["energy"]
    np.testing.assert_array_equal(energy.values.ravel(), NORMAL.evaluate(run.draws.reshape(-1, 2))[0])
    calls = []

    def python(points):
        calls.append(len(points))
        return 0.5 * (points**2).sum(axis=1), points

    slow = sample(from_callable(python, dim=2), samplers.sgld(0.1), n_steps=50, n_chains=3, seed=1)
    calls.clear()
    assert "energy" not in slow.to_datatree()["sample_stats"]
    assert not calls


def test_replicas_that_sample_the_target_follow_each_other():
    run = sample(NORMAL, samplers.svgd(0.1, n_replicas=3), n_steps=20, seed=1, init=np.arange(6.0).reshape(1, 3, 2))
    tree = run.to_datatree()
    np.testing.assert_array_equal(tree["posterior"]["x"], run.draws)
    assert tree["sample_stats"]["replica"].values[0, :6].tolist() == [0, 1, 2, 0, 1, 2]
    assert tree["sample_stats"]["step"].values[0, :6].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.fixture(scope="module")
def weighted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        return sample(
            NORMAL, samplers.icsgld(0.05, partition=PARTITION, n_replicas=3), n_steps=20_000, burn_in=4_000, thin=4,
            n_chains=4, seed=5,
        )  # fmt: skip


def test_weighted_draws_are_resampled_for_tools_that_know_no_weights(weighted, tmp_path):
    """ArviZ's means are those by the weights, up to what resampling adds; the unweighted ones differ."""
    weighted.save(tmp_path / "run.nc")
    data = as_arviz_reads(tmp_path / "run.nc")
    found = table(data)
    share = weighted.weights / weighted.weights.sum(axis=1, keepdims=True)
    mean = (share[..., None] * weighted.draws).sum(axis=1).mean(axis=0)
    second = (share[..., None] * weighted.draws**2).sum(axis=1).mean(axis=0)
    draws = weighted.draws.shape[1]
    error = 3.9 * np.ptp(weighted.draws) / np.sqrt(4 * draws) / 4  # systematic resampling errs less than independent
    np.testing.assert_allclose(found["mean"], mean, atol=error)
    resampled = np.asarray(data["posterior"]["x"])
    np.testing.assert_allclose((resampled**2).mean(axis=(0, 1)), second, atol=20 * error)
    plain = (weighted.draws**2).mean(axis=(0, 1))
    assert (np.abs(plain - second) > 20 * error).any()
    if hasattr(data, "close"):
        data.close()


def test_the_resampled_draws_are_those_of_weighting_resample(weighted):
    tree = weighted.to_datatree()
    again = resample(weighted.draws, weighted.weights, seed=int(tree["posterior"].attrs["resample_seed"]))
    np.testing.assert_array_equal(tree["posterior"]["x"], again)
    np.testing.assert_array_equal(tree["weighted_posterior"]["x"], weighted.draws)
    np.testing.assert_array_equal(tree["weighted_sample_stats"]["weight"], weighted.weights)
    source = tree["sample_stats"]["source_draw"].values
    for name, values in tree["weighted_sample_stats"].data_vars.items():
        np.testing.assert_array_equal(tree["sample_stats"][name], np.take_along_axis(values.values, source, axis=1))
    np.testing.assert_array_equal(tree["contour"]["theta"], weighted.theta)
    np.testing.assert_array_equal(tree["contour"]["edges"], PARTITION.edges)
    other = dataclasses.replace(weighted, seed=weighted.seed + 1)
    assert resample_seed(other) != resample_seed(weighted)


def test_without_a_weight_there_is_no_posterior_and_a_warning():
    run = sample(NORMAL, samplers.tact_hmc(0.01), n_steps=20, n_chains=3, seed=1, init=[0.0, 0.0])
    none = run.replica_weights.copy()
    none[1] = 0.0
    with pytest.warns(ContourWarning, match="chain 1 has no draw with a weight above 0"):
        tree = dataclasses.replace(run, replica_weights=none).to_datatree()
    assert "posterior" not in tree.children
    assert "weighted_posterior" in tree.children


def test_a_run_without_draws_has_a_tree(tmp_path):
    run = sample(
        BOX, samplers.sgld(0.1, boundary=boundaries.reflect()), n_steps=20, n_chains=2, seed=1, keep_draws=False
    )
    assert run.to_datatree()["posterior"]["x"].shape == (2, 0, 2)
    weighted = sample(NORMAL, samplers.csgld(0.05, partition=PARTITION), n_steps=20, seed=5, keep_draws=False)
    with pytest.warns(ContourWarning, match="the run has no draws"):
        tree = weighted.to_datatree()
    assert tree["contour"]["theta"].shape == (1, 16)


def test_draws_after_a_divergence_are_marked():
    with pytest.raises(DivergenceError) as caught:
        sample(NORMAL, samplers.sgld(5.0), n_steps=2_000, n_chains=2, seed=1, init=[1.0, 1.0])
    run = caught.value.run
    marked = run.to_datatree()["sample_stats"]["diverging"].values
    np.testing.assert_array_equal(marked, np.isnan(run.draws).any(axis=2))
    assert marked.any()


@pytest.mark.parametrize(
    ("names", "kind", "words"),
    [
        (["a"], ValueError, "names must be 2 different ones"),
        (["a", "a"], ValueError, "names must be 2 different ones"),
        ("ab", TypeError, "names must be a sequence of strings"),
        ([1, 2], TypeError, "names must be a sequence of strings"),
        (3, TypeError, "names must be a sequence of strings"),
    ],
)
def test_wrong_names_are_refused(names, kind, words, run):
    with pytest.raises(kind, match=words):
        run.to_datatree(names=names)


def test_a_loaded_run_has_the_same_tree(run, tmp_path):
    run.save(tmp_path / "run.npz")
    back = load(tmp_path / "run.npz").to_datatree()
    there = run.to_datatree()
    assert set(back.children) == set(there.children)
    for group in there.children:
        for name in there[group].data_vars:
            np.testing.assert_array_equal(back[group][name], there[group][name])


def test_descriptions_too_long_for_an_attribute_lie_in_a_variable(tmp_path):
    """Netcdf holds no attribute above 64 KB: a sampler with a step size for each of 2,000 replicas."""
    many = samplers.svgd(0.1, n_replicas=2_000)
    run = sample(NORMAL, many, n_steps=1, seed=1, init=np.random.default_rng(0).standard_normal((1, 2_000, 2)))
    sampler = dataclasses.replace(run.sampler, step_sizes=np.linspace(0.1, 0.2, 2_000).tolist())
    run = dataclasses.replace(run, sampler=sampler)
    assert run.to_datatree().attrs["sampler"].startswith("too long for an attribute")
    run.save(tmp_path / "run.nc")
    assert load(tmp_path / "run.nc").sampler == sampler
