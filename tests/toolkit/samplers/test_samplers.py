"""Every named sampler is the composition its docstring says, with the papers' numbers and one name for one thing."""

import inspect

import numpy as np
import pytest

from targets import mixtures
from toolkit import Sampler, boundaries, dynamics, sample, samplers, schedules, tempering
from toolkit.dynamics.metropolis import total_leapfrogs
from toolkit.tempering.contour_tempering import Partition, step_decay

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ

COSINE = mixtures.cosine25()
PARTITION = Partition(-4.0, 0.5, 20)
# The vocabulary: where a constructor has one of these at all, it is called so.
REPLICAS = {"step_size", "step_sizes", "temperature", "temperatures", "n_replicas"}
CHOICES = {
    "schedule",
    "boundary",
    "gradient_noise",
    "energy_noise",
    "correction",
    "swap_every",
    "swap_threshold",
    "scheme",
}
NUMBERS = {
    "window", "friction", "noise_estimate", "inertia", "by_coordinate", "zeta", "partition", "decay", "floor",
    "freezes",
    "drift_correction", "n_cycles", "exploration", "top_temperature", "bias", "resample_every", "thermostat", "tempers",
    "bandwidth", "preconditioned", "n_leapfrogs", "random_length",
}  # fmt: skip

# Constructor → what it is given, the numbers of its defaults, and gradient evaluations per chain and step.
EXCHANGE = {"correction": None, "swap_every": 1, "scheme": "deo", "window": 1}
TACT = {"friction": 0.05, "inertia": 1.0, "thermostat": True, "tempers": True}
R2SGLD = {"step_sizes": (5e-4, 1.5e-3), "temperatures": (1.0, 10.0)}
PT = {"temperatures": (1.0, 2.0, 4.0, 8.0), "swap_every": 1, "window": 1}
CONTOUR = {"zeta": 0.75, "partition": None, "decay": step_decay(gain=1.0, exponent=0.6, offset=100.0, cap=3e-3)}
CONTOUR["freezes"] = False
NAMED = {
    "sgld": ((), {}, {"step_size": 3e-3, "temperature": 1.0}, 1),
    "psgld": ((), {}, {"step_size": 0.01, "decay": 0.99, "floor": 1e-5, "drift_correction": True}, 2),
    "sghmc": ((), {}, {"step_size": 0.01, "temperature": 1.0, "friction": 0.5, "noise_estimate": 0.0}, 1),
    "sgnht": ((), {}, {"step_size": 0.01, "friction": 0.05, "inertia": 1.0, "by_coordinate": False}, 1),
    "cyclical_sgld": ((), {}, {"step_size": 0.09, "n_cycles": 30, "exploration": 0.25, "floor": 0.0}, 1),
    "cyclical_sghmc": (
        (), {}, {"step_size": 0.09, "n_cycles": 30, "exploration": 0.25, "floor": 0.0, "friction": 0.5}, 1,
    ),
    "csgld": ((), {}, {"step_size": 3e-3, "temperature": 1.0, **CONTOUR}, 1),
    "icsgld": ((), {}, {"step_size": 3e-3, "temperature": 1.0, "n_replicas": 5, **CONTOUR}, 5),
    "icsghmc": ((), {}, {"step_size": 3e-3, "n_replicas": 5, "friction": 0.1, "noise_estimate": 0.0, **CONTOUR}, 5),
    "resgld": ((), {}, {**R2SGLD, **EXCHANGE, "swap_threshold": None}, 2),
    "r2sgld": ((), {}, {**R2SGLD, **EXCHANGE, "swap_threshold": None}, 2),
    "r2sghmc": ((), {}, {**R2SGLD, **EXCHANGE, "friction": 0.1, "noise_estimate": 0.0}, 2),
    "tact_hmc": ((), {}, {"step_size": 1.5e-3, "top_temperature": 6.0, **TACT, "bias": "abf", "resample_every": 50}, 1),
    "svgd": ((), {}, {"step_size": 3e-3, "n_replicas": 100, "bandwidth": None, "preconditioned": True}, 100),
    "mala": ((), {}, {"step_size": 0.1, "temperature": 1.0}, 1),
    "hmc": ((), {}, {"step_size": 0.2, "temperature": 1.0, "n_leapfrogs": 10, "random_length": True}, 10),
    "pt_mala": ((), {}, {"step_sizes": (0.1,) * 4, **PT}, 4),
    "pt_hmc": ((), {}, {"step_sizes": (0.2,) * 4, **PT, "n_leapfrogs": 10, "random_length": True}, 40),
    "pt_baoab": ((), {}, {"step_sizes": (0.04,) * 4, **PT, "friction": 0.1, "correction": None}, 4),
}  # fmt: skip
REFLECTED = {"r2sgld", "r2sghmc"}
WITHOUT_NOISE = {"mala", "hmc", "pt_mala", "pt_hmc"}
EXCHANGES = {"resgld", "r2sgld", "r2sghmc", "pt_mala", "pt_hmc", "pt_baoab"}
LOOKS_AT_ENERGIES = {"csgld", "icsgld", "icsghmc", "tact_hmc"} | EXCHANGES - WITHOUT_NOISE
CYCLICAL = {"cyclical_sgld", "cyclical_sghmc"}


def defaults(name):
    """Keyword → default of a constructor; every argument has one."""
    parameters = inspect.signature(getattr(samplers, name)).parameters.values()
    assert all(p.default is not p.empty for p in parameters)
    return {p.name: p.default for p in parameters}


def make(name, **options):
    positional, keywords, _, _ = NAMED[name]
    return getattr(samplers, name)(*positional, **{**keywords, **options})


def test_all_of_the_design_are_there_and_no_others():
    assert set(samplers.__all__) == {*NAMED, "Sampler"}


@pytest.mark.parametrize("name", NAMED)
def test_keywords_are_those_of_the_vocabulary(name):
    parameters = inspect.signature(getattr(samplers, name)).parameters
    assert set(parameters) <= REPLICAS | CHOICES | NUMBERS
    assert [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY] == [next(iter(parameters))]
    assert ("step_sizes" in parameters) == ("temperatures" in parameters) == (name in EXCHANGES)
    assert "boundary" in parameters
    assert ("schedule" in parameters) == (name not in CYCLICAL)
    assert ("gradient_noise" in parameters) == (name not in WITHOUT_NOISE)
    assert ("energy_noise" in parameters) == (name in LOOKS_AT_ENERGIES)


@pytest.mark.parametrize("name", NAMED)
def test_defaults_are_the_papers(name):
    given = defaults(name)
    for keyword, value in NAMED[name][2].items():
        assert given[keyword] == value, keyword
    sampler = make(name)
    assert sampler.name == name
    assert sampler.boundary.kind == ("reflect" if name in REFLECTED else "ignore")
    assert sampler.gradient_noise == sampler.energy_noise == 0.0
    assert sampler.schedule.name == (
        "cosine_cycles(30, exploration=0.25, floor=0.0)" if name in CYCLICAL else "constant()"
    )


@pytest.mark.slow_cases("resgld-1.0", "mala-1.0")
@pytest.mark.parametrize("curvature", [1.0, 10.0])
@pytest.mark.parametrize("name", [name for name in NAMED if name != "svgd"])
def test_defaults_are_stable_with_a_small_bias_where_the_curvature_is_1_to_10(name, curvature):
    """The variance of a Gaussian to 5 %, from exact starts; cyclical ones, whose steps are large, to 30 %."""
    sampler = getattr(samplers, name)(**{"boundary": boundaries.ignore()} if name in REFLECTED else {})
    assert off_by(sampler, curvature) < (0.3 if name in CYCLICAL else 0.05)
    if name == "sgld" and curvature == 10.0:
        assert off_by(samplers.sgld(0.03), curvature) > 0.05


def off_by(sampler, curvature):
    """Share by which the variance of a Gaussian in the plane is off, beyond 4.5 standard errors between chains."""
    scale = np.sqrt(np.array(sampler.temperatures) / curvature)[:, None]
    start = scale * np.random.default_rng(0).standard_normal((128, sampler.n_replicas, 2))
    target = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0 / curvature)
    run = sample(target, sampler, n_steps=4_000, burn_in=1_000, n_chains=128, init=start, seed=1, progress=False)
    of_chains = curvature * (run.weights[..., None] * run.draws**2).sum(axis=(1, 2)) / (2.0 * run.weights.sum(axis=1))
    error = of_chains.std(ddof=1) / np.sqrt(of_chains.size)
    return max(0.0, abs(of_chains.mean() - 1.0) - 4.5 * error)


def written_out():
    """Each sampler with numbers of its own, by its constructor and by ``Sampler``."""
    decaying, edge, decay = schedules.exponential_decay(0.99), boundaries.penalise(2.0), step_decay(gain=2.0)
    free = {"schedule": decaying, "boundary": edge}
    noisy = {**free, "gradient_noise": 0.3}
    both = {**noisy, "energy_noise": 0.2}
    hot = {"temperature": 2.0}
    langevin, underdamped = dynamics.langevin(), dynamics.underdamped_langevin(friction=0.3, noise_estimate=0.1)
    cycles = {"n_cycles": 4, "exploration": 0.5, "floor": 0.1}
    cyclical = {
        "schedule": schedules.cosine_cycles(4, exploration=0.5, floor=0.1),
        "boundary": edge,
        "gradient_noise": 0.3,
    }
    flat = {"zeta": 0.5, "partition": PARTITION, "decay": decay, "freezes": True}
    swaps = {"correction": 0.7, "swap_every": 3, "scheme": "deo", "window": 2}
    ladder = (0.1, 0.2, 0.3), (1.0, 2.0, 5.0)
    coupled = {"top_temperature": 4.0, "friction": 0.02, "inertia": 2.0, "bias": "metadynamics", "resample_every": 9}
    friction = {"friction": 0.3, "noise_estimate": 0.1}

    def replicas(n):
        return (0.1,) * n, (2.0,) * n

    yield samplers.sgld(0.1, **hot, **noisy), ("sgld", *replicas(1), langevin), noisy
    scaled = {"decay": 0.9, "floor": 0.1, "drift_correction": False}
    yield samplers.psgld(0.1, **scaled, **hot, **noisy), (
        "psgld", *replicas(1), dynamics.preconditioned_langevin(**scaled),
    ), noisy  # fmt: skip
    yield samplers.sghmc(0.1, **friction, **hot, **noisy), ("sghmc", *replicas(1), underdamped), noisy
    heated = {"friction": 0.2, "inertia": 3.0, "by_coordinate": True}
    yield samplers.sgnht(0.1, **heated, **hot, **noisy), ("sgnht", *replicas(1), dynamics.nose_hoover(**heated)), noisy
    yield samplers.cyclical_sgld(0.1, **cycles, **hot, boundary=edge, gradient_noise=0.3), (
        "cyclical_sgld", *replicas(1), langevin,
    ), cyclical  # fmt: skip
    yield samplers.cyclical_sghmc(0.1, **cycles, **friction, **hot, boundary=edge, gradient_noise=0.3), (
        "cyclical_sghmc", *replicas(1), underdamped,
    ), cyclical  # fmt: skip
    yield samplers.csgld(0.1, **flat, **hot, **both), ("csgld", *replicas(1), langevin), {
        **both, "tempering": tempering.contour(**flat, field="theta_zeta"),
    }  # fmt: skip
    interacting = {**both, "tempering": tempering.contour(**flat, field="theta")}
    yield samplers.icsgld(0.1, n_replicas=3, **flat, **hot, **both), ("icsgld", *replicas(3), langevin), interacting
    yield samplers.icsghmc(0.1, n_replicas=3, **friction, **flat, **hot, **both), (
        "icsghmc", *replicas(3), underdamped,
    ), interacting  # fmt: skip
    for name in ("resgld", "r2sgld", "r2sghmc"):
        extra = {} if name == "r2sghmc" else {"swap_threshold": 0.5}
        own = friction if name == "r2sghmc" else {}
        sampler = getattr(samplers, name)(ladder[0], temperatures=ladder[1], **swaps, **extra, **own, **both)
        way = underdamped if own else langevin
        yield sampler, (name, *ladder, way), {**both, "tempering": tempering.replica_exchange(**swaps, **extra)}
    for tempers in (True, False):
        for thermostat in (True, False):
            rule = tempering.continuous_tempering(**coupled, thermostat=thermostat) if tempers else None
            way = dynamics.nose_hoover(friction=0.02, inertia=2.0)
            options = both if tempers else noisy
            yield samplers.tact_hmc(0.1, **coupled, thermostat=thermostat, tempers=tempers, **hot, **options), (
                "tact_hmc", *replicas(1), way if thermostat else dynamics.underdamped_langevin(friction=0.02),
            ), {**options, "tempering": rule}  # fmt: skip
    for scales in (True, False):
        yield samplers.svgd(0.1, n_replicas=4, bandwidth=0.7, preconditioned=scales, **hot, **noisy), (
            "svgd", *replicas(4), dynamics.descent(preconditioned=scales),
        ), {**noisy, "tempering": tempering.stein(bandwidth=0.7)}  # fmt: skip
    yield samplers.mala(0.1, **hot, **free), ("mala", *replicas(1), dynamics.mala()), free
    yield samplers.hmc(0.1, n_leapfrogs=4, **hot, **free), ("hmc", *replicas(1), dynamics.hmc(n_leapfrogs=4)), free
    rounds, trajectories = {"swap_every": 3, "window": 2}, {"n_leapfrogs": 4, "random_length": False}
    exchanging = {**free, "tempering": tempering.replica_exchange(scheme="deo", **rounds)}
    yield samplers.pt_mala(ladder[0], temperatures=ladder[1], **rounds, **free), (
        "pt_mala", *ladder, dynamics.mala(),
    ), exchanging  # fmt: skip
    yield samplers.pt_hmc(ladder[0], temperatures=ladder[1], **trajectories, **rounds, **free), (
        "pt_hmc", *ladder, dynamics.hmc(**trajectories),
    ), exchanging  # fmt: skip
    yield samplers.pt_baoab(ladder[0], temperatures=ladder[1], friction=0.3, correction=0.7, **rounds, **both), (
        "pt_baoab", *ladder, dynamics.baoab(friction=0.3),
    ), {**both, "tempering": tempering.replica_exchange(correction=0.7, scheme="deo", **rounds)}  # fmt: skip


WRITTEN_OUT = list(written_out())


@pytest.mark.parametrize("case", WRITTEN_OUT, ids=lambda case: case[0].name)
def test_a_constructor_is_its_composition(case):
    """Equal in all parts; schedules, which hold functions, by name and by what they give."""
    sampler, (name, sizes, temperatures, way), parts = case
    general = Sampler(name, sizes, temperatures, dynamics=way, **parts)
    for field in Sampler.__dataclass_fields__:
        if field != "schedule":
            assert getattr(sampler, field) == getattr(general, field), field
    assert sampler.schedule.name == general.schedule.name
    first, second = (s.schedule.factors(np.arange(40), 40) for s in (sampler, general))
    np.testing.assert_array_equal(first, second)


def test_every_constructor_is_written_out():
    assert {case[0].name for case in WRITTEN_OUT} == set(NAMED)


def short_run(sampler, n_chains=3, seed=6, **options):
    start = np.random.default_rng(seed).uniform(-0.5, 0.5, (50, 100, 2))
    init = start[:n_chains, : sampler.n_replicas]
    return sample(COSINE, sampler, n_steps=31, n_chains=n_chains, init=init, seed=seed, **options)


SMALL = {"n_cycles": 3, "n_replicas": 4, "partition": PARTITION, "boundary": boundaries.ignore()}


def taken(name):
    """The keywords of a constructor."""
    return set(inspect.signature(getattr(samplers, name)).parameters)


def cheap(name, **options):
    """The sampler with few replicas, little of a cycle, and no pilot run or domain."""
    return make(name, **{k: v for k, v in SMALL.items() if k in taken(name)}, **options)


@pytest.mark.parametrize("name", NAMED)
def test_draws_weights_and_costs(name):
    """Replicas that sample the target fold into its draws step by step, weights beside them; costs are counted."""
    sampler = cheap(name)
    replicas, kept = sampler.n_replicas, sampler.n_target_replicas
    assert kept == (1 if name in EXCHANGES else replicas)
    run = short_run(sampler)
    n = run.steps.size
    assert n == (31 if name not in CYCLICAL else 31 - 3 - 3 - 3)  # of 11, 11 and 9 steps, a quarter explores
    assert run.draws.shape == (3, n * kept, 2)
    assert run.weights.shape == (3, n * kept)
    assert run.replica_draws.shape == (3, kept, n, 2)
    for r in range(kept):
        np.testing.assert_array_equal(run.draws[:, r::kept], run.replica_draws[:, r])
        if run.replica_weights is not None:
            np.testing.assert_array_equal(run.weights[:, r::kept], run.replica_weights[:, r])
    assert (run.weights > 0).all() or name == "tact_hmc"
    weighted = name in ("csgld", "icsgld", "icsghmc", "tact_hmc")
    assert (run.replica_weights is not None) == weighted == sampler.is_weighted
    assert (run.weights == 1.0).all() or weighted
    hamiltonian = name in ("hmc", "pt_hmc")
    per_replica = {"psgld": 2, "hmc": 10, "pt_hmc": 10}.get(name, 1)
    assert sampler.gradients_per_step == per_replica * replicas
    per_lane = total_leapfrogs(10, run.seed, 0, 31) if hamiltonian else 31 * per_replica
    evaluations = 3 * replicas * per_lane
    assert run.gradient_evaluations == evaluations
    assert make(name).gradients_per_step == NAMED[name][3]
    assert short_run(sampler, keep_replicas=True).replica_draws.shape == (3, replicas, n, 2)
    assert np.isnan(run.acceptance).all() == (name not in WITHOUT_NOISE)


@pytest.mark.parametrize("name", NAMED)
def test_a_sweep_over_chains_is_runs_with_one_value_each(name):
    """Chain c of a run with a value per chain has the bits of chain c where all chains have its value."""
    make_one = getattr(samplers, name)
    if "step_sizes" in taken(name):
        sizes, temperatures = np.array([[1e-3, 2e-3], [2e-3, 5e-3], [4e-3, 1e-2]]), [[1.0, 3.0], [0.5, 4.0], [2.0, 2.5]]
        edge = boundaries.ignore()
        swept = make_one(sizes, temperatures=temperatures, boundary=edge)
        single = [make_one(s, temperatures=t, boundary=edge) for s, t in zip(sizes, temperatures, strict=True)]
    else:
        sizes, temperatures = np.array([1e-3, 2e-3, 4e-3]), [1.0, 0.5, 2.0]
        options = {k: v for k, v in SMALL.items() if k in taken(name)}
        swept = make_one(sizes, temperature=temperatures, **options)
        single = [make_one(float(s), temperature=t, **options) for s, t in zip(sizes, temperatures, strict=True)]
    assert swept.n_chains == 3
    together = short_run(swept)
    for c, sampler in enumerate(single):
        alone = short_run(sampler)
        np.testing.assert_array_equal(together.draws[c], alone.draws[c])
        np.testing.assert_array_equal(together.weights[c], alone.weights[c])
        assert (together.draws[c] != alone.draws[c - 1]).any()
