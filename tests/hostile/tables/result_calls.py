"""Good calls of what is made of draws and runs: diagnostics, saving and loading, pictures; and damaged files."""

import contextlib
import functools
import io
import os
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
from hypothesis import strategies as st

import figures
import sysid
import toolkit
from sysid import System, systems
from targets import mixtures, shapes
from tests.hostile.calls import NOT_NEGATIVE, OPEN_SHARE, POSITIVE, RNG
from tests.hostile.tables.call import Call
from tests.hostile.tables.toolkit_calls import DRAWS, EDGES, IS_EDGES, IS_GRID, IS_MASSES, IS_RATES, MASSES, NORMAL, TWO
from tests.hostile.values import array, choice, count, flag, instance, is_whole, kind, number, numbers, or_none, text
from toolkit import accumulators, diagnostics, samplers
from toolkit.accumulators.grid_kl import Kl
from toolkit.accumulators.interface import PoolableAccumulator
from toolkit.problem.definition import Problem, Target

mpl.use("Agg")
import matplotlib.pyplot as plt

PLANAR = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
PREDATORS = systems.lotka_volterra()
WALKERS = np.array([[0, 1, 1, 2], [1, 0, 2, 1], [2, 2, 0, 0]])
FORMATS = (".npz", ".nc", ".zarr", ".zarr.zip")


@contextlib.contextmanager
def temporary_folder(*names):
    """Work in an empty folder that is removed afterwards; in it only what has one of these names may be left."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        try:
            yield
        finally:
            left = set(os.listdir(folder)) - set(names)
            assert not left, f"{sorted(left)} were left"


@functools.cache
def runs():
    """A run of each kind that a diagnostic looks at, by its name."""
    options = {"n_steps": 40, "seed": 0, "n_chains": 2}
    partition = toolkit.tempering.Partition(0.0, 1.0, 8)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", toolkit.ContourWarning)
        return {
            "plain": toolkit.sample(NORMAL, samplers.sgld(0.1), **options),
            "exchange": toolkit.sample(NORMAL, samplers.resgld((0.1, 0.2), temperatures=(1.0, 2.0)), **options),
            "contour": toolkit.sample(NORMAL, samplers.csgld(0.1, partition=partition), **options),
        }


@functools.cache
def fitted():
    """Data of prey and predators, trajectories beside them, and estimates of some terms."""
    times = np.linspace(0.0, 5.0, 21)
    series = sysid.data.simulate(PREDATORS, times, noise=0.05, seed=0)
    paths = sysid.simulate(np.tile(PREDATORS.usual, (3, 1)), times, problem=PREDATORS, n_draws=None)
    table = sysid.Estimates(("dprey:1", "dprey:prey", "dpredator:1"), *np.ones((7, 3)))
    return series, paths, table


def empty_figure():
    """An empty figure."""
    plt.close("all")
    return plt.figure(figsize=(3.0, 2.0))


def draw_fit(series, ensemble, figure, level):
    """Draw a fit into a figure, or into an empty one where it is None."""
    figures.fit(series, ensemble, empty_figure() if figure is None else figure, level=level)


def draw_overview(run, figure):
    """Draw a run into a figure, or into an empty one where it is None."""
    figures.overview(run, empty_figure() if figure is None else figure)


def draw_terms(source, figure, least):
    """Draw terms into a figure, or into an empty one where it is None."""
    figures.terms(source, empty_figure() if figure is None else figure, least=least)


@functools.cache
def tuned():
    """A short tuning."""
    return toolkit.tune(NORMAL, samplers.sgld(), seed=0, n_gradients=20_000)


def run_of(which, other):
    """Good arguments with a run of one kind, and the kind of the argument, which another does not fit."""
    one = instance(toolkit.Run)
    return (lambda: {"run": runs()[which]}), {
        "run": one._replace(wrong=st.one_of(one.wrong, st.builds(lambda: runs()[other])))
    }


EXCHANGE_GOOD, EXCHANGE_KIND = run_of("exchange", "plain")
CONTOUR_GOOD, CONTOUR_KIND = run_of("contour", "plain")
IS_DRAWS = array(DRAWS, lambda a: a.ndim == 3 and a.size > 0)
IS_PLANAR = array(DRAWS, lambda a: a.ndim == 3 and a.shape[2] == 2 and a.size > 0)
WEIGHTS = np.ones((2, 12))
IS_WEIGHTS = or_none(array(WEIGHTS, lambda a: a.shape == (2, 12) and (a >= 0).all() and (a.max(axis=1) > 0).all()))
FLAT_WEIGHTS = or_none(array(np.ones(40), lambda a: a.shape == (40,) and (a >= 0).all() and a.max() > 0))
IS_TWO = array(TWO, lambda a: a.ndim in (2, 3) and a.shape[-1] == 2 and a.size > 0)
TRUTH = kind(lambda v: hasattr(type(v), "cell_masses"))
Y_EDGES = or_none(IS_EDGES)
ON_GRID = {"draws": IS_PLANAR, "truth": TRUTH, "x_edges": IS_EDGES, "y_edges": IS_EDGES, "weights": IS_WEIGHTS}
GRID = {"draws": DRAWS, "truth": PLANAR.truth, "x_edges": EDGES, "y_edges": EDGES}
ENERGIES = np.abs(RNG.standard_normal((2, 12)))


def ess(draws, weights, method):
    """The effective sample size."""
    return diagnostics.ess(draws, weights=weights, method=method)


def pickled(suffix="npz"):
    """A file of NumPy's with an object that would leave a file where it is read, in place of the run's draws."""

    class Leaves:
        def __reduce__(self):
            return os.mkdir, ("left_by_a_pickle",)

    buffer = io.BytesIO()
    np.savez(buffer, **{"format": np.array("x"), "draws": np.array([Leaves()], object)})
    return buffer.getvalue()


@functools.cache
def saved(suffix):
    """The files of a run saved in a format, by name, and the run."""
    run = runs()["exchange"]
    place = Path(f"run{suffix}")
    with temporary_folder(place.name):
        run.save(place)
        return {str(file): file.read_bytes() for file in [place, *place.rglob("*")] if file.is_file()}


def load_damaged(suffix, damage):
    """Load a saved run of which one file was damaged; whatever is loaded must be what was saved."""
    files = saved(suffix)
    names = sorted(name for name in files if not name.endswith((".zmetadata", ".zattrs")))  # what ``load`` reads
    name = names[int(damage[0] * len(names)) % len(names)]
    with temporary_folder(f"run{suffix}"):
        for file, content in files.items():
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_bytes(damaged(content, damage) if file == name else content)
        back = toolkit.load(f"run{suffix}")
    run = runs()["exchange"]
    assert all(
        np.array_equal(getattr(run, field), getattr(back, field)) for field in ("draws", "steps", "weights", "init")
    )
    return back.seed


def damaged(content, damage):
    """Bytes cut off, or with bits turned over, or others altogether."""
    _, way, place = damage
    at = int(place * len(content)) % max(1, len(content))
    if way == "cut":
        return content[:at]
    if way == "flip" and content:
        return content[:at] + bytes([content[at] ^ (1 << (at % 8))]) + content[at + 1 :]
    return {"pickle": pickled(), "text": b"no run", "empty": b""}.get(way, content)


SHARES = st.floats(0.0, 1.0, exclude_max=True)
DAMAGE = {
    suffix: kind(lambda v: isinstance(v, tuple))._replace(
        wrong=st.tuples(
            st.just(0.0), st.sampled_from(["text", "empty", "pickle"] + (["cut"] if suffix != ".zarr" else [])), SHARES
        ),
        odd=st.tuples(SHARES, st.sampled_from(["flip", "flip", "cut"]), SHARES),
    )
    for suffix in FORMATS
}
COORDINATES = kind(
    lambda v: (
        isinstance(v, list | tuple | range | np.ndarray)
        and len(v) == 2
        and all(map(is_whole, v))
        and min(v) >= 0
        and v[0] != v[1]
    )
)


def run_with_histogram(coordinates):
    """A run in the plane with a histogram of two coordinates."""
    histogram = accumulators.histogram(EDGES, EDGES, coordinates=coordinates)
    return toolkit.sample(
        PLANAR, samplers.sgld(0.1), n_steps=5, seed=0, accumulators={"h": histogram}, threads=1
    ).n_steps


PATHS = kind(lambda v: False, st.sampled_from(
    ["", ".", "/", "run", "run.txt", "\0.npz", "nowhere/run.npz", "/dev/null", "/dev/null/run.npz",
        "x" * 300 + ".npz", ".npz", b"run.npz",
     "/proc/nothing/run.nc", "../nowhere/run.zarr", "a\0b.nc"]))  # fmt: skip


def save_run(path):
    """Save a run; the path must be refused, and nothing be left."""
    runs()["exchange"].save(path)


def save_and_clear(path=None):
    """Save a run where it may be saved."""
    with temporary_folder("run.npz"):
        save_run("run.npz" if path is None else path)


def load_run(path=None, problem=None):
    """Load a run from where there is one, or from ``path``."""
    with temporary_folder("run.npz"):
        save_run("run.npz")
        return toolkit.load("run.npz" if path is None else path, problem).seed


def open_stored(path=None):
    """Open a stored run where there is one, or at ``path``."""
    with temporary_folder("run.zarr"):
        save_run("run.zarr")
        return toolkit.open_run("run.zarr" if path is None else path).n_chains


def stored_method(name, argument):
    """A method of a stored run with an argument."""
    with temporary_folder("run.zarr"):
        save_run("run.zarr")
        getattr(toolkit.open_run("run.zarr"), name)(argument)


def is_interval(value):
    """Whether it is two increasing numbers."""
    ends = list(value) if isinstance(value, range) else value
    return numbers(number(-1e100, 1e100)).takes(ends) and len(ends) == 2 and ends[0] < ends[1]


def is_curve(value):
    """Whether it is increasing points and densities."""
    rises = array(np.ones((2, 1)), lambda a: a.ndim == 2 and len(a) == 2 and (np.diff(a[0]) > 0).all())
    return rises.takes(value) and (np.asarray(value)[1] >= 0).all()


def axes():
    """Somewhere to draw."""
    plt.close("all")
    return plt.subplots()[1]


def save_figure(figure=None, table=({"a": 1.0},), out=Path("figures"), name="figure"):
    """Save a figure in a folder."""
    with temporary_folder("figures"):
        try:
            figures.save(plt.figure(figsize=(0.5, 0.5)) if figure is None else figure, table, out, name)
        finally:
            plt.close("all")


NO_NAMES = ["../x", "a/b", "/tmp/x", "", ".", "..", "x" * 300, "a\0"]
CALLS = [
    Call("toolkit.diagnostics.exchange.barrier", diagnostics.barrier, {"swap_rates": [0.2, 0.5]},
        {"swap_rates": IS_RATES}),
    Call("toolkit.diagnostics.exchange.expected_round_trips", diagnostics.expected_round_trips, {"swap_rates": [0.2,
        0.5], "n_attempts": 10.0},
         {"swap_rates": IS_RATES, "n_attempts": NOT_NEGATIVE, "scheme": choice("deo", "seo")}),
    Call("toolkit.diagnostics.exchange.log_normaliser_ratio", diagnostics.log_normaliser_ratio,
         {"energies": np.ones((2, 2, 5)), "temperatures": (1.0, 2.0)},
         {"energies": array(np.ones((2, 2, 5)), lambda a: a.ndim == 3 and a.shape[1] == 2 and a.size),
             "temperatures": numbers(POSITIVE)},
         {"temperatures": "energies"}),
    Call("toolkit.accumulators.grid_kl.cell_counts",
         diagnostics.cell_counts, {"draws": TWO, "x_edges": EDGES, "y_edges": EDGES},
         {"draws": array(TWO, lambda a: a.ndim == 2 and a.shape[1] == 2), "x_edges": IS_EDGES, "y_edges": IS_EDGES,
             "weights": FLAT_WEIGHTS},
         {"y_edges": "draws"}),
    Call("toolkit.accumulators.grid_kl.kl_divergence",
         diagnostics.kl_divergence, {"counts": np.ones((4, 4)), "masses": MASSES},
         {"counts": array(np.ones((4, 4)), lambda a: a.shape == (4, 4) and (a >= 0).all()), "masses": IS_GRID,
             "total": or_none(number(16.0, ends="["))},
         {"masses": "counts"}),
    Call("toolkit.accumulators.grid_kl.kl_path", diagnostics.kl_path,
         {"draws": DRAWS, "masses": MASSES, "x_edges": EDGES, "y_edges": EDGES, "checkpoints": [6, 12]},
         {"draws": array(DRAWS, lambda a: a.ndim == 3 and a.shape[1] == 12 and a.shape[2] == 2 and len(a)),
             "masses": IS_GRID,
          "x_edges": array(EDGES, lambda a: a.shape == (5,) and (np.diff(a) > 0).all()),
          "y_edges": array(EDGES, lambda a: a.shape == (5,) and (np.diff(a) > 0).all()), "weights": IS_WEIGHTS,
          "checkpoints": or_none(array([6, 12],
              lambda a: a.dtype.kind in "iu" and a.ndim == 1 and a.size and a[0] >= 1 and a[-1] <= 12 and (np.diff(
                  a) > 0).all()))},
         {"x_edges": "masses", "y_edges": "masses draws", "draws": "checkpoints"}),
    Call("toolkit.accumulators.grid_kl.expected_kl",
         diagnostics.expected_kl, {"masses": MASSES, "n_draws": 10}, {"masses": IS_MASSES,
        "n_draws": count(1)}),
    Call("toolkit.accumulators.grid_kl.equivalent_draws", diagnostics.equivalent_draws, {"kl": 0.1, "masses": MASSES},
         {"kl": array(0.1, lambda a: True), "masses": IS_MASSES}),
    Call("toolkit.accumulators.grid_kl.cell_ess",
         diagnostics.cell_ess, GRID, ON_GRID, {"x_edges": "y_edges", "truth": "masses"}),
    Call("toolkit.accumulators.grid_kl.grid_kl",
         diagnostics.grid_kl, GRID, {**ON_GRID, "n_effective": or_none(POSITIVE)},
        {"truth": "masses"}),
    Call("toolkit.diagnostics.convergence.autocorrelation", diagnostics.autocorrelation, {"draws": DRAWS},
        {"draws": IS_DRAWS, "n_lags": or_none(count(0, 12))}),
    Call("toolkit.diagnostics.convergence.ess", ess, {"draws": DRAWS, "weights": None, "method": "bulk"},
         {"draws": IS_DRAWS, "weights": IS_WEIGHTS, "method": choice("bulk", "tail", "mean", "median", "sd")}),
    Call("toolkit.diagnostics.convergence.ess_by_cutoff", diagnostics.ess_by_cutoff, {"draws": DRAWS}, {
        "draws": IS_DRAWS, "mean": or_none(array([0.0, 0.0], lambda a: a.shape == (2,))),
        "variance": or_none(array([1.0, 1.0], lambda a: a.shape == (2,) and (a > 0).all())), "cutoff": OPEN_SHARE}),
    Call("toolkit.diagnostics.convergence.r_hat",
         diagnostics.r_hat, {"draws": DRAWS}, {"draws": IS_DRAWS, "weights": IS_WEIGHTS}),
    Call("toolkit.diagnostics.superchains.nested_r_hat",
         diagnostics.nested_r_hat, {"draws": DRAWS, "n_superchains": len(DRAWS)},
         {"draws": IS_DRAWS, "n_superchains": count(2, len(DRAWS) + 1)}, {"n_superchains": "draws"}),
    Call("toolkit.diagnostics.energies.energy_histogram", diagnostics.energy_histogram, {"energies": ENERGIES,
        "edges": EDGES}, {
        "energies": array(ENERGIES, lambda a: a.ndim == 2 and a.size > 0), "edges": IS_EDGES, "weights": IS_WEIGHTS,
            "truth": or_none(TRUTH)}),
    Call("toolkit.diagnostics.energies.energy_probabilities", diagnostics.energy_probabilities, {"truth": PLANAR.truth,
        "edges": EDGES},
         {"truth": TRUTH, "edges": IS_EDGES}),
    Call("toolkit.diagnostics.energies.theta_error", diagnostics.theta_error, CONTOUR_GOOD, {**CONTOUR_KIND,
        "truth": or_none(TRUTH)}),
    Call("toolkit.diagnostics.modes.mode_coverage", diagnostics.mode_coverage, {"draws": DRAWS, "centres": [[0.0,
        0.0]]}, {
        "draws": IS_PLANAR, "centres": array([[0.0, 0.0]], lambda a: a.ndim == 2 and a.shape[1] == 2 and len(a)),
            "threshold": number(0.0, ends="["),
        "weights": IS_WEIGHTS}, {"draws": "centres"}),
    Call("toolkit.diagnostics.modes.mode_weights_error", diagnostics.mode_weights_error, {"draws": DRAWS,
        "truth": PLANAR.truth}, {
        "draws": IS_PLANAR, "truth": TRUTH, "weights": IS_WEIGHTS, "assign": choice("memberships", "nearest")},
            {"draws": "truth centres"}),
    Call("toolkit.diagnostics.distances.mmd", diagnostics.mmd, {"draws": TWO, "others": TWO[::-1]}, {
        "draws": IS_TWO, "others": IS_TWO, "weights": FLAT_WEIGHTS, "other_weights": FLAT_WEIGHTS,
            "bandwidth": or_none(POSITIVE), "unbiased": flag()},
        {"draws": "others"}),
    Call("toolkit.diagnostics.distances.wasserstein", diagnostics.wasserstein, {"draws": TWO, "others": TWO[::-1]}, {
        "draws": IS_TWO, "others": IS_TWO, "weights": FLAT_WEIGHTS, "other_weights": FLAT_WEIGHTS},
            {"draws": "others"}),
    Call("toolkit.diagnostics.stein_discrepancy.ksd", diagnostics.ksd, {"draws": TWO, "problem": PLANAR}, {
        "draws": IS_TWO, "weights": FLAT_WEIGHTS, "scale": POSITIVE, "beta": number(-1.0, 0.0),
            "temperature": POSITIVE, "unbiased": flag()}),
    Call("toolkit.diagnostics.exchange.exchange_summary", diagnostics.exchange_summary, EXCHANGE_GOOD, EXCHANGE_KIND),
    Call("toolkit.diagnostics.exchange.round_trips", diagnostics.round_trips, EXCHANGE_GOOD, EXCHANGE_KIND),
    Call("toolkit.diagnostics.exchange.swap_rates", diagnostics.swap_rates, EXCHANGE_GOOD, EXCHANGE_KIND),
    # accumulators
    Call("toolkit.accumulators.running_moments.moments", accumulators.moments),
    Call("toolkit.accumulators.energies.best_point", accumulators.best_point),
    Call("toolkit.accumulators.energies.energy_histogram", accumulators.energy_histogram, {"edges": EDGES},
        {"edges": IS_EDGES}),
    Call("toolkit.accumulators.running_moments.batch_means",
         accumulators.batch_means, {}, {"n_batches": count(4, idle=False)}),
    Call("toolkit.accumulators.cells.histogram", accumulators.histogram, {"x_edges": EDGES, "y_edges": EDGES},
         {"x_edges": IS_EDGES, "y_edges": Y_EDGES, "coordinates": COORDINATES}),
    Call("toolkit.accumulators.grid_kl.kl", accumulators.kl, {"truth": PLANAR.truth, "x_edges": EDGES, "y_edges": EDGES,
        "at": [5, 10]}, {
        "truth": TRUTH, "x_edges": IS_EDGES, "y_edges": IS_EDGES, "coordinates": COORDINATES,
        "at": array([5, 10],
            lambda a: a.dtype.kind in "iu" and a.ndim == 1 and a.size and a[0] >= 1 and (np.diff(a) > 0).all())},
        {"coordinates": "truth"}),
    Call("toolkit.accumulators.chain_tree.pooled", accumulators.pooled, {"accumulator": accumulators.moments()},
         {"accumulator": instance(PoolableAccumulator, Kl)}),
    Call("toolkit.accumulators.cells.histogram of coordinates that are not there",
         run_with_histogram, {"coordinates": (0, 1)},
         {"coordinates": kind(lambda v: False, st.tuples(st.integers(2), st.integers(0, 1)))}),
    # files
    Call("toolkit._output.run.Run.save", save_and_clear, {},
        {"path": PATHS._replace(wrong=PATHS.wrong.filter(lambda v: v is not None))}),
    Call("toolkit._output.run.load", load_run, {},
        {"path": PATHS._replace(wrong=PATHS.wrong.filter(lambda v: v is not None)),
                                               "problem": or_none(instance(Problem, Target))}),
    Call("toolkit._distributed.stored_run.open_run", open_stored, {},
        {"path": PATHS._replace(wrong=PATHS.wrong.filter(lambda v: v is not None))}),
    Call("toolkit._distributed.stored_run.StoredRun.load", lambda problem: stored_method("load", problem),
        {"problem": None}, {"problem": or_none(instance(Problem, Target))}),
    Call("toolkit._distributed.stored_run.StoredRun.summary", lambda client: stored_method("summary", client),
        {"client": None}, {"client": kind(lambda v: v is None)}),
    *[Call(f"toolkit._output.run.load of a damaged {suffix}", functools.partial(load_damaged, suffix), {"damage": (0.0,
        "none", 0.0)},
           {"damage": DAMAGE[suffix]}, {"damage": "holds"}) for suffix in FORMATS],
    Call("toolkit._output.run.Run.to_inference_data", lambda names: runs()["plain"].to_inference_data(names),
         {"names": None}),
    Call("toolkit._output.run.Run.to_datatree", lambda names: runs()["plain"].to_datatree(names), {"names": None}),
    # pictures
    Call("figures.plots.densities.density", figures.density, lambda: {"source": TWO, "axes": axes(), "x_edges": EDGES,
        "y_edges": EDGES}, {
        "source": kind(lambda v: False, array(TWO,
            lambda a: (a.ndim > 1 and a.shape[-1] == 2 and a.size) or a.shape == (4, 4)).wrong.filter(
            lambda v: not (type(v) is np.ndarray and v.shape == ()))), "axes": kind(lambda v: False),
        "x_edges": IS_EDGES, "y_edges": IS_EDGES, "shape": or_none(instance(shapes.Shape)),
            "highest": or_none(POSITIVE)}),
    Call("figures.plots.trajectories.trajectory",
         lambda path, axes, chain, breaks, colours: figures.trajectory(path, axes,
        chain=chain, breaks=breaks, colours=colours),
         lambda: {"path": TWO, "axes": axes(), "chain": 0, "breaks": None, "colours": None}, {
             "path": array(TWO, lambda a: a.ndim == 2 and a.shape[1] == 2), "axes": kind(lambda v: False),
             "chain": count(0, 1), "colours": or_none(array(np.ones(40), lambda a: a.shape == (40,))),
             "breaks": kind(lambda v: v is None or (isinstance(v,
                 np.ndarray) and v.dtype == bool and v.shape == (40,)))}, {"path": "breaks colours"}),
    Call("figures.plots.overview.overview", draw_overview, lambda: {"run": runs()["plain"], "figure": None},
         {"run": instance(toolkit.Run), "figure": kind(lambda v: v is None)}),
    Call("figures.plots.fits.fit of data", draw_fit,
         lambda: {"series": fitted()[0], "ensemble": fitted()[1], "figure": None, "level": 0.9},
         {"series": instance(sysid.Series), "ensemble": instance(sysid.Ensemble), "figure": kind(lambda v: v is None),
          "level": OPEN_SHARE}),
    Call("figures.plots.term_intervals.terms of estimates", draw_terms,
         lambda: {"source": fitted()[2], "figure": None, "least": 0.5},
         {"source": instance(sysid.Estimates), "figure": kind(lambda v: v is None),
          "least": number(0.0, 1.0, ends="[]")}),
    Call("figures.plots.posteriors.posterior",
         lambda source, axes, coordinate, weights, method, limits, bins, bandwidth,
        each_chain, truth, true_value: figures.posterior(source, axes, coordinate=coordinate, weights=weights,
        method=method, limits=limits, bins=bins, bandwidth=bandwidth, each_chain=each_chain, truth=truth,
        true_value=true_value),
         lambda: {"source": DRAWS, "axes": axes(), "coordinate": 0, "weights": None, "method": "kernel",
             "limits": (-4.0, 4.0), "bins": 9, "bandwidth": None, "each_chain": True, "truth": None,
             "true_value": None}, {
             "source": array(DRAWS, lambda a: a.ndim in (2, 3) and a.size), "axes": kind(lambda v: False),
             "coordinate": count(0, 2), "weights": IS_WEIGHTS, "method": choice("kernel", "histogram"),
             "limits": kind(lambda v: v is None or is_interval(v)), "bins": count(1, 2**16),
             "bandwidth": or_none(number(0.02, ends="[")), "each_chain": flag(),
             "truth": kind(lambda v: v is None or callable(v) or is_curve(v)), "true_value": or_none(number())},
         {"source": "weights coordinate", "limits": "bandwidth"}),
    Call("figures.plots.phase_portraits.phase_portrait", lambda source, axes, coordinates, field, parameters, limits:
        figures.phase_portrait(source, axes, coordinates=coordinates, field=field, parameters=parameters,
        limits=limits),
         lambda: {"source": TWO, "axes": axes(), "coordinates": None, "field": PREDATORS, "parameters": None,
             "limits": None}, {
             "source": kind(lambda v: isinstance(v, System) or IS_TWO.takes(v), IS_TWO.wrong),
             "axes": kind(lambda v: False),
             "coordinates": kind(lambda v: v is None or (isinstance(v, tuple | list | range) and len(v) == 2 and all(
                 is_whole(k) and 0 <= k < 2 for k in v))),
             "field": kind(lambda v: v is None or callable(v)),
             "parameters": or_none(array(PREDATORS.usual, lambda a: a.shape == PREDATORS.usual.shape)),
             "limits": kind(lambda v: v is None or (isinstance(v, tuple | list | range) and len(v) == 2
                 and all(map(is_interval, v))))}, {"source": "coordinates", "field": "parameters"}),
    Call("figures.plots.theta_spectra.theta_spectrum", lambda source, axes, edges, truth: figures.theta_spectrum(source,
        axes, edges=edges, truth=truth),
         lambda: {"source": np.ones((3, 4)), "axes": axes(), "edges": EDGES, "truth": None}, {
             "source": array(np.ones((3, 4)), lambda a: a.ndim == 2 and len(a) and a.shape[1] == 4 and (a >= 0).all()
                 and a.max(axis=1).min() > 0), "axes": kind(lambda v: False), "edges": IS_EDGES,
             "truth": or_none(array(np.ones(4), lambda a: a.shape == (4,) and (a >= 0).all() and a.max() > 0))},
         {"edges": "source"}),
    Call("figures.plots.swap_paths.swaps",
         lambda source, axes, chain, highlight, at: figures.swaps(source, axes, chain=chain,
        highlight=highlight, at=at),
         lambda: {"source": WALKERS, "axes": axes(), "chain": 0, "highlight": None, "at": None}, {
             "source": array(WALKERS, lambda a: a.ndim == 2 and a.shape[1] and (np.sort(a, axis=0) == np.arange(
                 len(a))[:, None]).all()), "axes": kind(lambda v: False), "chain": count(0, 1),
             "highlight": or_none(count(0, 3)), "at": or_none(array(np.ones(4), lambda a: a.shape == (4,)))},
         {"source": "at"}),
    Call("figures.plots.trace_plots.traces",
         lambda source, axes, field, replica, chains, at: figures.traces(source, axes,
        field=field, replica=replica, chains=chains, at=at),
         lambda: {"source": np.ones((2, 4)), "axes": axes(), "field": "energy", "replica": 0, "chains": None,
             "at": None}, {
             "source": array(np.ones((2, 4)), lambda a: a.ndim == 2 and a.size), "axes": kind(lambda v: False),
             "field": kind(lambda v: isinstance(v, str)), "replica": count(0, 1),
             "chains": kind(lambda v: v is None or (isinstance(v, tuple | list | range) and len(v) > 0 and all(
                 is_whole(k) and 0 <= k < 2 for k in v))),
             "at": or_none(array(np.ones(4), lambda a: a.shape == (4,)))}, {"source": "at chains"}),
    Call("figures.plots.trace_plots.traces of a run",
         lambda field, replica: figures.traces(runs()["plain"], axes(), field=field,
        replica=replica), {"field": "x[0]", "replica": 0},
        {"field": kind(lambda v: isinstance(v, str) and v == "x[0]"), "replica": count(0, 1)}),
    Call("figures.plots.tuning_rounds.tuning", figures.tuning, lambda: {"tuned": tuned(),
        "figure": mpl.figure.Figure()}, {"tuned": kind(lambda v: False), "figure": kind(lambda v: False)}),
    Call("figures.plots.style.paper_style", lambda: figures.paper_style()),
    Call("figures.plots.kl_curves.kl_curve", lambda at, path, axes, label, level: figures.kl_curve(at, path, axes,
        label=label, level=level),
         lambda: {"at": [1, 2], "path": np.ones((3, 2)), "axes": axes(), "label": "KL", "level": 0.95}, {
             "at": array([1, 2], lambda a: a.shape == (2,)), "path": array(np.ones((3, 2)),
                 lambda a: a.ndim == 2 and len(a) > 1 and a.shape[1] == 2),
             "axes": kind(lambda v: False), "label": text(), "level": OPEN_SHARE}, {"at": "path"}),
    Call("figures.scripts.output.save", save_figure, {}, {
        "figure": kind(lambda v: v is None), "table": kind(lambda v: False), "out": kind(lambda v: isinstance(v, Path)),
        "name": kind(lambda v: isinstance(v, str), st.just(1))._replace(odd=None)}),
    Call("figures.scripts.output.save elsewhere", lambda name: save_figure(name=name), {"name": "figure"},
         {"name": kind(lambda v: isinstance(v, str) and v not in NO_NAMES, st.sampled_from(NO_NAMES))}),
]  # fmt: skip
