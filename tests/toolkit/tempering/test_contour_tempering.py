"""Contour's kernels against plain Python, entry by entry, and what equals what bit for bit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numba import types
from numpy.testing import assert_allclose, assert_array_equal

from targets import mixtures
from toolkit import Layout, Sampler, sample, samplers, schedules, tempering
from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part
from toolkit.tempering import contour_tempering
from toolkit.tempering.contour_tempering import FIELDS, Partition, contour_state, step_decay, theta_of, visits_of

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
LANES = 8
ROWS = (
    "place", "bins", "log_theta", "theta_below", "multiplier", "log_psi", "log_weight", "share", "entry", "next_scale",
)  # fmt: skip
UNSETTLED = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs of some hundred steps are not settled


def flatten_once(energy, temperature, place, bins, top, bottom, multiplier, log_psi, weight, state, numbers, replicas):
    levels = contour_tempering.Levels(place, bins, top, bottom, multiplier, log_psi, weight)
    contour_tempering.contour_multiplier(energy, temperature, levels, state, numbers, 1, replicas)


def learn_once(bins, place, top, log_weight, share, added, left, state, numbers, step, replicas):
    levels = contour_tempering.Levels(place, bins, top, top, top, top, log_weight)
    contour_tempering.update_theta(
        levels, contour_tempering.Shares(share, added, left), state, numbers, step, 1, replicas
    )


class Kernels:
    """The compiled kernels for one chain, with the rows they write."""

    def __init__(self, part, n_replicas, burn_in=0):
        floats, state = signatures.FLOATS, contour_tempering.CONTOUR_STATE
        self.flatten_lanes = compile_part(flatten_once, types.void(*(floats,) * 9, state, floats, types.int64))
        learns = types.void(*(floats,) * 7, state, floats, types.int64, types.int64)
        self.learn_lanes = compile_part(learn_once, learns)
        self.part, self.n_replicas = part, n_replicas
        self.numbers, self.state = part.parameters(burn_in), contour_state(part, 1)
        for name in ROWS:
            setattr(self, name, np.zeros(LANES))

    def flatten(self, energies, temperature):
        energy = np.zeros(LANES)
        energy[: len(energies)] = energies
        self.flatten_lanes(
            energy, np.full(LANES, temperature), self.place, self.bins, self.log_theta, self.theta_below,
            self.multiplier, self.log_psi, self.log_weight, self.state, self.numbers, self.n_replicas,
        )  # fmt: skip

    def learn(self, step):
        self.learn_lanes(
            self.bins, self.place, self.log_theta, self.log_weight, self.share, self.entry, self.next_scale, self.state,
            self.numbers, step, self.n_replicas,
        )  # fmt: skip


class Paper:
    """One chain with θ as a plain vector, every entry of which changes at every step."""

    def __init__(self, part):
        self.part, self.theta, self.visits = part, [0.0] * part.partition.n_bins, [0] * part.partition.n_bins

    def nearest(self, j):
        seen = [i for i, n in enumerate(self.visits) if n]
        return min(seen, key=lambda i: (abs(i - j), i), default=None)  # of two equally near, the lower

    def flatten(self, energy, temperature):
        """Bin, multiplier, log Ψ, log weight."""
        part, cells = self.part, self.part.partition
        u, n = (energy - cells.u_min) / cells.width, cells.n_bins
        j = 0 if math.isnan(u) else min(max(math.floor(u), 0), n - 1)
        at = self.nearest(j)
        top = math.log(self.theta[at]) if at is not None else 0.0
        if at != j or j == 0 or u >= n or not self.visits[j - 1]:
            return j, 1.0, top, top
        bottom = math.log(self.theta[j - 1])
        log_psi = bottom + (top - bottom) * (u - j)
        multiplier = 1.0 + part.zeta * temperature * (top - bottom) / cells.width
        return j, multiplier, log_psi, log_psi if part.interpolated else top

    def step(self, k, energies, temperature):
        part, cells, decay = self.part, self.part.partition, self.part.decay
        omega = min(decay.cap, decay.gain / ((k + 1) ** decay.exponent + decay.offset)) / len(energies)
        seen = [self.flatten(energy, temperature) for energy in energies]
        taught = []
        for energy, (j, _, _, log_weight) in zip(energies, seen, strict=True):
            if not cells.u_min <= energy < cells.u_max:
                continue
            at = self.nearest(j)
            log_top = math.log(self.theta[at]) if at is not None else 0.0
            log_c = part.zeta * log_weight + (0.0 if part.field == "theta_zeta" else (1.0 - part.zeta) * log_top)
            taught.append((j, omega * math.exp(log_c)))
        for j, _ in taught:
            if self.visits[j] == 0:
                at = self.nearest(j)
                self.theta[j] = self.theta[at] if at is not None else 1.0
                total = math.fsum(self.theta)
                self.theta = [value / total for value in self.theta]
            self.visits[j] += 1
        rest = 1.0 - sum(share for _, share in taught)
        self.theta = [rest * value for value in self.theta]
        for j, share in taught:
            self.theta[j] += share
        return seen


def test_steps_of_theta_are_those_of_the_decay_in_any_order_and_of_any_decay():
    """ω_k in a row, after jumps ahead and back, and with another exponent from one step to the next."""
    cells, first, second = Partition(2.0, 0.5, 16), step_decay(cap=1.0), step_decay(gain=3.0, exponent=0.9, cap=1.0)
    kernels = Kernels(tempering.contour(zeta=0.0, partition=cells, decay=first), 1)
    numbers = {
        decay: tempering.contour(zeta=0.0, partition=cells, decay=decay).parameters() for decay in (first, second)
    }
    for decay, steps in ((first, [*range(150), 10_000, 10_001, 3]), (second, [4, 5]), (first, [6, 10**12])):
        kernels.numbers = numbers[decay]
        for k in steps:
            kernels.flatten([3.1], 1.0)
            kernels.learn(k)
            assert kernels.share[0] == pytest.approx(decay.gain / ((k + 1) ** decay.exponent + decay.offset), rel=1e-13)


@pytest.mark.cases(2)
@pytest.mark.parametrize("interpolated", [True, False])
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("n_replicas", "zeta", "cap"), [(1, 0.75, 0.9), (3, 0.75, 0.9), (3, 1.3, 0.02)])
def test_the_kernels_are_plain_pythons(n_replicas, zeta, cap, field, interpolated):
    """Energies below and above the partition, first visits in gaps, two at one distance, and nan among them."""
    cells = Partition(2.0, 0.5, 16)
    decay = step_decay(gain=1.0, exponent=0.0, offset=0.0, cap=cap)
    part = tempering.contour(zeta=zeta, partition=cells, field=field, decay=decay, interpolated=interpolated)
    kernels, paper, rng = Kernels(part, n_replicas, burn_in=100), Paper(part), np.random.default_rng(4)
    renormalised, gaps, outside = 0, 0, np.zeros(2, int)
    for k in range(3000 if cap > 0.5 else 800):
        spread = 0.4 if k < 30 else (1.5 if k < 100 else 3.5 if k < 500 else 1.7)  # opens bins one after another
        energies = 5.0 + spread * rng.standard_normal(n_replicas)
        if k < 100:
            energies = 2.25 + 2.0 * np.floor((energies - 2.0) / 2.0)  # every fourth bin at first
        energies[rng.random(n_replicas) < 0.02] = np.nan
        before = kernels.state.scale[0]
        kernels.flatten(energies, 1.7)
        gaps += sum(paper.nearest(j) not in (None, j) for j in (int(b) for b in kernels.bins[:n_replicas]))
        seen = paper.step(k, list(energies), 1.7)
        finite = np.isfinite(energies)
        rows = np.transpose([kernels.bins, kernels.multiplier, kernels.log_psi, kernels.log_weight])[:n_replicas]
        assert_allclose(rows[finite], np.array(seen)[finite], rtol=1e-9, atol=1e-9)
        kernels.learn(k)
        renormalised += kernels.state.scale[0] == 1.0 and before < 1e-50
        theta = theta_of(kernels.state)[0]
        assert_allclose(theta, paper.theta, rtol=1e-9, atol=1e-200)
        if any(paper.visits):
            assert theta.sum() == pytest.approx(1.0, abs=1e-12)
        if k >= 100:
            outside += [(energies < cells.u_min).sum(), (energies >= cells.u_max).sum()]
    assert_array_equal(visits_of(kernels.state)[0], paper.visits)
    assert_array_equal(kernels.state.outside[:2, 0], outside)
    assert min(*outside, gaps) > 5
    assert renormalised >= (cap > 0.5 and field == "theta_zeta")  # the other forgets too slowly here


def test_a_step_of_1_forgets_everything_else():
    """ω = 1 with c = 1, as a pure power begins: θ becomes the bin's unit vector, not 0 / 0."""
    part = tempering.contour(partition=Partition(0.0, 1.0, 4), decay=step_decay(offset=0.0, cap=1.0))
    kernels = Kernels(part, 1)
    for k, energy in enumerate([2.5, 2.5, 1.5, 2.5]):
        kernels.flatten([energy], 1.0)
        kernels.learn(k)
        theta = theta_of(kernels.state)[0]
        assert theta.sum() == pytest.approx(1.0, abs=1e-12)
        if k < 2:
            assert_array_equal(theta, [0.0, 0.0, 1.0, 0.0])
    assert (theta[1:3] > 0.0).all()


def test_a_bin_left_for_ever_keeps_a_logarithm():
    """θ of a bin that is not visited again falls without end; it must not become 0, with a multiplier of inf."""
    part = tempering.contour(partition=Partition(0.0, 1.0, 4), decay=step_decay(offset=0.0, exponent=0.0, cap=0.9))
    kernels = Kernels(part, 1)
    for k, energy in enumerate([2.5, *[1.5] * 2000]):
        kernels.flatten([energy], 1.0)
        kernels.learn(k)
    for energy in (2.5, 3.5):
        kernels.flatten([energy], 1.0)
        assert np.isfinite([kernels.multiplier[0], kernels.log_psi[0]]).all()
        assert -700.0 < kernels.log_theta[0] < -400.0  # the logarithm
    kernels.learn(2001)
    assert theta_of(kernels.state).sum() == pytest.approx(1.0, abs=1e-12)


def find_all(table, visited_range, found):
    for c in range(found.shape[0]):
        for j in range(found.shape[1]):
            found[c, j] = contour_tempering.nearest_visited(table, visited_range, c, j)


def test_the_nearest_visited_bin_is_that_of_a_search_through_all():
    """Chains without a visit, with one, and with holes of all sizes; the range is found once, and then followed."""
    n_bins, rng = 40, np.random.default_rng(7)
    counts = types.int64[:, ::1]
    look_up = compile_part(find_all, types.void(signatures.MATRIX, counts, counts))
    open_bin = compile_part(
        contour_tempering.initialise_bin.py_func,
        types.void(signatures.MATRIX, signatures.FLOATS, counts, types.int64, types.int64),
    )
    state = contour_state(tempering.contour(partition=Partition(0.0, 1.0, n_bins)), 60)
    seen = [set() for _ in range(60)]
    for c in range(60):
        for j in rng.integers(0, n_bins, size=c // 3):
            if j not in seen[c]:
                open_bin(state.table, state.scale, state.visited_range, c, j)
                state.table[c, 2 * j + 1] = 1.0
                seen[c].add(int(j))
    for forgets in (False, True):
        if forgets:
            contour_tempering.forget_visited_range(state)
        found = np.full((60, n_bins), -2)
        look_up(state.table, state.visited_range, found)
        expected = [[min(own, key=lambda i: (abs(i - j), i), default=-1) for j in range(n_bins)] for own in seen]
        assert_array_equal(found, expected)
        assert_array_equal(state.visited_range[0], [min(own, default=n_bins) for own in seen])
        assert_array_equal(state.visited_range[1], [max(own, default=-1) for own in seen])


def test_a_bin_outside_the_visited_ones_is_found_without_a_search():
    """With the range known, no entry of the table is read: here they all are nan."""
    counts = types.int64[:, ::1]
    look_up = compile_part(find_all, types.void(signatures.MATRIX, counts, counts))
    found = np.zeros((2, 9), np.int64)
    look_up(np.full((2, 18), np.nan), np.array([[9, 4], [-1, 4]]), found)
    assert_array_equal(found, [[-1] * 9, [4] * 9])


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("zeta", [0.5, 1.0])
def test_psi_is_continuous_and_the_multiplier_is_its_slope(zeta, temperature):
    """The multiplier is d(U + ζ T log Ψ)/dU by differences; without T or ζ it is not. Ψ jumps nowhere."""
    part = tempering.contour(
        zeta=zeta, partition=Partition(1.0, 0.5, 8), decay=step_decay(gain=1.0, exponent=0.0, offset=0.0, cap=0.3)
    )
    kernels, rng = Kernels(part, 1), np.random.default_rng(2)
    for k in range(300):
        kernels.flatten([1.0 + 4.0 * rng.random() ** 2], temperature)
        kernels.learn(k)
    assert (visits_of(kernels.state) > 0).all()

    def at(energy):
        kernels.flatten([energy], temperature)
        return kernels.log_psi[0], kernels.multiplier[0]

    log_theta = np.log(theta_of(kernels.state)[0])
    for edge, value in zip(part.partition.edges[1:], log_theta, strict=True):
        assert at(edge - 1e-9)[0] == pytest.approx(value, abs=1e-6)
        assert at(edge + 1e-9)[0] == pytest.approx(value, abs=1e-6)
    assert at(1.0 + 1e-9)[0] == at(0.0)[0] == at(-50.0)[0] == pytest.approx(log_theta[0], abs=1e-6)
    assert at(80.0)[0] == pytest.approx(log_theta[-1], abs=1e-12)
    step, misses = 1e-6, []
    for energy in np.append(1.0 + 0.5 * (np.arange(-2, 11) + 0.37), 80.0):
        rise = (at(energy + step)[0] - at(energy - step)[0]) / (2 * step)
        assert at(energy)[1] == pytest.approx(1.0 + zeta * temperature * rise, abs=1e-6)
        misses.append(abs(at(energy)[1] - 1.0 - rise))
    if zeta * temperature != 1.0:
        assert max(misses) > 0.1


@UNSETTLED
@pytest.mark.parametrize("field", FIELDS)
def test_zeta_0_is_no_tempering(field):
    part = tempering.contour(zeta=0.0, partition=Partition(0.5, 0.5, 20), field=field)
    arguments = {"n_steps": 300, "n_chains": 5, "seed": 3, "init": [2.0], "burn_in": 100}
    for n_replicas in (1, 3):
        plain = Sampler("plain", (0.1,) * n_replicas, (1.0,) * n_replicas)
        expected = sample(NORMAL, plain, **arguments)
        run = sample(NORMAL, replace(plain, tempering=part), **arguments)
        assert_array_equal(run.replica_draws, expected.replica_draws)
        assert_array_equal(run.weights, 1.0)
        assert_array_equal(expected.weights, 1.0)
        assert run.counts.visits.sum() > 0
        tempered = sample(NORMAL, replace(plain, tempering=replace(part, zeta=0.1)), **arguments)
        assert (tempered.draws != expected.draws).any()
    assert_array_equal(sample(NORMAL, samplers.sgld(0.1), **arguments).draws, expected.replica_draws[:, 0])


@UNSETTLED
@pytest.mark.parametrize("n_replicas", [1, 3])
def test_layout_threads_and_other_chains_change_no_bit(n_replicas):
    sampler = samplers.icsgld(0.05, n_replicas=n_replicas, partition=Partition(1.0, 0.5, 20), energy_noise=0.3)
    arguments = {"n_steps": 400, "seed": 8, "burn_in": 50, "thin": 7, "trace_every": 50, "keep_energies": True}
    first = sample(NORMAL, sampler, n_chains=13, threads=1, **arguments)
    others = [
        sample(NORMAL, sampler, n_chains=13, threads=2, layout=Layout(lanes=8, chunk_steps=1), **arguments),
        sample(NORMAL, sampler, n_chains=13, threads=1, layout=Layout(lanes=30, chunk_steps=33), **arguments),
        sample(NORMAL, sampler, n_chains=29, threads=2, layout=Layout(lanes=1024), **arguments),
    ]
    for other in others:
        for name in ("draws", "weights", "replica_weights", "energies", "theta"):
            assert_array_equal(getattr(other, name)[:13], getattr(first, name))
        for name in ("visits", "earlier_theta", "outside"):
            assert_array_equal(getattr(other.counts, name)[:13], getattr(first.counts, name))
        assert_array_equal(other.trace.theta[:13], first.trace.theta)
        assert_array_equal(other.trace.fields["multiplier"][:13], first.trace.fields["multiplier"])
    assert first.theta.sum(axis=1) == pytest.approx(np.ones(13), abs=1e-12)
    assert_array_equal(first.trace.theta[:, -1], first.theta)


@UNSETTLED
def test_theta_rests_while_the_temperature_is_0():
    """Cycles explore at temperature 0: the first 6 of every 10 steps; θ changes in the other 4 alone."""
    sampler = samplers.icsgld(
        0.05, n_replicas=2, partition=Partition(0.9, 0.5, 20), schedule=schedules.cosine_cycles(20, exploration=0.6)
    )
    run = sample(NORMAL, sampler, n_steps=200, n_chains=4, seed=1, trace_every=1, init=[3.0])
    moved = (np.diff(run.trace.theta, axis=1) != 0.0).any(axis=(0, 2))
    exploring = run.trace.steps[1:] % 10 < 6
    assert not moved[exploring].any()
    assert moved[~exploring].mean() > 0.95
    assert run.counts.visits.sum() + run.counts.outside[:, :2].sum() == 4 * 2 * 20 * 4
    assert run.draws.shape == (4, 2 * 20 * 4, 1)
    assert (run.weights > 0.0).all()


@UNSETTLED
@pytest.mark.parametrize("n_steps", [116, 117, 164, 400])
def test_the_earlier_theta_is_that_of_a_quarter_to_half_of_the_way_wherever_the_run_ends(n_steps):
    """θ at the power of 2 before the last one, in steps since the end of burn-in: no number of the run's end."""
    sampler = samplers.csgld(0.1, partition=Partition(-0.5, 0.5, 10))
    run = sample(NORMAL, sampler, n_steps=n_steps, n_chains=3, seed=4, burn_in=100, trace_every=1, init=[1.0])
    sampled = n_steps - 100
    mark = 2 ** (int(np.log2(sampled)) - 1)
    assert sampled / 4 < mark <= sampled / 2
    assert_array_equal(run.counts.earlier_theta, run.trace.theta[:, 100 + mark - 1])
