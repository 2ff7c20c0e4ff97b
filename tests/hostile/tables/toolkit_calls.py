"""Good calls of everything public in ``toolkit``."""

import contextlib
import functools
import os
import tempfile

import numpy as np
from hypothesis import strategies as st

import toolkit
from targets import mixtures
from tests.hostile.calls import (
    COMMON,
    FREE,
    NOT_NEGATIVE,
    OPEN_SHARE,
    POSITIVE,
    RNG,
    SHARE,
    TEMPERINGS,
)
from tests.hostile.tables.call import Call
from tests.hostile.values import array, choice, count, flag, function, instance, kind, number, numbers, or_none
from toolkit import boundaries, dynamics, ladders, samplers, schedules, tempering, weighting
from toolkit.boundaries import rules
from toolkit.diagnostics import cycles, stopping, thermostats
from toolkit.problem.definition import Domain
from toolkit.tempering.contour_tempering import StepDecay

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
PARTITION = tempering.Partition(0.0, 0.5, 20)
RUN = {"problem": NORMAL, "sampler": samplers.sgld(0.1), "n_steps": 20, "seed": 0, "n_chains": 2, "threads": 1}
LAYOUTS = st.sampled_from(
    [toolkit.Layout(v, w) for v, w in [(0, None), (1.5, None), ("8", 1), (8, 0), (8, 2.0), (True, 1)]]
    + [toolkit.Layout(fused=v) for v in (0, 1.0, "None", [True])]
)
PARTS = {
    "layout": kind(lambda v: isinstance(v, toolkit.Layout) and v == toolkit.Layout(), LAYOUTS),
    "n_steps": count(2**44, 2**48)._replace(wrong=count(1, 2**48).wrong),
    "n_chains": count(2**31, 2**32)._replace(wrong=count(1, 2**32).wrong),
    "dynamics": kind(
        lambda v: isinstance(v, dynamics.Dynamics) and v == dynamics.langevin(),
        st.builds(dynamics.Dynamics, st.just("own"), st.one_of(st.none(), st.text(), st.integers())),
    ),
    "schedule": kind(
        lambda v: isinstance(v, schedules.Schedule) and callable(v.factors),
        st.builds(schedules.Schedule, st.just("own"), st.one_of(st.none(), st.text(), st.integers())),
    ),
}


def take_one(iterator):
    """The first chunk of a stream."""
    return next(iter(iterator))


def hold(chains):
    """Hold chains for one step."""
    with chains:
        return chains.advance(1, thin=1)


def advance_held(n_steps=2, thin=1):
    """Advance chains that are held."""
    with toolkit.chains(NORMAL, samplers.sgld(0.1), seed=0, n_chains=2, threads=1) as held:
        return held.advance(n_steps, thin=thin)


def replace_held(problem):
    """Replace the problem of chains that are held."""
    with toolkit.chains(NORMAL, samplers.sgld(0.1), seed=0, n_chains=2, threads=1) as held:
        held.advance(1)
        held.replace(problem)
        return held.energies


def save_held(path=None):
    """Save chains that are held, where they may be saved."""
    held = toolkit.chains(NORMAL, samplers.sgld(0.1), seed=0, n_chains=2, threads=1)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), held:
        held.advance(1)
        held.save("held.ckpt" if path is None else path)


def plain(position, energy, gradient, parameters, scratch):
    """U = x²/2 in every coordinate."""
    for lane in range(energy.size):
        energy[lane] = 0.0
    for d in range(position.shape[0]):
        for lane in range(energy.size):
            energy[lane] += 0.5 * position[d, lane] ** 2
            gradient[d, lane] = position[d, lane]


def of_arrays(points):
    """The same of arrays."""
    return 0.5 * (points**2).sum(axis=1), points


def of_one_point(x):
    """The same of one point in the line."""
    return 0.5 * x[0] ** 2, (x[0],)


def decorate(function, dim=1, parameters=None, name=None, truth=None):
    """``target`` with its function by name."""
    return toolkit.target(function, dim=dim, parameters=parameters, name=name, truth=truth)


EDGES = np.linspace(-2.0, 2.0, 5)
MASSES = np.full((4, 4), 1.0 / 16.0)
DRAWS = RNG.standard_normal((2, 12, 2))
TWO = RNG.standard_normal((40, 2))
CYCLE = np.repeat([0, 1], 20)


def is_row(value, kinds, holds):
    """Whether NumPy makes a row of it, of one of these kinds, for which ``holds`` does."""
    try:
        row = np.asarray(value)
    except ValueError:
        return False
    return row.ndim == 1 and row.dtype.kind in kinds and bool(holds(row))


IS_EDGES = array(EDGES, lambda a: a.ndim == 1 and a.size > 1 and (np.diff(a) > 0).all())
IS_GRID = array(MASSES, lambda a: a.shape == (4, 4) and (a >= 0).all() and 0 < a.sum() <= 1 + 1e-6)
IS_MASSES = array(MASSES, lambda a: a.size > 0 and (a >= 0).all() and 0 < a.sum() <= 1 + 1e-6)
IS_WEIGHTS = array(np.ones((2, 12)), lambda a: a.shape == (2, 12) and (a >= 0).all() and (a.max(axis=1) > 0).all())
IS_DRAWS = array(DRAWS, lambda a: a.shape == (2, 12, 2))
IS_RATES = array([0.2, 0.5], lambda a: a.ndim > 0 and a.shape[-1] > 0 and ((a >= 0) & (a <= 1)).all())
EXCHANGE = samplers.resgld((0.1, 0.2), temperatures=(1.0, 2.0))


@functools.cache
def tempered():
    """A run with continuous tempering and a trace."""
    return {"run": toolkit.sample(NORMAL, samplers.tact_hmc(0.01), n_steps=20, seed=0, trace_every=1)}


@functools.cache
def untempered():
    """A run with neither."""
    return toolkit.sample(NORMAL, samplers.sgld(0.1), n_steps=2, seed=0)


RUNS = instance(toolkit.Run)
TRACED = RUNS._replace(wrong=st.one_of(RUNS.wrong, st.builds(untempered)))
SAMPLERS = instance(toolkit.Sampler)
EXCHANGING = SAMPLERS._replace(wrong=st.one_of(SAMPLERS.wrong, st.just(samplers.sgld(0.1))))
BY_GROUPS = samplers.icsgld(0.1, n_replicas=4, partition=PARTITION)
A_FOLDER = COMMON["checkpoint"]._replace(  # which may be the one it runs in
    wrong=COMMON["checkpoint"].wrong.filter(lambda v: not isinstance(v, str | os.PathLike) or os.fspath(v) != ".")
)
CONTOURS = kind(lambda v: v is BY_GROUPS, SAMPLERS.wrong, st.just(samplers.sgld(0.1)))

GRID = toolkit.grid(samplers.sgld, {"step_size": [0.1, 0.2]})
CONSTRUCTOR = kind(callable)
AXES = kind(
    lambda v: isinstance(v, dict) and v.keys() <= {"step_size"} and all(isinstance(row, list) for row in v.values()),
    st.sampled_from([{"step_size": []}, {"step_size": 0.1}, {"step_size": [0.1, 0.1]}, {"step": [1.0]}, {1: [0.1]},
        {"step_size": [-1.0]}, {"step_size": "0.1"}, {"step_size": [None]}, {"seed": [1]}]),
)  # fmt: skip
FIXED = kind(lambda v: isinstance(v, dict) and not v, st.sampled_from([{"step_size": 0.1}, {"nothing": 1}, {1: 2}]))


NONE_FIXED: dict = {}


def make_grid(constructor=samplers.sgld, axes=None, fixed=NONE_FIXED):
    """``grid`` with its fixed arguments as one."""
    if not isinstance(fixed, dict):
        return toolkit.Grid(constructor, axes, fixed)
    return toolkit.grid(constructor, axes, **fixed)


MAY_BE_FOUND = {  # by a tuning, where they are None
    "sampler": or_none(SAMPLERS),
    "n_chains": or_none(PARTS["n_chains"]),
    "burn_in": or_none(COMMON["burn_in"]),
    "thin": or_none(COMMON["thin"]),
}
OF_DRAWS = or_none(kind(lambda v: v == "modes" or (callable(v) and not isinstance(v, type)), st.just("coordinates")))
LADDER = {"step_sizes": (0.1, 0.2), "temperatures": (1.0, 2.0)}
ALSO_LADDER = {"step_sizes": "temperatures", "temperatures": "step_sizes"}
STEP = {"step_size": 0.01}
BY_CONTOUR = {"decay": instance(StepDecay)}
CALLS = [
    Call("toolkit.sampling.sample", toolkit.sample, RUN, {**PARTS, **MAY_BE_FOUND}),
    Call("toolkit.sampling.stream", toolkit.stream, RUN, {**PARTS, "n_steps": count(1, 2**48), **MAY_BE_FOUND},
         look=take_one),
    Call("toolkit.sampling.chains", toolkit.chains, RUN, {**PARTS, "n_steps": or_none(count(21, 2**48))}, look=hold),
    Call("toolkit._output.online.Chains.advance", advance_held, {}, {
        "n_steps": count(2**44, 2**48)._replace(wrong=count(1, 2**48).wrong), "thin": or_none(count(1, 2**48)),
    }),
    Call("toolkit._output.online.Chains.replace", replace_held, {"problem": NORMAL},
         {"checks_energies": flag()}),
    Call("toolkit._output.online.Chains.save", save_held, {}, {"path": COMMON["checkpoint"]._replace(odd=None)}),
    Call("toolkit._distributed.sweeps.grid.grid", make_grid, {"axes": {"step_size": [0.1, 0.2]}}, {
        "constructor": CONSTRUCTOR, "axes": AXES, "fixed": FIXED,
    }),
    Call("toolkit._distributed.sweeps.grid.Grid", toolkit.Grid,
         {"constructor": samplers.sgld, "axes": {"step_size": [0.1, 0.2]}},
         {"constructor": CONSTRUCTOR, "axes": AXES, "fixed": FIXED}),
    *(Call(f"toolkit._distributed.sweeps.grid.Grid.{name}", getattr(GRID, name), {"index": 1}, {"index": count(0, 2)})
      for name in ("setting", "sampler", "words")),
    Call("toolkit._distributed.sweeps.sweep.sweep", toolkit.sweep,
         {"problem": NORMAL, "grid": GRID, "n_steps": 20, "seeds": [0], "n_chains": 2, "threads": 1}, {
        "n_steps": count(21, 2**48)._replace(wrong=count(1, 2**48).wrong, odd=None),
        "n_chains": PARTS["n_chains"]._replace(odd=None), "grid": instance(toolkit.Grid),
        "seeds": kind(lambda v: is_row(v, "iu", lambda row: row.size and (row >= 0).all())),
        "measure": or_none(function()), "client": or_none(instance(toolkit.Problem)),
        "init": or_none(array([0.0], lambda a: a.shape in [(1,), (2, 1), (2, 1, 1)])),
    }),
    Call("toolkit._distributed.rounds.sample_in_rounds", toolkit.sample_in_rounds, {
        **RUN, "sampler": BY_GROUPS, "n_groups": 2, "steps_per_round": 7, "burn_in": 19,  # θ need not have settled then
    }, {
        **PARTS, "sampler": CONTOURS, "n_groups": count(1, 5)._replace(odd=None), "steps_per_round": count(1, 2**48),
        "burn_in": count(0, 20)._replace(odd=None), "client": kind(lambda v: v is None),
        "checkpoint": A_FOLDER,
    }),
    Call("toolkit.verification.report.verify", toolkit.verify,
         {"problem": NORMAL, "sampler": samplers.mala(0.5), "n_steps": 8, "n_chains": 8}, {
        name: given._replace(odd=None) for name, given in {  # what is right starts a process, and takes long
            "n_steps": or_none(count(4, 2**40)), "n_chains": or_none(count(8, 2**20)), "burn_in": or_none(count(0, 8)),
            "init": or_none(array([0.0], lambda a: a.shape in [(1,), (8, 1), (8, 1, 1)])),
            "problem": COMMON["problem"], "sampler": COMMON["sampler"], "seed": COMMON["seed"],
        }.items()
    }, tried=False),
    Call("toolkit.verification.step_size.check_step_size", toolkit.check_step_size,
         lambda: {"run": untempered(), "n_steps": 8}, {
        "run": RUNS, "n_steps": or_none(count(4, 2**40))._replace(odd=None),
        "n_chains": or_none(count(8, 2**20))._replace(odd=None), "burn_in": or_none(count(0, 8)), "order": count(1, 3),
        "seed": or_none(count(0, 2**64)),
    }, tried=False),
    Call("toolkit.samplers.sampler.Sampler", toolkit.Sampler, {"step_sizes": [0.1]}, {**PARTS,
        "tempering": or_none(instance(*TEMPERINGS)),
        "scale": or_none(numbers(number(1e-100, 1e100)))},
         ALSO_LADDER),
    Call("toolkit.problem.definition.Spread", toolkit.Spread, {"scale": [1.0]}, {
        "scale": array([1.0], lambda a: a.ndim < 2 and a.size > 0 and ((a > 0.0) & (a < 1e300)).all()),
        "center": array([0.0], lambda a: a.ndim < 3 and a.size > 0 and (np.abs(a) < 1e300).all()),
        "weights": or_none(array([1.0], lambda a: a.shape == (1,) and (a > 0.0).all())),
    }),
    Call("toolkit.problem.definition.Spread of boxes", toolkit.Spread, {"scale": 1.0, "center": [[0.0], [1.0]]}, {
        "scale": array(
            [1.0], lambda a: a.shape in ((), (a.size,), (2, 1)) and a.size > 0 and ((a > 0.0) & (a < 1e300)).all()
        ),
        "center": array([[0.0], [1.0]], lambda a: a.ndim < 3 and a.size > 0 and (np.abs(a) < 1e300).all()),
        "weights": or_none(array([1.0, 2.0], lambda a: a.shape == (2,) and (a > 0.0).all())),
    }),
    Call("toolkit.problem.definition.Target", toolkit.Target, {"name": "own", "dim": 1, "energy_gradient": plain}, {
        "energy_gradient": function(), "parameters": array([1.0], lambda a: True), "scratch_rows": count(0, idle=False),
        "stochastic": flag(), "lane_by_lane": flag(),
        "callback": or_none(instance(toolkit.problem.python_callable.Callback)),
    }),
    Call("toolkit.problem.definition.Target.evaluate", NORMAL.evaluate, {"points": [[0.0]]},
         {"points": array([[0.0]], lambda a: a.ndim == 2 and a.shape[1] == 1, finite=False)}),
    Call("toolkit.problem.definition.Problem", toolkit.Problem, {"target": NORMAL},
         {"target": instance(toolkit.Target), "domain": or_none(instance(Domain))}),
    Call("toolkit.problem.definition.Problem.contains", toolkit.Problem(NORMAL).contains, {"points": [[0.0]]},
         {"points": array([[0.0]], lambda a: a.ndim == 2 and a.shape[1] == 1, finite=False)}),
    Call("toolkit.problem.python_callable.from_callable", toolkit.from_callable, {"function": of_arrays, "dim": 1},
         {"function": function(), "name": or_none(COMMON["name"]), "n_data": kind(lambda v: v is None),
          "batch_size": kind(lambda v: v is None)},
         {"n_data": "batch_size", "batch_size": "n_data"}),
    Call("toolkit.problem.point_function.target", decorate, {"function": of_one_point}, {
        "function": kind(lambda v: v is None or (callable(v) and hasattr(v, "__code__"))),
        "parameters": or_none(array([1.0], lambda a: True)), "name": or_none(COMMON["name"]),
    }, also={"function": "function", "parameters": "of_one_point"}),
    Call("toolkit.problem.gradient_check.check_gradient", toolkit.check_gradient, {"problem": NORMAL, "n_points": 4}, {
        "points": or_none(array([[0.5]], lambda a: a.ndim == 2 and a.shape[1] == 1 and len(a) > 0)),
            "n_points": count(1, idle=False),
        "init": or_none(array([0.5], lambda a: a.shape == (1,))), "tolerance": OPEN_SHARE,
    }),
    # conditions
    Call("toolkit.diagnostics.stopping.ess", stopping.ess, {"n": 10.0}, {
        "n": POSITIVE, "method": choice("bulk", "tail", "mean"), "of": OF_DRAWS,
    }),
    Call("toolkit.diagnostics.stopping.r_hat", stopping.r_hat, {}, {"limit": number(1.0)}),
    Call("toolkit.diagnostics.stopping.mcse", stopping.mcse, {"limit": 0.1}, {
        "limit": POSITIVE, "of": OF_DRAWS, "relative": flag(),
    }),
    Call("toolkit.diagnostics.stopping.round_trips", stopping.round_trips, {"n": 1}, {"n": count(1)}),
    Call("toolkit.diagnostics.stopping.seconds", stopping.seconds, {"s": 1.0}, {"s": POSITIVE}),
    Call("toolkit.diagnostics.stopping.gradients", stopping.gradients, {"n": 1.0}, {"n": number(1.0, ends="[")}),
    # samplers
    Call("toolkit.samplers.langevin.sgld", samplers.sgld, STEP, PARTS),
    Call("toolkit.samplers.langevin.psgld", samplers.psgld, STEP, {**PARTS, "floor": POSITIVE}),
    Call("toolkit.samplers.langevin.sghmc", samplers.sghmc, STEP, PARTS, {"friction": "noise_estimate"}),
    Call("toolkit.samplers.langevin.sgnht", samplers.sgnht, STEP, PARTS),
    Call("toolkit.samplers.langevin.cyclical_sgld", samplers.cyclical_sgld, STEP, {"floor": SHARE}),
    Call("toolkit.samplers.langevin.cyclical_sghmc", samplers.cyclical_sghmc, STEP, {"floor": SHARE}),
    Call("toolkit.samplers.contour.csgld", samplers.csgld, STEP, {**PARTS, **BY_CONTOUR}),
    Call("toolkit.samplers.contour.icsgld", samplers.icsgld, STEP, {**PARTS, **BY_CONTOUR}),
    Call("toolkit.samplers.contour.icsghmc", samplers.icsghmc, STEP, {**PARTS, **BY_CONTOUR}),
    Call("toolkit.samplers.exchange.resgld", samplers.resgld, LADDER, PARTS, ALSO_LADDER),
    Call("toolkit.samplers.exchange.r2sgld", samplers.r2sgld, LADDER, PARTS, ALSO_LADDER),
    Call("toolkit.samplers.exchange.r2sghmc", samplers.r2sghmc, LADDER, PARTS, ALSO_LADDER),
    Call("toolkit.samplers.exchange.pt_mala", samplers.pt_mala, LADDER, PARTS, ALSO_LADDER),
    Call("toolkit.samplers.exchange.pt_hmc", samplers.pt_hmc, LADDER, {
        **PARTS, "n_leapfrogs": count(1), "random_length": flag(),
    }, ALSO_LADDER),
    Call("toolkit.samplers.exchange.pt_baoab", samplers.pt_baoab, LADDER, PARTS, ALSO_LADDER),
    Call("toolkit.samplers.continuous.tact_hmc", samplers.tact_hmc, STEP, {
        **PARTS, "bias": choice("abf", "metadynamics"), "top_temperature": number(1.0, ends="["),
    }),
    Call("toolkit.samplers.stein.svgd", samplers.svgd, {"n_replicas": 3}, PARTS),
    Call("toolkit.samplers.metropolis.mala", samplers.mala, STEP, PARTS),
    Call("toolkit.samplers.metropolis.hmc", samplers.hmc, STEP, {
        **PARTS, "n_leapfrogs": count(1), "random_length": flag(),
    }),
    # parts
    Call("toolkit.boundaries.rules.Boundary", boundaries.Boundary, {"kind": "ignore"},
         {"kind": choice(*rules.KINDS), "coefficient": number(0.0, 0.0, ends="["), "max_bounces": count(0, 1)}),
    Call("toolkit.boundaries.rules.reflect", boundaries.reflect, {}, {"max_bounces": count(1)}),
    Call("toolkit.boundaries.rules.reject", boundaries.reject),
    Call("toolkit.boundaries.rules.penalise", boundaries.penalise, {"coefficient": 1.0}, {"coefficient": POSITIVE}),
    Call("toolkit.boundaries.rules.penalise_as_printed", boundaries.penalise_as_printed, {"coefficient": 1.0},
         {"coefficient": POSITIVE}),
    Call("toolkit.boundaries.rules.ignore", boundaries.ignore),
    Call("toolkit.dynamics.langevin", dynamics.langevin),
    Call("toolkit.dynamics.mala", dynamics.mala),
    Call("toolkit.dynamics.hmc", dynamics.hmc, {}, {"n_leapfrogs": count(1), "random_length": flag()}),
    Call("toolkit.dynamics.descent", dynamics.descent, {}, {"floor": POSITIVE}),
    Call("toolkit.dynamics.preconditioned_langevin", dynamics.preconditioned_langevin, {}, {"floor": POSITIVE}),
    Call("toolkit.dynamics.underdamped_langevin", dynamics.underdamped_langevin),
    Call("toolkit.dynamics.nose_hoover", dynamics.nose_hoover),
    Call("toolkit.dynamics.baoab", dynamics.baoab),
    Call("toolkit.schedules.constant", schedules.constant),
    Call("toolkit.schedules.exponential_decay", schedules.exponential_decay, {"rate": 0.9},
         {"rate": number(0.0, 1.0, ends="]"), "start": count(0), "every": count(1)}),
    Call("toolkit.schedules.polynomial_decay", schedules.polynomial_decay, {"exponent": 0.6},
         {"exponent": NOT_NEGATIVE, "offset": NOT_NEGATIVE, "start": count(0)}),
    Call("toolkit.schedules.cosine_cycles", schedules.cosine_cycles, {"n_cycles": 3}, {"floor": SHARE}),
    Call("toolkit.schedules.custom", schedules.custom, {}, {
        "step_size": kind(lambda v: v is None or callable(v) or OWN.takes(v), array(np.ones(3), lambda a: False).wrong),
        "temperature": kind(lambda v: v is None or callable(v) or OWN.takes(v), array(np.ones(3),
            lambda a: False).wrong),
        "keep": kind(lambda v: v is None or callable(v) or (isinstance(v, list | np.ndarray)
            and is_row(v, "b", lambda a: True))),
    }) if (OWN := array(np.ones(3), lambda a: a.ndim == 1 and (a >= 0).all())) else None,
    Call("toolkit.tempering.contour_tempering.Contour",
         tempering.Contour, {}, {**BY_CONTOUR, "field": choice("theta", "theta_zeta")}),
    Call("toolkit.tempering.contour_tempering.Partition",
         tempering.Partition, {"u_min": 0.0, "width": 1.0, "n_bins": 10},
         {"u_min": FREE, "width": POSITIVE, "n_bins": count(2, 2**31)}),
    Call("toolkit.tempering.contour_tempering.contour",
         tempering.contour, {}, {**BY_CONTOUR, "field": choice("theta", "theta_zeta")}),
    Call("toolkit.tempering.contour_tempering.step_decay", tempering.step_decay, {},
         {"exponent": SHARE, "offset": NOT_NEGATIVE, "cap": number(0.0, 1.0, ends="]")}),
    Call("toolkit.tempering.exchange.ReplicaExchange", tempering.ReplicaExchange, {}, {"one_swap_per_window": flag()}),
    Call("toolkit.tempering.exchange.replica_exchange",
         tempering.replica_exchange, {}, {"one_swap_per_window": flag()}),
    Call("toolkit.tempering.exchange.adapted_correction", tempering.adapted_correction, {"target_rate": 0.3},
         {"target_rate": OPEN_SHARE, "start": NOT_NEGATIVE}),
    Call("toolkit.tempering.exchange.estimated_correction", tempering.estimated_correction, {},
         {"every": count(1), "evaluations": count(2, 2**16)}),
    *[
        Call(name, function, good, {
            "top_temperature": number(1.0, ends="["), "plateau": OPEN_SHARE, "step_size": or_none(POSITIVE),
            "bias": choice("abf", "metadynamics"), "n_bins": count(2, 100_001),
            "height": POSITIVE, "resample_every": count(1),
        })
        for name, function, good in [
            ("toolkit.tempering.continuous.continuous_tempering", tempering.continuous_tempering, {"top_temperature":
            1.5}), ("toolkit.tempering.continuous.ContinuousTempering", tempering.ContinuousTempering, {
                "top_temperature": 1.5, "plateau": 0.1, "step_size": None, "friction": 0.05, "inertia": 1.0,
                    "bias": "abf",
                "n_bins": 20, "height": 0.002, "thermostat": True, "resample_every": 50,
            }),
        ]
    ],
    Call("toolkit.tempering.stein_particles.Stein", tempering.Stein),
    Call("toolkit.tempering.stein_particles.stein", tempering.stein),
    # what is made of draws
    Call("toolkit.cycles.cycle_of", cycles.cycle_of, {"steps": [0, 1, 19], "n_cycles": 2, "n_steps": 20}, {
        "steps": kind(lambda v: is_row(v, "iu", lambda a: ((a >= 0) & (a < 20)).all()),
            st.lists(st.one_of(st.floats(), st.integers(max_value=-1), st.integers(min_value=20)), min_size=1)),
        "n_cycles": count(1, 21), "n_steps": count(20),
    }, {"steps": "n_steps", "n_steps": "n_cycles"}),
    Call("toolkit.cycles.combine_cycles", cycles.combine_cycles, {"draws": TWO[None], "energies": np.zeros((1, 40)),
        "cycles": CYCLE}, {
        "draws": array(TWO[None], lambda a: a.ndim == 3 and a.shape[:2] == (1, 40)),
        "energies": array(np.zeros((1, 40)), lambda a: a.shape == (1, 40)),
        "cycles": array(CYCLE, lambda a: a.shape == (40,) and a.dtype.kind in "iu"),
        "method": choice("truncated", "harmonic"), "separation": POSITIVE,
    }, {"draws": "energies", "cycles": "cycle"}),
    Call("toolkit.ladders.geometric_ladder", ladders.geometric_ladder, {"coldest": 1.0, "hottest": 5.0,
        "n_replicas": 3},
         {"coldest": number(0.0, 5.0), "hottest": number(1.0), "n_replicas": count(2)}, {"coldest": "hottest"}),
    Call("toolkit.ladders.deo_window", ladders.deo_window, {"n_replicas": 3, "rate": 0.3}, {"n_replicas": count(2),
        "rate": OPEN_SHARE}),
    Call("toolkit.ladders.adapted_ladder", ladders.adapted_ladder,
         {"problem": NORMAL, "sampler": EXCHANGE, "n_steps": 40, "n_chains": 2, "seed": 0, "n_rounds": 1},
         {**PARTS, "n_steps": count(2, 2**48)._replace(odd=None), "n_rounds": count(1, idle=False),
             "sampler": EXCHANGING}),
    Call("toolkit.tuning.procedure.tune", toolkit.tune,
         {"problem": NORMAL, "sampler": samplers.mala(0.5), "seed": 0, "n_gradients": 20_000, "progress": False}, {
        "n_gradients": count(20_000, 2**50)._replace(odd=None), "sampler": or_none(SAMPLERS),
        "init": or_none(array([[0.0]], lambda a: a.size > 0 and np.atleast_2d(a).shape in ((a.size, 1), (1, 1)))),
    }),
    Call("toolkit.thermostats.thermostat_law", thermostats.thermostat_law, {"sampler": samplers.sgnht(0.1), "dim": 2},
         {"sampler": EXCHANGING, "dim": count(1)}),
    Call("toolkit.thermostats.coupling_thermostat_law", thermostats.coupling_thermostat_law,
        {"sampler": samplers.tact_hmc(0.1)},
         {"sampler": EXCHANGING}),
    Call("toolkit.thermostats.effective_temperature", thermostats.effective_temperature, tempered, {"run": TRACED},
        {"run": "sampler"}),
    Call("toolkit.thermostats.coupling_histogram", thermostats.coupling_histogram, tempered, {"run": TRACED,
        "n_bins": count(1, idle=False)},
         {"run": "sampler"}),
    Call("toolkit.thermostats.running_average", thermostats.running_average, {"values": [1.0, 2.0]},
         {"values": array([1.0, 2.0], lambda a: a.ndim > 0)}),
    Call("toolkit.weighting.weighted_ess", weighting.weighted_ess, {"weights": np.ones((2, 12))},
         {"weights": array(np.ones((2, 12)),
             lambda a: a.ndim == 2 and a.size and (a >= 0).all() and (a.max(axis=1) > 0).all())}),
    Call("toolkit.weighting.resample", weighting.resample, {"draws": DRAWS, "weights": np.ones((2, 12)), "seed": 0},
         {"draws": array(DRAWS, lambda a: a.ndim == 3 and a.shape[:2] == (2, 12)), "weights": IS_WEIGHTS,
             "n": or_none(count(1, idle=False)), "without_duplicates": flag()}, {"weights": "draws"}),
]  # fmt: skip
