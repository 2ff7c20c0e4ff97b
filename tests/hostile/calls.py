"""The public surface, which the tables of calls must cover, and the kinds of arguments by their names."""

import inspect
import os
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import strategies as st

import figures
import sysid
import targets
import toolkit
from sysid import forecasts
from sysid.discovery import compare
from sysid.likelihoods.trajectories import Trajectory
from sysid.likelihoods.velocity import Derivative
from sysid.likelihoods.weak_form import Weak
from tests.hostile.values import (
    Kind,
    array,
    choice,
    count,
    flag,
    instance,
    kind,
    number,
    numbers,
    or_none,
    text,
)
from toolkit import boundaries, schedules, tempering
from toolkit.problem.definition import Problem, Target
from toolkit.tempering.contour_tempering import StepDecay
from toolkit.tempering.exchange import AdaptedCorrection, EstimatedCorrection

POSITIVE, FREE, NOT_NEGATIVE = number(0.0), number(), number(0.0, ends="[")
PER_CHAIN = numbers(POSITIVE, single=True)
SHARE, OPEN_SHARE = number(0.0, 1.0, ends="[]"), number(0.0, 1.0)
RNG = np.random.default_rng(0)


def is_truth(value: Any) -> bool:
    """Whether it answers like a truth."""
    return all(hasattr(type(value), name) for name in ("independent_draws", "cell_masses", "memberships"))


TRUTH = Kind(is_truth, instance(StepDecay).wrong)
CORRECTION = instance(AdaptedCorrection, EstimatedCorrection)
CORRECTION = Kind(
    lambda v: v is None or isinstance(v, AdaptedCorrection | EstimatedCorrection) or NOT_NEGATIVE.takes(v),
    NOT_NEGATIVE.wrong.filter(lambda v: v is not None),
    NOT_NEGATIVE.odd,
)
TEMPERINGS = (tempering.ReplicaExchange, tempering.Contour, tempering.ContinuousTempering, tempering.Stein)

NO_FILES = ["", ".", "/", "\0", "a\0b", "nowhere/run", "/dev/null/run", "x" * 5000, "../nowhere/run"]

# Kinds by the argument's name.
COMMON: dict[str, Kind] = {
    "accumulators": or_none(kind(lambda v: isinstance(v, dict) and not v)),
    "backend": choice("cpu"),
    "dtype": choice("float64"),
    "batch_size": or_none(count(1, 2**17)),
    "bandwidth": or_none(POSITIVE),
    "boundary": instance(boundaries.Boundary),
    "burn_in": count(0, 20),
    "checkpoint": kind(
        lambda v: v is None or (isinstance(v, str | os.PathLike) and v not in NO_FILES), st.sampled_from(NO_FILES)
    ),
    "checkpoint_every": POSITIVE,
    "chains_per_task": kind(lambda v: v is None),
    "client": kind(lambda v: v is None),
    "save": kind(lambda v: v is None, st.sampled_from(["run.csv", "", "run", "nowhere/run.npz", "\0.npz", 3, b"run"])),
    "by_coordinate": flag(),
    "correction": CORRECTION,
    "decay": number(0.0, 1.0, ends="["),
    "dim": count(1, 2**17, idle=False),
    "drift_correction": flag(),
    "dynamics": instance(toolkit.dynamics.Dynamics),
    "energy_noise": NOT_NEGATIVE,
    "exploration": number(0.0, 1.0, ends="["),
    "freezes": flag(),
    "friction": NOT_NEGATIVE,
    "gain": POSITIVE,
    "gradient_noise": NOT_NEGATIVE,
    "inertia": POSITIVE,
    "init": or_none(array([0.0], lambda a: a.shape in [(1,), (2, 1), (2, 1, 1)])),
    "spread": or_none(instance(toolkit.Spread)),
    "interpolated": flag(),
    "keep_draws": flag(),
    "keep_energies": flag(),
    "keep_replicas": flag(),
    "keep_statistics": flag(),
    "layout": instance(toolkit.Layout),
    "n_chains": count(1, 2**32),
    "n_cycles": count(1),
    "n_replicas": count(1, 2**16, idle=False),
    "name": text(),
    "names": kind(lambda v: v is None or (isinstance(v, list | tuple) and len(v) == 1 and isinstance(v[0], str))),
    "noise_estimate": NOT_NEGATIVE,
    "on_divergence": or_none(choice("stop", "keep")),
    "partition": or_none(instance(tempering.Partition)),
    "preconditioned": flag(),
    "problem": instance(Problem, Target),
    "n_searches": count(0, 257, idle=False),
    "progress": or_none(flag()),
    "pseudo_count": POSITIVE,
    "radius": POSITIVE,
    "refresh_every": or_none(count(1)),
    "resample_every": count(1),
    "sampler": instance(toolkit.Sampler),
    "schedule": instance(schedules.Schedule),
    "scheme": choice("deo", "seo", "adjacent", "all_pairs"),
    "seed": count(0, 2**64),
    "step_size": PER_CHAIN,
    "step_sizes": numbers(POSITIVE, nested=True),
    "swap_every": count(1),
    "swap_threshold": or_none(number(0.0, 1.0, ends="]")),
    "temperature": PER_CHAIN,
    "temperatures": numbers(POSITIVE, nested=True),
    "tempers": flag(),
    "thermostat": flag(),
    "thin": count(1, 21),
    "threads": or_none(count(1, idle=False)),
    "trace_every": or_none(count(1, 21)),
    "truth": or_none(TRUTH),
    "until": or_none(instance(toolkit.stopping.Condition)),
    "window": count(1),
    "zeta": NOT_NEGATIVE,
}


def name_of(function: Any) -> str:
    """Module and name of a function, or of a method's class and its name."""
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"


# Classes that no public module lists, but of which public functions of sysid make objects with methods.
MADE = (compare.Comparison, forecasts.Histograms, Derivative, Trajectory, Weak)


def surface() -> Iterator[tuple[str, Any]]:
    """Name and object of every public function and class, and of public methods; no exceptions and no named tuples."""
    seen: set[int] = set()
    modules: list[types.ModuleType] = [toolkit, targets, sysid, figures]
    while modules:
        module = modules.pop()
        for value in [*(getattr(module, name) for name in module.__all__), *(MADE if module is sysid else ())]:
            if isinstance(value, types.ModuleType):
                modules.append(value)
            elif callable(value) and id(value) not in seen:
                seen.add(id(value))
                called = name_of(value)
                if not (inspect.isclass(value) and issubclass(value, BaseException | tuple)):
                    yield called, value
                if inspect.isclass(value):
                    for attribute, method in vars(value).items():
                        if inspect.isfunction(method) and not attribute.startswith("_"):
                            yield f"{called}.{attribute}", method


# What is public but no one calls with arguments of their own, and why.
NOT_CALLED = {
    "made by the toolkit and given to users": (
        "Chains", "PooledRun", "Report", "Run", "StepSizeReport", "StoredRun", "Tuned",
    ),
    "made by functions of sysid, which check what is in them": (
        "Discovery", "Identification", "Ensemble", "Solution", "Comparison", "Derivative", "Trajectory", "Weak",
    ),
    "numbers as the engine takes them": (
        "Sampler.per_chain", "Spread.ends", "Spread.box_of", "Target.compiled", "Dynamics.compiled",
        "Dynamics.memory_names", "Dynamics.memory_sizes", "Dynamics.n_traced_memory", "Dynamics.memory_starts",
        "Dynamics.n_friction_rows", "Dynamics.friction",
        "Contour.parameters", "ContinuousTempering.parameters", "ContinuousTempering.start",
        "ContinuousTempering.coupling", "ReplicaExchange.pairs", "ReplicaExchange.parameters",
        "Stein.parameters", "ContinuousTempering.words", "Contour.words", "ReplicaExchange.words", "Stein.words",
    ),
    "the base of temperings": ("Tempering", "Tempering.parameters", "Tempering.words"),
    "what rooms above ask of parts, with arguments that they have checked": (
        "Dynamics.in_words", "Dynamics.with_knob", "Dynamics.with_leapfrogs", "Tempering.pairs",
        "Tempering.first_correction", "Tempering.with_half_step", "Tempering.check_minibatches",
        "Tempering.check_length", "Tempering.check_noise", "Contour.check_length", "Contour.check_noise",
        "ContinuousTempering.with_half_step", "ReplicaExchange.check_length", "ReplicaExchange.check_minibatches",
        "ReplicaExchange.first_correction",
    ),
    "block functions, called by compiled code": (
        "correlated_mixture_block", "cosine9_block", "cosine25_block", "gaussian_grid_block", "gaussian_mixture_block",
    ),
    "takes nothing but self": ("StoredRun.to_datatree", "Chains.close", "Run.summary", "Run.plot"),
    "of packages that the tests do not install; see test_python_models.py": ("from_torch", "from_jax", "mnist_5k"),
    "looked at by Sampler and sample, which use it": ("Schedule",),
    "a protocol that users fulfil": (
        "Accumulator", "Accumulator.start", "Accumulator.update", "Accumulator.result",
    ),
    "drives a script": ("run_script", "produce", "script"),
    "the type of a script's data": ("Mapping",),
    "made by the functions of stopping, combined by & and |": ("Condition",),
    "given to a script": ("Study", "Study.size", "Study.sample", "Study.note"),
    "walls that the functions of targets.domains put together": ("Convex",),
}  # fmt: skip
EXCUSED = {name for names in NOT_CALLED.values() for name in names}
