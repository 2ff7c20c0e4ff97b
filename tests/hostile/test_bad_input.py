"""Bad calls, samplers, parts and schedules are refused before anything runs, by name, value and limits."""

import numpy as np
import pytest

from targets import constrained, mixtures, shapes
from toolkit import (
    Layout,
    Problem,
    Sampler,
    Spread,
    Target,
    accumulators,
    boundaries,
    dynamics,
    sample,
    samplers,
    schedules,
    stream,
    tempering,
)
from toolkit._compiler.block_rows import COUNTER_ROWS
from toolkit.tempering.contour_tempering import Contour, Partition, step_decay

FLOWER = constrained(mixtures.cosine25(), shapes.flower())
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)


def log_block(position, energy, gradient, parameters, scratch):
    """U = −log x, infinite at 0 and nan below."""
    for lane in range(position.shape[1]):
        energy[lane] = -np.log(position[0, lane])
        gradient[0, lane] = -1.0 / position[0, lane]


LOG = Target("log", 1, log_block)
BATCHES = Target("batches", 1, log_block, scratch_rows=COUNTER_ROWS, stochastic=True)
GOOD = {"problem": NORMAL, "sampler": samplers.sgld(0.1), "n_steps": 10, "seed": 0}

FAR = constrained(mixtures.cosine25(), shapes.polygon_of("far", [[1, 1], [2, 1], [1, 2]]))
BAD_CALLS = {
    "problem": ({"problem": "normal"}, TypeError, "problem must be a Problem or a Target, got 'normal'"),
    "sampler": ({"sampler": 0.1}, TypeError, "sampler must be None, a Sampler or a Tuned, got 0.1"),
    "n_steps 0": ({"n_steps": 0}, ValueError, "n_steps must be ≥ 1"),
    "n_steps real": ({"n_steps": 10.0}, TypeError, "n_steps must be an integer, got 10.0"),
    "n_chains": ({"n_chains": 0}, ValueError, "n_chains must be ≥ 1"),
    "burn_in all": ({"burn_in": 10}, ValueError, "burn_in must be ≥ 0 and < 10, got 10"),
    "burn_in negative": ({"burn_in": -1}, ValueError, "burn_in must be ≥ 0"),
    "thin": ({"thin": 11}, ValueError, "thin must be ≥ 1 and < 11, got 11"),
    "seed negative": ({"seed": -1}, ValueError, "seed must be ≥ 0"),
    "seed too large": ({"seed": 2**64}, ValueError, "seed must be ≥ 0 and < 18446744073709551616"),
    "seed None": ({"seed": None}, TypeError, "seed must be an integer, got None"),
    "backend": ({"backend": "gpu"}, ValueError, "backend must be one of 'cpu', 'cuda', got 'gpu'"),
    "dtype": ({"dtype": "float16"}, ValueError, "dtype must be one of 'float64', 'float32', got 'float16'"),
    "dtype without a device": (
        {"dtype": "float32"}, ValueError, "dtype must be 'float64' for backend 'cpu', got 'float32'; float32 needs"
    ),
    "threads": ({"threads": 0}, ValueError, "threads must be ≥ 1"),
    "init shape": ({"init": [0.0, 1.0]}, ValueError, r"init must have shape \(dim,\) = \(1,\)"),
    "init nan": ({"init": [np.nan]}, ValueError, "init must be finite, got nan"),
    "init text": ({"init": "zero"}, TypeError, "init must be an array of real numbers"),
    "init outside": (
        {"problem": FLOWER, "init": [3.0, 0.0]}, ValueError,
        r"init must lie inside the domain .*got \[3.0, 0.0\] for chain 0",
    ),
    "init of infinite energy": (
        {"problem": LOG, "init": [0.0]}, ValueError, r"init must have a finite energy, got energy inf at \[0.0\]",
    ),
    "origin outside": (
        {"problem": FAR, "init": [0.0, 0.0]}, ValueError,
        r"init must lie inside the domain 'cosine25 in far', got \[0.0, 0.0\] for chain 0",
    ),
    "spread outside": (
        {"problem": FAR, "init": Spread(0.5)}, ValueError,
        "init must be given for 'cosine25 in far': .* for chain 0, replica 0, none lies inside the domain",
    ),
    "no domain": (
        {"sampler": samplers.sgld(0.1, boundary=boundaries.reflect())}, ValueError,
        "boundary 'reflect' needs a problem with a domain",
    ),
    "init complex": ({"init": [1j]}, TypeError, "init must be an array of real numbers"),
    "flag": ({"keep_replicas": "no"}, TypeError, "keep_replicas must be True or False, got 'no'"),
    "progress": ({"progress": "yes"}, TypeError, "progress must be True or False, got 'yes'"),
    "layout": ({"layout": 64}, TypeError, "layout must be a Layout"),
    "trace_every 0": ({"trace_every": 0}, ValueError, "trace_every must be ≥ 1 and < 11, got 0"),
    "trace_every late": ({"trace_every": 11}, ValueError, "trace_every must be ≥ 1 and < 11, got 11"),
    "trace_every real": ({"trace_every": 2.0}, TypeError, "trace_every must be an integer, got 2.0"),
    "other chains": (
        {"sampler": samplers.sgld([0.1, 0.2]), "n_chains": 3}, ValueError,
        "n_chains must be 2, for which the sampler's step sizes or temperatures are given, got 3",
    ),
    "other temperatures": (
        {"sampler": samplers.sgld(0.1, temperature=[1.0, 2.0])}, ValueError, "n_chains must be 2, .* got 1",
    ),
    "particles at one place": (
        {"sampler": samplers.svgd(n_replicas=3), "n_chains": 2, "init": [[[0.0], [1.0], [2.0]], [[1.0]] * 3]},
        ValueError,
        r"init must give the particles of a chain different places, .* got all 3 of chain 1 at \[1.0\]; "
        r"give shape \(n_chains, n_replicas, dim\) = \(2, 3, 1\)",
    ),
    "particles at one start": (
        {"sampler": samplers.svgd(n_replicas=3), "init": [0.0]}, ValueError,
        "init must give the particles of a chain different",
    ),
    "minibatches for MALA": (
        {"problem": BATCHES, "sampler": samplers.mala(0.1)}, ValueError,
        "dynamics 'mala' need exact energies for their Metropolis test, and 'batches' draws minibatches",
    ),
    "minibatches for HMC": ({"problem": BATCHES, "sampler": samplers.hmc(0.1)}, ValueError, "dynamics 'hmc' need"),
    "nothing to freeze": (
        {"sampler": samplers.csgld(0.1, partition=Partition(0.0, 1.0, 4), freezes=True)}, ValueError,
        "burn_in must be ≥ 1 for a contour that freezes, .* got 0",
    ),
    "rejects what has no edge": (
        {"sampler": samplers.sgld(0.1, boundary=boundaries.reject())}, ValueError, "boundary 'reject' needs a problem",
    ),
    "accumulators in a list": (
        {"accumulators": [accumulators.moments()]}, TypeError, "accumulators must be a mapping from names to",
    ),
    "an accumulator without a name": (
        {"accumulators": {1: accumulators.moments()}}, TypeError, "accumulators must have names that are words, got 1",
    ),
    "no accumulator": (
        {"accumulators": {"x": accumulators.moments}}, TypeError, r"accumulators\['x'\] must be an accumulator, got",
    ),
    "keep_energies": ({"keep_energies": 1}, TypeError, "keep_energies must be True or False, got 1"),
    "keep_statistics": ({"keep_statistics": None}, TypeError, "keep_statistics must be True or False, got None"),
    "lanes": ({"layout": Layout(lanes=0)}, ValueError, "layout.lanes must be ≥ 1"),
    "chunk_steps": ({"layout": Layout(chunk_steps=0)}, ValueError, "layout.chunk_steps must be ≥ 1"),
    "fused": ({"layout": Layout(fused=1)}, TypeError, "layout.fused must be True, False or None, got 1"),
}  # fmt: skip


@pytest.mark.slow_cases("spread outside-stream")  # it looks for a start as long as `sample` does
@pytest.mark.parametrize("function", [sample, stream])
@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_are_refused_before_anything_runs(name, function):
    change, kind, message = BAD_CALLS[name]
    arguments = {**GOOD, **change}
    with pytest.raises(kind, match=message):
        function(arguments.pop("problem"), arguments.pop("sampler"), **arguments)


def too_few(position, energy):
    pass


def no_numba(position, energy, gradient, parameters, scratch):
    energy[0] = position.nonsense


@pytest.mark.parametrize(("function", "reason"), [(too_few, "function takes 2"), (no_numba, "Unknown attribute")])
def test_a_target_that_does_not_compile_says_why(function, reason):
    with pytest.raises(TypeError, match=rf"(?s)energy_gradient of target 'mine' must be a function .*{reason}"):
        sample(Target("mine", 1, function), samplers.sgld(0.1), n_steps=1, seed=0)


def allocating_block(position, energy, gradient, parameters, scratch):
    for lane in range(position.shape[1]):
        x = np.zeros(1)
        x[0] = position[0, lane]
        energy[lane] = 0.5 * x[0] ** 2
        gradient[0, lane] = x[0]


def test_a_target_that_allocates_works():
    runs = [
        sample(target, samplers.sgld(0.1), n_steps=20, n_chains=3, seed=1).draws
        for target in (Target("mine", 1, allocating_block), NORMAL)
    ]
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-12, atol=1e-14)


def test_seed_has_no_default():
    with pytest.raises(TypeError, match="seed"):
        sample(NORMAL, samplers.sgld(0.1), n_steps=1)


def asserting(position, energy, gradient, parameters, scratch):
    assert position.shape[1] > 0
    energy[:] = 0.0
    gradient[:] = 0.0


BAD_SAMPLERS = {
    "step size 0": (lambda: samplers.sgld(0.0), "step_size must be finite and > 0, got 0.0"),
    "step size inf": (lambda: samplers.sgld(np.inf), "step_size must be finite and > 0, got inf"),
    "step size text": (lambda: samplers.sgld("small"), "step_size must be a number, got 'small'"),
    "temperature": (
        lambda: samplers.sgld(0.1, temperature=-1.0),
        "temperature must be finite and > 0, got -1.0",
    ),
    "not increasing": (lambda: samplers.r2sgld(temperatures=(10.0, 1.0)), r"temperatures must increase.*\(10.0, 1.0\)"),
    "equal": (lambda: samplers.r2sgld(temperatures=(1.0, 1.0)), "temperatures must increase"),
    "lengths": (lambda: samplers.r2sgld((0.1,), temperatures=(1.0, 2.0)), "one value per replica, got 1 step sizes"),
    "one replica": (lambda: samplers.resgld((0.1,), temperatures=(1.0,)), "needs at least 2 temperatures"),
    "no tempering": (
        lambda: Sampler("x", (0.1, 0.2), (1.0, 2.0)),
        "several temperatures need tempering by replica exchange",
    ),
    "a number": (lambda: samplers.r2sgld(0.1), "step_sizes must be a sequence of numbers, got 0.1"),
    "noise": (lambda: samplers.sgld(0.1, gradient_noise=-0.1), "gradient_noise must be finite and ≥ 0, got -0.1"),
    "energy noise": (lambda: samplers.r2sgld(energy_noise=np.nan), "energy_noise must be finite and ≥ 0, got nan"),
    "correction": (lambda: samplers.r2sgld(correction=-1.0), "correction must be finite and ≥ 0, got -1.0"),
    "swap_every": (lambda: samplers.r2sgld(swap_every=0), "swap_every must be ≥ 1, got 0"),
    "threshold": (
        lambda: samplers.r2sgld(swap_threshold=2.0),
        "swap_threshold must be finite and > 0 and ≤ 1, got 2.0",
    ),
    "boundary": (lambda: samplers.sgld(0.1, boundary="reflect"), "boundary must be a Boundary, got 'reflect'"),
    "schedule": (lambda: samplers.sgld(0.1, schedule=0.5), "schedule must be a Schedule, got 0.5"),
    "penalty": (lambda: boundaries.penalise(0.0), "coefficient must be finite and > 0, got 0.0"),
    "printed penalty": (lambda: boundaries.penalise_as_printed(-1.0), "coefficient must be finite and > 0, got -1.0"),
    "bounces": (lambda: boundaries.reflect(max_bounces=0), "max_bounces must be ≥ 1, got 0"),
    "unknown kind": (
        lambda: boundaries.Boundary("bounce"),
        "kind must be one of 'reflect', 'reject', 'penalise', 'penalise_as_printed', 'ignore'",
    ),
    "kind without its number": (lambda: boundaries.Boundary("reflect"), "max_bounces must be ≥ 1, got 0"),
    "number of another kind": (
        lambda: boundaries.Boundary("ignore", 1.0),
        "coefficient must be 0 for 'ignore', got 1.0",
    ),
    "swap_every direct": (lambda: tempering.ReplicaExchange(swap_every=0), "swap_every must be ≥ 1, got 0"),
    "huge": (lambda: samplers.sgld(10**400), "step_size must be finite and > 0"),
    "huge count": (lambda: boundaries.reflect(max_bounces=10**30), "max_bounces must be ≥ 1 and < 9223372036854775808"),
    "no sequence": (lambda: samplers.r2sgld("1e-3"), "step_sizes must be a sequence of numbers"),
    "idle noise": (lambda: Sampler("x", [0.1], energy_noise=1.0), "energy_noise must be 0 without a tempering"),
    "problem of nothing": (lambda: Problem("x"), "target must be a Target, got 'x'"),
    "problem of a shape": (lambda: Problem(mixtures.cosine25(), shapes.flower()), "domain must be None or a Domain"),
    "target that raises": (
        lambda: Target("t", 1, asserting),
        "energy_gradient of target 't' must not raise or assert, which the engine",
    ),
    "target without function": (lambda: Target("t", 1, None), "energy_gradient must be a block function, got None"),
    "dimensions": (lambda: Problem(NORMAL, FLOWER.domain), "domain has dimension 2, but the target has 1"),
}

# What makes no sense together, in ``Sampler`` itself and in the constructors of several replicas.
EXCHANGE, CONTOUR = tempering.replica_exchange(), tempering.contour(partition=Partition(0.0, 1.0, 4))
BAD_SAMPLERS |= {
    "ragged rows": (
        lambda: Sampler("x", [[0.1, 0.1], [0.1]], (1.0, 1.0)), "step_sizes must have one value per replica in every",
    ),
    "row of nothing": (lambda: Sampler("x", [[0.1], [0.0]]), r"step_sizes\[1\]\[0\] must be finite and > 0, got 0.0"),
    "temperature in a row": (lambda: Sampler("x", [0.1], [[1.0], [-1.0]]), r"temperatures\[1\]\[0\] must be finite"),
    "nothing at all": (lambda: Sampler("x", [], []), "step_sizes must have one value per replica, got none"),
    "too many replicas": (
        lambda: Sampler("x", np.full(2**16, 0.1), np.ones(2**16)), "temperatures must have 1 to 65535 values, got 6",
    ),
    "rows of other chains": (
        lambda: Sampler("x", [[0.1], [0.1]], [[1.0]] * 3),
        "step_sizes and temperatures must be given for as many chains, got 2 and 3",
    ),
    "one chain's ladder falls": (
        lambda: samplers.resgld((0.1, 0.1), temperatures=[[1.0, 2.0], [2.0, 1.0]]), "temperatures must increase",
    ),
    "one chain's replicas differ": (
        lambda: Sampler("x", (0.1, 0.1), [[1.0, 1.0], [1.0, 2.0]]), "several temperatures need tempering by replica",
    ),
    "contour at several temperatures": (
        lambda: Sampler("x", (0.1, 0.1), (1.0, 2.0), tempering=CONTOUR), "several temperatures need .* tempering=Cont",
    ),
    "tempering": (
        lambda: Sampler("x", [0.1], tempering="contour"),
        "tempering must be None or one of ContinuousTempering, Contour, ReplicaExchange, Stein, got 'contour'",
    ),
    "dynamics": (lambda: Sampler("x", [0.1], dynamics="langevin"), "dynamics must be a Dynamics, got 'langevin'"),
    "memory without a start": (
        lambda: Sampler("x", [0.1], dynamics=dynamics.langevin()._replace(memory=("a", "b"), memory_start=(0.0,))),
        r"memory_start of dynamics 'langevin' must have one value for each of memory \('a', 'b'\), got \(0.0,\)",
    ),
    "Stein that is shaken": (
        lambda: Sampler("x", [0.1], tempering=tempering.stein()), "tempering by stein and .*got dynamics 'langevin'",
    ),
    "descent alone": (
        lambda: Sampler("x", [0.1], dynamics=dynamics.descent()), "Stein's particles move without.*tempering=None",
    ),
    "descent on a ladder": (
        lambda: Sampler("x", (0.1, 0.1), (1.0, 2.0), dynamics=dynamics.descent(), tempering=EXCHANGE),
        "dynamics.descent\\(\\) need each other",
    ),
    "energies Stein does not look at": (
        lambda: Sampler("x", [0.1], dynamics=dynamics.descent(), tempering=tempering.stein(), energy_noise=0.1),
        "energy_noise must be 0 without a tempering that looks at energies, got 0.1",
    ),
    "noisy MALA": (
        lambda: Sampler("x", [0.1], dynamics=dynamics.mala(), gradient_noise=0.1),
        "gradient_noise must be 0 for 'mala', whose Metropolis test is exact .* got 0.1",
    ),
    "noisy HMC": (
        lambda: Sampler("x", [0.1], dynamics=dynamics.hmc(), gradient_noise=0.1), "gradient_noise must be 0 for 'hmc'",
    ),
    "HMC on a noisy landscape": (
        lambda: Sampler("x", [0.1], dynamics=dynamics.hmc(), tempering=CONTOUR, energy_noise=0.1),
        "energy_noise must be 0 for 'hmc' under contour, .* got 0.1",
    ),
    "reflected MALA": (
        lambda: samplers.mala(0.1, boundary=boundaries.reflect()), "boundary must not be 'reflect' for 'mala'",
    ),
    "too much noise known": (
        lambda: samplers.sghmc(0.5, friction=0.2, noise_estimate=1.0, temperature=0.25),
        "noise_estimate must be ≤ .* = 0.447214, or the gradient noise alone exceeds .* got 1",
    ),
    "too much noise in one chain": (
        lambda: samplers.sghmc([0.01, 0.5], friction=0.2, noise_estimate=1.0), "noise_estimate must be ≤ .* = 0.894427",
    ),
    "step size of a chain": (lambda: samplers.sgld([0.1, -0.1]), r"step_size\[1\] must be finite and > 0, got -0.1"),
    "step size of chains and replicas": (lambda: samplers.sgld([[0.1]]), "step_size.* must be a number"),
    "contour of none": (lambda: samplers.icsgld(0.1, n_replicas=0), "n_replicas must be ≥ 1 and < 65536, got 0"),
    "half a replica": (lambda: samplers.icsghmc(0.1, n_replicas=2.5), "n_replicas must be an integer, got 2"),
    "no particles": (lambda: samplers.svgd(n_replicas=0), "n_replicas must be ≥ 1 and < 65536, got 0"),
    "thermostat": (lambda: samplers.tact_hmc(0.1, thermostat=1), "thermostat must be True or False, got 1"),
    "tempers": (lambda: samplers.tact_hmc(0.1, tempers="no"), "tempers must be True or False, got 'no'"),
    "top temperature that is not used": (
        lambda: samplers.tact_hmc(0.1, tempers=False, top_temperature=-3), "top_temperature must be finite and ≥ 1",
    ),
    "bias that is not used": (
        lambda: samplers.tact_hmc(0.1, tempers=False, bias="nonsense"), "bias must be one of 'none', 'abf'",
    ),
    "resampling that is not done": (
        lambda: samplers.tact_hmc(0.1, tempers=False, resample_every=0), "resample_every must be ≥ 1, got 0",
    ),
    "inertia that is not used": (
        lambda: samplers.tact_hmc(0.1, tempers=False, thermostat=False, inertia=-1), "inertia must be finite and > 0",
    ),
    "energy noise that is not used": (
        lambda: samplers.tact_hmc(0.1, tempers=False, energy_noise=-1.0), "energy_noise must be finite and ≥ 0",
    ),
    "preconditioned": (lambda: samplers.svgd(preconditioned=None), "preconditioned must be True or False, got None"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SAMPLERS)
def test_bad_samplers_are_refused(name):
    make, message = BAD_SAMPLERS[name]
    with pytest.raises((TypeError, ValueError), match=message):
        make()


# Part → keyword → values out of range, and what the message says of them; every keyword of every part is here.
ABOVE_0, FLAG, COUNT = "must be finite and > 0, got", "must be True or False, got", "must be ≥ 1, got"
UNIT = "must be finite and > 0 and ≤ 1, got"
BAD_PARTS = {
    dynamics.preconditioned_langevin: {
        "decay": ((-0.1, 1.0), "must be finite and ≥ 0 and < 1, got"), "floor": ((0.0, np.inf), ABOVE_0),
        "drift_correction": ((1, "yes"), FLAG),
    },
    dynamics.underdamped_langevin: {
        "friction": ((0.0, 1.1), UNIT), "noise_estimate": ((-1.0, np.nan), "must be finite and ≥ 0, got"),
    },
    dynamics.nose_hoover: {"friction": ((0.0,), ABOVE_0), "inertia": ((0.0,), ABOVE_0), "by_coordinate": ((2,), FLAG)},
    dynamics.descent: {
        "decay": ((-0.1, 1.0), "must be finite and ≥ 0 and < 1, got"), "floor": ((0.0,), ABOVE_0),
        "preconditioned": ((0,), FLAG),
    },
    dynamics.hmc: {"n_leapfrogs": ((0, 2**31), "must be ≥ 1"), "n_leapfrogs ": ((1.0,), "must be an integer, got"),
        "random_length": ((1, "yes"), FLAG)},
    tempering.estimated_correction: {
        "every": ((0,), COUNT), "evaluations": ((1, 2**16), "must be ≥ 2 and < 65536, got"),
    },
    lambda target_rate=0.3, **options: tempering.adapted_correction(target_rate, **options): {
        "target_rate": ((0.0, 1.0), "must be finite and > 0 and < 1, got"), "gain": ((0.0,), ABOVE_0),
        "start": ((-1.0,), "must be finite and ≥ 0, got"),
    },
    tempering.replica_exchange: {
        "correction": ((-1.0, np.inf), "must be finite and ≥ 0, got"),
        "correction ": (("estimate",), "must be a number, got"),
        "swap_every": ((0,), COUNT), "swap_threshold": ((0.0, 1.5), UNIT), "window": ((0,), COUNT),
        "scheme": (("DEO", None), "must be one of 'deo', 'seo', 'adjacent', 'all_pairs', got"),
        "one_swap_per_window": ((1,), FLAG),
    },
    Partition: {
        "u_min": ((np.nan,), "must be finite, got"), "width": ((0.0, -1.0), ABOVE_0),
        "n_bins": ((1, 2**31), "must be ≥ 2( and < 2147483648)?, got"),
    },
    step_decay: {
        "gain": ((0.0,), ABOVE_0), "exponent": ((-0.1, 1.1), "must be finite and ≥ 0 and ≤ 1, got"),
        "offset": ((-1.0,), "must be finite and ≥ 0, got"), "cap": ((0.0, 1.1), UNIT),
    },
    tempering.contour: {
        "zeta": ((-0.1, np.inf), "must be finite and ≥ 0, got"),
        "partition": (((0.0, 1.0, 10),), "must be None or a Partition"),
        "field": (("theta^zeta",), "must be one of 'theta_zeta', 'theta', got"), "interpolated": ((1,), FLAG),
        "decay": ((0.6,), "must be a StepDecay, got"), "freezes": ((1, None), FLAG),
    },
    tempering.continuous_tempering: {
        "top_temperature": ((0.9,), "must be finite and ≥ 1, got"), "step_size": ((0.0,), ABOVE_0),
        "plateau": ((0.0, 1.0), "must be finite and > 0 and < 1, got"), "inertia": ((0.0,), ABOVE_0),
        "friction": ((-0.1,), "must be finite and ≥ 0, got"), "friction ": ((0.5, 2.0), "must be < "),
        "bias": (("abc",), "must be one of 'none', 'abf', 'metadynamics', got"), "height": ((0.0,), ABOVE_0),
        "n_bins": ((1, 100_001), "must be ≥ 2 and < 100001, got"), "thermostat": ((None,), FLAG),
        "resample_every": ((0,), COUNT),
    },
    tempering.stein: {"bandwidth": ((0.0, -1.0), ABOVE_0)},
    lambda **options: Target("t", **{"dim": 1, "energy_gradient": log_block, **options}): {
        "dim": ((0, 2**17), "must be ≥ 1 and < 131072, got"), "scratch_rows": ((-1,), "must be ≥ 0, got"),
        "parameters": (([np.nan],), "must be finite, got nan"),
    },
    lambda **options: Target("t", 1, log_block, stochastic=True, **options): {
        "scratch_rows": ((0, COUNTER_ROWS - 1), f"must be ≥ {COUNTER_ROWS}, got"),
    },
}  # fmt: skip
BAD_VALUES = [
    (make, keyword.strip(), value, message)
    for make, keywords in BAD_PARTS.items()
    for keyword, (values, message) in keywords.items()
    for value in values
]


@pytest.mark.parametrize(("make", "keyword", "value", "message"), BAD_VALUES)
def test_bad_numbers_of_parts_are_refused(make, keyword, value, message):
    good = {"u_min": 0.0, "width": 1.0, "n_bins": 5} if make is Partition else {}
    with pytest.raises((TypeError, ValueError), match=f"^{keyword} {message}"):
        make(**{**good, keyword: value})


@pytest.mark.parametrize("options", [{"window": 2}, {"one_swap_per_window": True}])
@pytest.mark.parametrize("scheme", ["seo", "adjacent", "all_pairs"])
def test_windows_belong_to_deo(scheme, options):
    with pytest.raises(
        ValueError, match=f"window and one_swap_per_window belong to scheme 'deo', got scheme '{scheme}'"
    ):
        tempering.replica_exchange(scheme=scheme, **options)


def test_parts_made_directly_are_checked_too():
    for make in (
        lambda: Contour(zeta=-1.0),
        lambda: tempering.ReplicaExchange(window=0),
        lambda: tempering.Stein(bandwidth=0.0),
    ):
        with pytest.raises(ValueError, match="must be"):
            make()


def user_schedule(*factors):
    return schedules.Schedule("mine", lambda steps, total: schedules.Factors(*(f(steps) for f in factors)))


def ones(steps):
    return np.ones(steps.size)


def always(steps):
    return np.ones(steps.size, bool)


BAD_SCHEDULES = {
    "short": (user_schedule(lambda s: np.ones(1), ones, always), "step_size of schedule 'mine' must be ≥ 0"),
    "nan": (user_schedule(ones, lambda s: np.full(s.size, np.nan), always), "temperature of schedule 'mine' must be"),
    "negative": (user_schedule(lambda s: -ones(s), ones, always), "minimum -1.0"),
    "keep": (user_schedule(ones, ones, ones), "keep of schedule 'mine' must be booleans"),
    "no factors": (schedules.Schedule("mine", lambda steps, total: 1.0), "must return Factors, got float"),
    "keeps nothing": (
        user_schedule(ones, ones, lambda s: np.zeros(s.size, bool)), "schedule mine keeps none of the draws",
    ),
    "too many cycles": (schedules.cosine_cycles(30), "n_cycles must be ≤ n_steps = 10, got 30"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SCHEDULES)
def test_bad_schedules_are_refused(name):
    schedule, message = BAD_SCHEDULES[name]
    with pytest.raises((TypeError, ValueError), match=message):
        sample(NORMAL, samplers.sgld(0.1, schedule=schedule), n_steps=10, seed=1)
    with pytest.raises((TypeError, ValueError), match=message):
        stream(NORMAL, samplers.sgld(0.1, schedule=schedule), n_steps=10, seed=1)


def test_a_user_schedule_works():
    mine = user_schedule(lambda s: 1.0 / (1 + s), lambda s: 2.0 * ones(s), lambda s: s % 2 == 1)
    run = sample(NORMAL, samplers.sgld(0.1, schedule=mine), n_steps=10, seed=1)
    assert run.steps.tolist() == [1, 3, 5, 7, 9]
