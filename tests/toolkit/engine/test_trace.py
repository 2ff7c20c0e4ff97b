"""The trace: what a sampler knew of itself, against the same computed from its draws."""

import numpy as np
import pytest

from targets import constrained, mixtures, shapes
from toolkit import (
    InterruptedWarning,
    Layout,
    Sampler,
    boundaries,
    dynamics,
    sample,
    samplers,
    schedules,
    stream,
    tempering,
)
from toolkit.tempering.contour_tempering import Partition, step_decay

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ

COSINE = mixtures.cosine25()
FLOWER = constrained(COSINE, shapes.flower())
PARTITION = Partition(-4.0, 0.5, 16)
ALWAYS = ["energy", "multiplier", "walker"]
COUPLED = ["xi", "xi_momentum", "xi_thermostat"]
RUNG = {"step_sizes": (2e-3, 4e-3, 8e-3), "temperatures": (1.0, 2.0, 4.0)}

FIELDS = {
    "sgld": (samplers.sgld(2e-3), ALWAYS),
    "psgld": (
        samplers.psgld(0.02, floor=1.0),
        [*ALWAYS, *(f"{name}[{d}]" for name in ("square", "scale", "tangent") for d in (0, 1))],
    ),
    "sghmc": (samplers.sghmc(2e-3), ALWAYS),
    "sgnht": (samplers.sgnht(2e-3), [*ALWAYS, "thermostat"]),
    "sgnht by coordinate": (
        samplers.sgnht(2e-3, by_coordinate=True),
        [*ALWAYS, "thermostat[0]", "thermostat[1]"],
    ),
    "icsgld": (samplers.icsgld(2e-3, partition=PARTITION, n_replicas=3), ALWAYS),
    "resgld": (samplers.resgld(RUNG["step_sizes"], temperatures=RUNG["temperatures"]), ALWAYS),
    "tact_hmc": (samplers.tact_hmc(5e-4), [*ALWAYS, "thermostat", *COUPLED]),
    "svgd": (samplers.svgd(n_replicas=4), [*ALWAYS, "square[0]", "square[1]"]),
    "mala": (samplers.mala(0.02), ALWAYS),
}


def run(sampler, problem=COSINE, **options):
    start = np.random.default_rng(1).uniform(-0.4, 0.4, (4, sampler.n_replicas, 2))
    options = {"n_steps": 60, "n_chains": 4, "seed": 5, "init": start, "trace_every": 1, **options}
    result = sample(problem, sampler, keep_replicas=True, **options)
    path = np.concatenate([options["init"][:, :, None], result.replica_draws], axis=2)
    return result, result.trace, path


@pytest.mark.parametrize("name", FIELDS)
def test_fields_shapes_and_steps(name):
    sampler, fields = FIELDS[name]
    result, trace, _ = run(sampler, n_steps=50, burn_in=20, thin=4, trace_every=7)
    assert list(trace.fields) == fields
    assert trace.steps.tolist() == [6, 13, 20, 27, 34, 41, 48]  # from 0, burn-in included
    assert {values.shape for values in trace.fields.values()} == {(4, sampler.n_replicas, 7)}
    assert all(np.isfinite(values).all() for values in trace.fields.values())
    if name == "icsgld":
        assert trace.theta.shape == (4, 7, PARTITION.n_bins)
        np.testing.assert_allclose(trace.theta.sum(axis=2), 1.0, rtol=1e-12)
    else:
        assert trace.theta is None
    plain = run(sampler, n_steps=50, burn_in=20, thin=4, trace_every=None)[0]
    assert plain.trace is None
    np.testing.assert_array_equal(plain.draws, result.draws)


def test_the_last_moment_is_the_end():
    result, trace, _ = run(FIELDS["icsgld"][0])
    np.testing.assert_array_equal(trace.theta[:, -1], result.theta)
    assert run(FIELDS["sgld"][0], trace_every=60)[1].steps.tolist() == [59]


@pytest.mark.parametrize("name", ["sgld", "psgld", "sgnht", "icsgld", "mala", "tact_hmc"])
def test_energies_are_those_where_a_step_began(name):
    result, trace, path = run(FIELDS[name][0])
    before = COSINE.evaluate(path[:, :, :-1].reshape(-1, 2))[0].reshape(trace.fields["energy"].shape)
    np.testing.assert_array_equal(trace.fields["energy"], before)
    assert (trace.fields["walker"] == np.arange(result.sampler.n_replicas)[:, None]).all()


def half(z, kinetic, h, temperature, inertia):
    """Half a step of the thermostat."""
    return 0.5 * h * ((1.0 - 0.5 * z) * kinetic - temperature) / inertia


def test_thermostats_follow_their_recursion():
    """z ← z + h ((1 − z/2) |p|²/D − T)/(2γ) twice, with p = (x − x')/√h of the step; the fields of both kinds."""
    h, temperature, inertia = 2e-3, 2.0, 0.5
    for by_coordinate in (False, True):
        sampler = samplers.sgnht(h, inertia=inertia, by_coordinate=by_coordinate, temperature=temperature)
        _, trace, path = run(sampler)
        squares = np.diff(path, axis=2)[:, :, :-1] ** 2 / h
        names = ["thermostat[0]", "thermostat[1]"] if by_coordinate else ["thermostat"]
        for d, name in enumerate(names):
            z = trace.fields[name]
            kinetic = squares[..., d] if by_coordinate else squares.mean(axis=3)
            # p of a step ends that step and begins the next: z goes through both halves between their middles.
            middle = z[:, :, :-1] + half(z[:, :, :-1], kinetic, h, temperature, inertia)
            after = np.diff(path, axis=2)[:, :, 1:] ** 2 / h
            following = after[..., d] if by_coordinate else after.mean(axis=3)
            law = middle + half(middle, following, h, temperature, inertia)
            np.testing.assert_allclose(z[:, :, 1:], law, rtol=1e-8, atol=1e-12)
            assert np.abs(z[:, :, 1:] - law + half(middle, following, h, 0.5 * temperature, inertia)).max() > 1e-4


def test_squares_of_gradients_follow_their_recursion():
    _, trace, path = run(samplers.psgld(0.02, floor=1.0, decay=0.8))
    gradient = COSINE.evaluate(path[:, :, :-1].reshape(-1, 2))[1].reshape(4, 1, 60, 2)
    for d in range(2):
        square = trace.fields[f"square[{d}]"]
        curvature = 0.4 + 8.0 * np.pi**2 * np.cos(2.0 * np.pi * path[:, :, 0, d])
        first = 0.8 * np.abs(curvature) + 0.2 * gradient[:, :, 0, d] ** 2  # V begins at T |H|
        np.testing.assert_allclose(square[:, :, 0], first, rtol=1e-3)
        law = 0.8 * square[:, :, :-1] + 0.2 * gradient[:, :, 1:, d] ** 2
        np.testing.assert_allclose(square[:, :, 1:], law, rtol=1e-13)
        np.testing.assert_allclose(trace.fields[f"scale[{d}]"], 1.0 / (1.0 + np.sqrt(square)), rtol=1e-14)


@pytest.mark.parametrize("scheme", ["deo", "seo", "adjacent", "all_pairs"])
def test_walkers_permute_and_count_the_swaps(scheme):
    sampler = Sampler("ladder", **RUNG, tempering=tempering.replica_exchange(scheme=scheme))
    result, trace, _ = run(sampler, n_steps=300)
    walker = trace.fields["walker"]
    assert (np.sort(walker, axis=1) == np.arange(3)[:, None]).all()
    assert (walker[:, :, 0] == np.arange(3)).all()  # nothing is swapped at step 0
    changes = (np.diff(walker, axis=2) != 0).any(axis=1).sum(axis=1)
    assert changes.min() > 20
    if scheme in ("deo", "seo"):  # one pair of three rungs at a time
        np.testing.assert_array_equal(changes, result.swaps.sum(axis=1))
    trips = [round_trips(chain[:, 1:]) for chain in walker]  # counted from the first attempt on
    np.testing.assert_array_equal(result.round_trips, trips)
    assert sum(trips) > 0


def round_trips(walker):
    """Of all walkers of a chain, (rung, time): coldest → hottest → coldest."""
    total, last_end = 0, np.zeros(len(walker), int)
    last_end[0] = 1  # it begins at the coldest rung
    for rungs in walker.T.astype(int):
        cold, hot = rungs[0], rungs[-1]
        total += last_end[cold] == 2
        last_end[cold] = 1
        last_end[hot] = 2 if last_end[hot] == 1 else last_end[hot]
    return total


def test_walkers_carry_their_state():
    """Where rungs all but share a temperature every swap is accepted, and a walker's path has no jumps."""
    sampler = Sampler("even", (1e-6, 1e-6), (1.0, 1.0 + 1e-9), tempering=tempering.replica_exchange())
    _, trace, path = run(sampler)
    walker = trace.fields["walker"].astype(int)
    assert (walker[:, 0] == np.arange(60) % 2).all()
    by_walker = np.take_along_axis(path[:, :, 1:], np.argsort(walker, axis=1)[..., None], axis=1)
    assert np.abs(np.diff(by_walker, axis=2)).max() < 0.02
    assert np.abs(np.diff(path, axis=2)).max() > 0.1


def test_multipliers_of_contour_follow_from_theta():
    """1 + ζ T (log θ(J) − log θ(J−1)) / Δu of the θ before the step, where both bins have been visited."""
    zeta, temperature = 0.6, 1.5
    rule = tempering.contour(zeta=zeta, partition=PARTITION, decay=step_decay(gain=5.0, offset=20.0, cap=0.2))
    sampler = Sampler("contour", (4e-3,) * 3, (temperature,) * 3, tempering=rule)
    _, trace, _ = run(sampler, n_steps=200)
    checked = 0
    energy, multiplier = trace.fields["energy"][:, :, 1:], trace.fields["multiplier"][:, :, 1:]
    bins = np.clip(np.floor((energy - PARTITION.u_min) / PARTITION.width), 0, PARTITION.n_bins - 1).astype(int)
    for chain in range(4):
        for replica in range(3):
            for time, j in enumerate(bins[chain, replica]):
                theta, inside = trace.theta[chain, time], energy[chain, replica, time] < PARTITION.u_max
                slopes = j > 0 and inside and min(theta[j - 1], theta[j]) > 0
                law = 1.0 + zeta * temperature * np.log(theta[j] / theta[j - 1]) / PARTITION.width if slopes else 1.0
                assert multiplier[chain, replica, time] == pytest.approx(law, rel=1e-12)
                checked += slopes
    assert checked > 500
    assert np.abs(multiplier - 1.0).max() > 0.1


def test_tempering_variables_follow_their_recursion():
    """ξ ← ξ + √h p_ξ between its walls, and the multiplier is λ(ξ) of the step before."""
    h = 1e-3
    rule = tempering.continuous_tempering(step_size=h, resample_every=1000)
    sampler = Sampler("coupled", (1e-3,), dynamics=dynamics.underdamped_langevin(), tempering=rule)
    result, trace, _ = run(sampler, n_steps=2000)
    xi, momentum = trace.fields["xi"], trace.fields["xi_momentum"]
    moved = np.diff(xi)
    inside = moved != 0.0
    np.testing.assert_allclose(moved[inside], np.sqrt(h) * momentum[:, :, 1:][inside], rtol=1e-9, atol=1e-13)
    assert inside.mean() > 0.95
    assert np.abs(xi).max() > 0.5
    before = np.concatenate([np.zeros((4, 1, 1)), xi[:, :, :-1]], axis=2)
    np.testing.assert_allclose(trace.fields["multiplier"], rule.coupling(before)[0], rtol=1e-13)
    np.testing.assert_array_equal(result.weights, (np.abs(xi[:, 0]) <= rule.plateau).astype(float))


@pytest.mark.parametrize("chunk_steps", [1, 13, 64])
@pytest.mark.parametrize("name", ["icsgld", "resgld", "tact_hmc", "sgnht by coordinate"])
def test_a_stream_joins_to_the_trace(name, chunk_steps):
    sampler = FIELDS[name][0]
    _, whole, _ = run(sampler, burn_in=11, trace_every=4)
    start = np.random.default_rng(1).uniform(-0.4, 0.4, (4, sampler.n_replicas, 2))
    arguments = {"n_steps": 60, "n_chains": 4, "seed": 5, "init": start, "trace_every": 4, "burn_in": 11}
    chunks = [c.trace for c in stream(COSINE, sampler, layout=Layout(chunk_steps=chunk_steps), **arguments)]
    assert len(chunks) == -(-60 // chunk_steps)
    np.testing.assert_array_equal(np.concatenate([c.steps for c in chunks]), whole.steps)
    for field, values in whole.fields.items():
        np.testing.assert_array_equal(np.concatenate([c.fields[field] for c in chunks], axis=2), values)
    if whole.theta is not None:
        np.testing.assert_array_equal(np.concatenate([c.theta for c in chunks], axis=1), whole.theta)


def test_an_interrupted_run_keeps_the_trace_so_far():
    """Ctrl-C after the chunk of steps 30 to 39: the schedule raises it in place of the keyboard."""

    def factors(steps, total_steps):
        if interrupts and steps.size == 10 and steps[0] >= 40:
            raise KeyboardInterrupt
        return schedules.constant().factors(steps, total_steps)

    schedule = schedules.Schedule("mine", factors, keeps_all=True)
    sampler = samplers.r2sgld((2e-3, 4e-3), temperatures=(1.0, 3.0), schedule=schedule)
    options = {"n_steps": 100, "n_chains": 3, "seed": 2, "trace_every": 3, "layout": Layout(chunk_steps=10)}
    interrupts = False
    whole = sample(FLOWER, sampler, **options)
    interrupts = True
    with pytest.warns(InterruptedWarning, match="interrupted after 40 of 100 steps"):
        part = sample(FLOWER, sampler, **options)
    assert part.trace.steps.tolist() == list(range(2, 40, 3))
    for field, values in part.trace.fields.items():
        np.testing.assert_array_equal(values, whole.trace.fields[field][:, :, :13])


def test_penalties_and_reflections_are_seen():
    """The energy of the trace holds the penalty; the momentum fields are those of the step, whatever the edge does."""
    sampler = samplers.sgld(0.05, boundary=boundaries.penalise(0.5), temperature=4.0)
    _, trace, path = run(sampler, FLOWER, n_steps=200)
    points = path[:, :, :-1].reshape(-1, 2)
    outside = ~FLOWER.contains(points)
    assert outside.sum() > 20
    law = COSINE.evaluate(points)[0] + 0.25 * outside * shapes.flower().distance(points) ** 2
    np.testing.assert_allclose(trace.fields["energy"].ravel(), law, rtol=1e-13)
