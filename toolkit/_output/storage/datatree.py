"""A run as an xarray DataTree in the schema that ArviZ reads, both 0.23 and 1.x."""

import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import weighting
from ..._engine.run_record import RunRecord, fold
from ...errors import ContourWarning, Unavailable, UnavailableError, optional, warn_user
from ...maths.seeds import RESAMPLING, derived_seed
from ...problem.definition import check_names
from ...schedules import evaluate
from .run_contents import Contents, contents_of

if TYPE_CHECKING:
    import xarray

Values = NDArray[Any]


def sample_statistics(run: RunRecord) -> dict[str, tuple[tuple[str, ...], Values, str]]:
    """Variables (chain, draw) of ``run.draws``: energies, weights, steps and so on."""
    target = slice(run.sampler.n_target_replicas)
    chains, replicas, draws = run.replica_draws[:, target].shape[:3]
    shape, dims = (chains, replicas, draws), ("chain", "draw")
    entries: dict[str, tuple[Values, str]] = {}
    energies, source = energies_of(run)
    if energies is not None:
        entries["energy"] = (energies[:, target], f"U, −log density + a constant, in nats; {source}")
    weights = np.broadcast_to(1.0, shape) if run.replica_weights is None else run.replica_weights[:, target]
    entries["weight"] = (weights, "importance weight, up to a factor of each chain")
    factors = evaluate(run.sampler.schedule, run.steps, run.total_steps) if can_evaluate(run) else None
    for i, name in enumerate(("step_size", "temperature")):
        if factors is not None:
            base = np.broadcast_to(run.sampler.arrays[f"{name}s"], (chains, run.sampler.n_replicas))[:, target]
            constant = bool((factors[i] == 1.0).all())
            values = np.broadcast_to(base[:, :, None], shape) if constant else base[:, :, None] * factors[i]
            entries[name] = (values, "at the draw's step, the schedule's factor included")
    diverged = run.counts.status[:, target, None]
    diverging = (diverged > 0) & (run.steps >= diverged - 1)
    entries["diverging"] = (diverging, "not finite, from the step on at which the replica diverged")
    entries["step"] = (np.broadcast_to(run.steps, shape), "the step after which the draw was taken, from 0")
    entries["replica"] = (np.broadcast_to(np.arange(replicas)[None, :, None], shape), "which replica of the chain")
    if run.statistics is not None:
        walker, swaps, reflections = (values[:, target] for values in run.statistics)
        before = np.concatenate([np.zeros((chains, replicas, 1), swaps.dtype), swaps[:, :, :-1]], axis=2)[:, :, :draws]
        entries["walker"] = (walker, "the replica whose first state sits on this rung")
        entries["swap_accepted"] = (
            swaps > before,
            "a swap since the draw before; the first: since the end of burn-in",
        )
        entries["reflections"] = (reflections, "reflections, or moves taken back, since the start")
    return {name: (dims, fold(values), description) for name, (values, description) in entries.items()}


def can_evaluate(run: RunRecord) -> bool:
    """Whether the schedule can be evaluated; a user's own schedule of a loaded run cannot."""
    try:
        evaluate(run.sampler.schedule, run.steps[:1], run.total_steps)
    except UnavailableError:
        return False
    return True


def energies_of(run: RunRecord) -> tuple[Values | None, str]:
    """Energies (chain, replica, draw): those kept, or evaluated at the draws; None where neither is possible.

    Not evaluated if the target draws minibatches, calls Python, or is unavailable, as in a loaded run.
    """
    target = run.problem.target
    if run.energies is not None:
        return run.energies, "as kept by the run"
    is_unavailable = isinstance(target.energy_gradient, Unavailable) or target.callback is not None
    if target.stochastic or is_unavailable or run.replica_draws.size == 0:
        return None, ""
    values = np.empty(run.replica_draws.shape[:3])
    for chain, draws in zip(values, run.replica_draws, strict=True):
        chain[:] = target.evaluate(draws.reshape(-1, target.dim))[0].reshape(chain.shape)
    return values, "evaluated at the draws"


# Groups: ArviZ's and others, and the place of each of the run's arrays in them.


class Place(NamedTuple):
    """The place of a saved array in the tree; an empty array has no group, and its dtype as ``variable``.

    folds: replicas that are interleaved along its draws, or 0. shape: of an empty array.
    """

    group: str
    variable: str
    folds: int = 0
    shape: tuple[int, ...] = ()


class Tree(NamedTuple):
    """Groups of variables, each (dimensions, values, description), and the place of each of the run's arrays."""

    groups: dict[str, dict[str, tuple[tuple[str, ...], Values, str]]]
    coordinates: dict[str, dict[str, tuple[tuple[str, ...], Any]]]
    places: dict[str, Place]


def values_of(run: RunRecord, draws: Values) -> Values:
    """What ``draws`` (…, dim) of ``run`` stand for: parameters of problems that have some, else themselves."""
    named = run.problem._named()
    return draws if named is None or named.values is None else named.values(draws)


def has_other_positions(run: RunRecord) -> bool:
    """Whether draws stand for other numbers, so that the positions themselves have a place of their own."""
    named = run.problem._named()
    return named is not None and named.values is not None


def build_groups(run: RunRecord, contents: Contents, first_chain: int = 0, *, warns: bool = True) -> Tree:
    """ArviZ's groups, further ones, and the group ``run`` with all arrays that have no place in the others.

    first_chain: of a run that holds a part of the chains of another. warns: where there is no group 'posterior'.
    """
    tree = Tree({}, {}, {})
    folds = run.sampler.n_target_replicas
    kept_all = run.replica_draws.shape[1] > folds
    name = "weighted_posterior" if run.replica_weights is not None else "posterior"
    statistics = "sample_stats" if name == "posterior" else "weighted_sample_stats"
    draws = values_of(run, run.draws)
    tree.groups[name] = {"x": (("chain", "draw", "x_dim"), draws, "draws of the target")}
    tree.groups[statistics] = sample_statistics(run)
    if not kept_all:
        tree.places["replica_draws"] = Place(name, "x", folds)
        if run.energies is not None:
            tree.places["energies"] = Place(statistics, "energy", folds)
        if run.replica_weights is not None:
            tree.places["replica_weights"] = Place(statistics, "weight", folds)
    if run.replica_weights is not None:
        add_resampled(run, tree, draws, first_chain, warns=warns)
    if kept_all:
        add_replicas(run, tree)
    if has_other_positions(run):
        dims, description = ("chain", "replica", "draw", "u_dim"), "positions that were sampled, for toolkit.load"
        tree.groups["positions"] = {"u": (dims, run.replica_draws, description)}
        tree.places["replica_draws"] = Place("positions", "u")
    add_constants(run, tree)
    add_contour_and_trace(run, tree)
    add_accumulated(run, tree)
    add_rest(run, contents, tree)
    for group, variables in tree.groups.items():
        tree.coordinates.setdefault(group, {})
        used = {d: n for dims, values, _ in variables.values() for d, n in zip(dims, values.shape, strict=True)}
        for d in ("chain", "draw", "replica"):
            if d in used and group not in ("constant_data", "run"):
                tree.coordinates[group].setdefault(d, ((d,), np.arange(used[d])))
    return tree


def add_resampled(run: RunRecord, tree: Tree, draws: Values, first_chain: int, *, warns: bool) -> None:
    """``posterior`` and ``sample_stats`` of a weighted run: as many equally weighted draws, made by resampling."""
    weights = run.weights
    has_weights = np.isfinite(weights).all(axis=1) & (weights.max(axis=1, initial=0.0) > 0.0)
    has_none = not has_weights.all() or weights.size == 0
    if has_none and warns:
        warn_user(
            "the tree has no group 'posterior': "
            + (
                f"chain {int(np.argmin(has_weights))} has no draw with a weight above 0"
                if weights.size
                else "the run has no draws"
            )
            + ", so no equally weighted draws can be made; what there is, is in 'weighted_posterior'",
            ContourWarning,
        )
    if has_none:
        return
    indices = np.broadcast_to(np.arange(weights.shape[1], dtype=np.float64)[None, :, None], (*weights.shape, 1))
    bits = np.random.PCG64(resample_seed(run))
    bits.advance(first_chain)  # one number for each chain before
    shares = weighting.check_weights(weights)
    resampler = np.random.Generator(bits)
    picked = weighting.systematic(indices, shares, weights.shape[1], resampler)[:, :, 0].astype(np.int64)
    description = "draws of 'weighted_posterior', resampled by their weights so that all count alike"
    resampled = np.take_along_axis(draws, picked[:, :, None], axis=1)
    tree.groups["posterior"] = {"x": (("chain", "draw", "x_dim"), resampled, description)}
    tree.groups["sample_stats"] = {
        name: (dims, np.take_along_axis(np.asarray(values), picked, axis=1), description)
        for name, (dims, values, description) in tree.groups["weighted_sample_stats"].items()
    }
    tree.groups["sample_stats"]["source_draw"] = (("chain", "draw"), picked, "the draw in 'weighted_posterior'")


def resample_seed(run: RunRecord) -> int:
    """The seed by which weighted draws are resampled."""
    return derived_seed(run.seed, RESAMPLING)


def add_replicas(run: RunRecord, tree: Tree) -> None:
    """``replicas``: draws of all temperatures, if all were kept."""
    dims = ("chain", "replica", "draw")
    values = values_of(run, run.replica_draws)
    group: dict[str, Any] = {"x": ((*dims, "x_dim"), values, "draws of every replica")}
    tree.places["replica_draws"] = Place("replicas", "x")
    for name, variable in (("energies", "energy"), ("replica_weights", "weight")):
        values = getattr(run, name)
        if values is not None:
            group[variable] = (dims, values, f"{variable} of every draw")
            tree.places[name] = Place("replicas", variable)
    if run.statistics is not None:
        for name, values in run.statistics._asdict().items():
            group[name] = (dims, values, "see Statistics")
            tree.places[f"statistics.{name}"] = Place("replicas", name)
    tree.groups["replicas"] = group
    temperatures = run.sampler.arrays["temperatures"]
    temperature_dims = ("replica",) if temperatures.ndim == 1 else ("chain", "replica")
    tree.coordinates["replicas"] = {"temperature": (temperature_dims, temperatures)}


def add_constants(run: RunRecord, tree: Tree) -> None:
    """``constant_data``: the start, the target's numbers and the domain's tables."""
    last = "u_dim" if has_other_positions(run) else "x_dim"
    group: dict[str, Any] = {"init": (("chain", "start", last), run.init, "where every replica started")}
    tree.places["init"] = Place("constant_data", "init")
    path = "description.problem"
    if run.problem.target.callback is None:
        values, description = run.problem.target.parameters, "the target's numbers"
        group["target_parameters"] = (("parameter",), values, description)
        tree.places[f"{path}.target.parameters"] = Place("constant_data", "target_parameters")
    if run.problem.domain is not None:
        domain = run.problem.domain
        tables: dict[str, Any] = {"real": domain.float_table, "whole": domain.int_table}  # by their names in files
        for name, values in tables.items():
            group[f"domain_{name}"] = ((f"domain_{name}_entry",), values, "the domain's table for the engine")
            tree.places[f"{path}.domain.{name}"] = Place("constant_data", f"domain_{name}")
    tree.groups["constant_data"] = group


def add_contour_and_trace(run: RunRecord, tree: Tree) -> None:
    """``contour``: the partition, θ and visits; ``trace``."""
    if run.partition is not None:
        dims = ("chain", "bin")
        tree.groups["contour"] = {
            "edges": (("edge",), run.partition.edges, "edges of the bins of energy, in nats"),
            "theta": (dims, run.counts.theta, "θ at the end"),
            "earlier_theta": (dims, run.counts.earlier_theta, "θ on the way"),
            "visits": (dims, run.counts.visits, "steps in each bin"),
        }
        for name in ("theta", "earlier_theta", "visits"):
            tree.places[f"counts.{name}"] = Place("contour", name)
    if run.trace is not None:
        tree.groups["trace"] = {}
        for i, (name, values) in enumerate(run.trace.fields.items()):
            variable = unique_name(name, tree.groups["trace"])
            tree.groups["trace"][variable] = (("chain", "replica", "time"), values, "recorded after each of the steps")
            tree.places[f"trace.fields[{i}]"] = Place("trace", variable)
        if run.trace.theta is not None:
            tree.groups["trace"]["theta"] = (("chain", "time", "bin"), run.trace.theta, "θ")
            tree.places["trace.theta"] = Place("trace", "theta")
        tree.coordinates["trace"] = {"step": (("time",), run.trace.steps)}
        tree.places["trace.steps"] = Place("trace", "step")


def unique_name(name: str, used: Any) -> str:
    """``name`` changed so that files can hold it and it is not in ``used``."""
    safe = name.replace("/", "|").replace("\0", "").strip(". ") or "unnamed"
    while safe in used or safe in ("theta", "step"):
        safe += "_"
    return safe


def add_rest(run: RunRecord, contents: Contents, tree: Tree) -> None:
    """``run``: the arrays that have no place yet, mainly counts."""
    group: dict[str, Any] = {}
    for name, array in contents.arrays.items():
        if name in tree.places:
            continue
        if array.size == 0:  # only its dtype and shape are written
            tree.places[name] = Place("", array.dtype.str, shape=array.shape)
            continue
        variable = unique_name(name, group)
        dims = tuple(f"{variable}_dim_{i}" for i in range(array.ndim))
        if name.startswith("statistics."):
            dims = ("chain", *dims[1:])
        if name.startswith("counts."):
            replicas, pairs = run.counts.status.shape[1], run.counts.attempted.shape[1]
            by_pair = name.rpartition(".")[2] in ("attempted", "accepted", "correction")
            size = array.shape[1] if array.ndim == 2 else 0
            second = "pair" if by_pair and size == pairs else "replica" if size == replicas else dims[-1]
            dims = ("chain", second)[: array.ndim]
        group[variable] = (dims, array, name)
        tree.places[name] = Place("run", variable)
    tree.groups["run"] = group


def add_accumulated(run: RunRecord, tree: Tree) -> None:
    """``accumulated``: the accumulators' results, one variable for each array."""
    entries: dict[str, Any] = {}
    for name, result in run.accumulated.items():
        fields = result._asdict() if hasattr(result, "_asdict") else getattr(result, "__dict__", {})
        for field, value in fields.items():
            if isinstance(value, np.ndarray | np.generic | int | float):
                array = np.asarray(value)
                variable = unique_name(f"{name}.{field}", entries)
                entries[variable] = (
                    tuple(f"{variable}_dim_{i}" for i in range(array.ndim)),
                    array,
                    f"{field} of {name}",
                )
    tree.groups["accumulated"] = entries


LONGEST_ATTRIBUTE = 32_000  # bytes; netCDF holds 64 KB of them


def to_datatree(run: RunRecord, names: Sequence[str] | None = None) -> "xarray.DataTree":
    """``run`` as ``Run.to_datatree`` explains it."""
    contents = contents_of(run)
    return build_tree(run, build_groups(run, contents), contents, names)


def for_arviz(tree: "xarray.DataTree") -> Any:
    """A tree in the form that the ArviZ which is installed works on. Raises ImportError where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it becomes in later versions
        arviz = optional("arviz", "arviz")
    return arviz.from_datatree(tree) if hasattr(arviz, "from_datatree") else tree


def build_tree(run: RunRecord, tree: Tree, contents: Contents, names: Sequence[str] | None) -> "xarray.DataTree":
    """The tree as xarray's, with its attributes."""
    xarray = optional("xarray", "io")
    attributes = attributes_of(run, contents)
    sets = {"/": xarray.Dataset(attrs=attributes)}
    named = run.problem._named()
    if names is None and named is not None:
        names = named.names
    labels = None if names is None else list(check_names(names, run.problem.target.dim))
    for group, variables in tree.groups.items():
        if not variables:
            continue
        coordinates: dict[str, Any] = dict(tree.coordinates.get(group, {}))
        if any("x_dim" in dims for dims, _, _ in variables.values()):
            coordinates["x_dim"] = (("x_dim",), np.arange(run.problem.target.dim) if labels is None else labels)
        extra = (
            {"resample_seed": str(resample_seed(run))}
            if group == "posterior" and run.replica_weights is not None
            else {}
        )
        schema = ("inference_library", "inference_library_version", "created_at", "sampling_time", "tuning_steps")
        sets[group] = xarray.Dataset(
            {
                name: (dims, values, {"description": description})
                for name, (dims, values, description) in variables.items()
            },
            coords=coordinates,
            attrs={**{name: attributes[name] for name in schema}, **extra},
        )
    return xarray.DataTree.from_dict(sets)


def attributes_of(run: RunRecord, contents: Contents) -> dict[str, Any]:
    """Attributes: all that is needed to repeat the run, and those of ArviZ's schema."""
    header = json.loads(contents.header)
    attributes = {
        "inference_library": "manymodes",
        "inference_library_version": run.made_with.get("manymodes", "unknown"),
        "created_at": header["created_at"],
        "sampling_time": run.elapsed,
        "tuning_steps": run.burn_in,
        "problem": json.dumps(header["description"]["problem"], ensure_ascii=False),
        "sampler": json.dumps(header["description"]["sampler"], ensure_ascii=False),
        "problem_name": run.problem.name,
        "sampler_name": run.sampler.name,
        "seed": str(run.given_seed),
        **({} if run.given_seed == run.seed else {"seed_of_chains": str(run.seed)}),
        "made_with": json.dumps(run.made_with, ensure_ascii=False),
        "interrupted": int(run.interrupted),
        "elapsed": run.elapsed,
    }
    counts = ("n_steps", "total_steps", "burn_in", "thin", "sampling_steps", "gradient_evaluations")
    attributes |= {name: str(getattr(run, name)) for name in counts}
    too_long = "too long for an attribute; a saved file has it in 'header' of the group 'run'"
    return {
        name: too_long if isinstance(value, str) and len(value.encode()) > LONGEST_ATTRIBUTE else value
        for name, value in attributes.items()
    }
