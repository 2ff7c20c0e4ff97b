"""The partition that a pilot run finds, results with it, and what contour runs warn of."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

from targets import mixtures
from toolkit import ContourWarning, DivergenceError, Layout, Sampler, Target, sample, samplers, stream, tempering
from toolkit._engine import driver, partition_pilot
from toolkit._engine.job import make_job
from toolkit._engine.partition_pilot import with_partition
from toolkit._engine.run_options import RunOptions
from toolkit._output.report.warnings import doubts
from toolkit.problem.definition import as_problem
from toolkit.tempering.contour_tempering import Partition

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
LOWEST = 0.5 * math.log(2.0 * math.pi)  # energy of N(0, 1) at its mode
TWO = mixtures.gaussian_mixture([[-6.0], [4.0]], 1.0, [0.4, 0.6])
TEN = mixtures.gaussian_mixture([[0.0] * 10], 1.0)
SIGMAS = 4.5  # a right law fails with probability 7e-6 per comparison


def error(run, values, law):
    """Deviation of the weighted mean of ``values`` (chain, draw) over chains, in standard errors."""
    means = (run.weights * values).sum(axis=1) / run.weights.sum(axis=1)
    return (means.mean() - law) / (means.std(ddof=1) / math.sqrt(means.size))


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("target", "step_size", "spread", "law", "wrong"),
    [
        (NORMAL, 0.02, 1.0, 1.0 / 0.99, 0.9),
        (TWO, 0.1, 5.0, 25.0, 22.0),
        (mixtures.cosine25(), 1e-3, 1.0, 4.7005, 3.5),
        (TEN, 0.02, 1.0, 10.0 / 0.99, 9.8),
    ],
    ids=["normal", "two modes", "cosine25", "ten dimensions"],
)
def test_a_pilot_finds_a_partition_that_works(target, step_size, spread, law, wrong):
    """10 to 200 bins from near the energy's 1 % quantile to 6 above its 99 %; E |x|² right, and no warning."""
    start = spread * np.random.default_rng(1).standard_normal((32, 4, target.dim))
    sampler = samplers.icsgld(step_size, n_replicas=4)
    arguments = {"n_steps": 100_000, "burn_in": 30_000, "thin": 10, "n_chains": 32, "seed": 1, "init": start}
    run = sample(target, sampler, **arguments)
    cells = run.partition
    energies = target.evaluate(target.truth.independent_draws(100_000, seed=2))[0]
    assert 10 <= cells.n_bins <= 200
    assert 0.0005 < (energies < cells.u_min).mean() < 0.12
    high = np.quantile(energies, 0.99)
    assert high + 5.0 < cells.u_max < high + 25.0
    assert cells.width >= 0.5 or cells.n_bins == 200
    assert sampler.tempering.partition is None
    assert run.sampler.tempering.partition == cells
    squares = (run.draws**2).sum(axis=2)
    assert abs(error(run, squares, law)) < SIGMAS
    assert abs(error(run, squares, wrong)) > SIGMAS
    assert abs(squares.mean() - law) > 0.1 * law  # without the weights
    assert doubts(run) == []


@pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # one replica does not settle in so few steps
def test_the_partition_depends_on_problem_sampler_start_and_seed_alone():
    sampler = samplers.csgld(1e-3)
    arguments = {"n_steps": 40_000, "burn_in": 10_000, "thin": 100, "n_chains": 4, "keep_energies": True}
    first = sample(mixtures.cosine25(), sampler, threads=1, seed=6, **arguments)
    again = sample(
        mixtures.cosine25(), sampler, threads=2, layout=Layout(lanes=8, chunk_steps=777), seed=6, **arguments
    )
    assert first.partition == again.partition
    np.testing.assert_array_equal(first.weights, again.weights)
    other = sample(mixtures.cosine25(), sampler, seed=7, **arguments)
    assert other.partition != first.partition
    assert other.partition.u_min == pytest.approx(first.partition.u_min, abs=0.5)
    given = samplers.csgld(1e-3, partition=first.partition)
    np.testing.assert_array_equal(sample(mixtures.cosine25(), given, seed=6, **arguments).draws, first.draws)
    *_, last = stream(mixtures.cosine25(), sampler, seed=6, **arguments)
    assert last.partition == first.partition


def test_a_partition_at_another_temperature():
    """At temperature T energies spread T times as wide, and so do the bins; u_min lies as low."""
    cells = sample(NORMAL, samplers.csgld(0.02, temperature=3.0), n_steps=50_000, n_chains=32, seed=1).partition
    assert cells.width == pytest.approx(1.5)
    assert cells.u_min == pytest.approx(LOWEST, abs=0.01)
    assert cells.u_max > LOWEST + 30.0


def test_a_pilot_that_diverges_says_what_it_was():
    with pytest.raises(DivergenceError) as caught:
        sample(NORMAL, samplers.csgld(3.0), n_steps=10, seed=1)
    assert any("pilot" in note and "partition" in note for note in caught.value.__notes__)
    assert caught.value.run.sampler.name == "pilot"
    with pytest.raises(DivergenceError) as caught:
        sample(NORMAL, samplers.csgld(3.0, partition=Partition(1.0, 0.5, 20)), n_steps=3000, seed=1)
    assert not hasattr(caught.value, "__notes__")


def test_a_pilot_cools_down_where_the_heat_diverges():
    """x⁴ at step size 0.05 stands T and not 10 T."""

    def quartic(position, energy, gradient, parameters, scratch):
        for lane in range(position.shape[1]):
            x = position[0, lane]
            energy[lane] = x * x * x * x
            gradient[0, lane] = 4.0 * x * x * x

    target = Target("quartic", 1, quartic)
    with pytest.raises(DivergenceError):
        sample(target, samplers.sgld(0.05, temperature=10.0), n_steps=2000, n_chains=32, seed=1, progress=False)
    start = np.zeros((1, 1, 1))
    cells, gradients = partition_pilot.find_partition(as_problem(target), samplers.csgld(0.05), seed=1, init=start)
    assert 5.0 < cells.u_max < 30.0
    assert gradients > 2 * 32 * 2000


def test_a_pilot_counts_and_is_interrupted_as_the_run_is(monkeypatch):
    run = sample(NORMAL, samplers.csgld(0.02, freezes=True), n_steps=2000, burn_in=1000, seed=1)
    assert run.gradient_evaluations == 2000 + 2 * 32 * 2000

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(driver.Driver, "advance", interrupt)
    with pytest.raises(KeyboardInterrupt):
        sample(NORMAL, samplers.csgld(0.02), n_steps=2000, seed=1)


def test_a_pilot_leaves_the_filters_of_warnings_alone(monkeypatch):
    """They are those of all threads, of which others may run pilots, or change the filters, at the same time."""
    seen, execute = [], partition_pilot.execute
    monkeypatch.setattr(
        partition_pilot, "execute", lambda *a, **k: (seen.append(id(warnings.filters)), execute(*a, **k))[1]
    )
    found = replace(samplers.mala(0.5), tempering=tempering.contour())
    narrow = replace(found, tempering=tempering.contour(partition=Partition(LOWEST, 0.02, 400)))
    options = {"n_steps": 25_000, "seed": 1}
    for sampler, gradients in ((found, 2 * 32 * 2000), (narrow, 32 * 64)):
        job = make_job(as_problem(NORMAL), sampler, RunOptions(**options))
        assert with_partition(job, warns=False)[1] == gradients  # and no warning, which would be an error
    assert seen == [id(warnings.filters)] * 3
    with pytest.warns(ContourWarning, match="a step changes the energy by"):
        with_partition(job)


def test_a_pilot_serves_all_chains_of_a_sweep():
    sampler = samplers.csgld(0.02, temperature=[0.25, 1.0, 4.0])
    run = sample(NORMAL, sampler, n_steps=40_000, burn_in=10_000, n_chains=3, seed=1)
    assert (run.counts.outside[:, 1] < 0.1 * run.counts.outside[:, 2]).all()


def normal_run(cells, n_steps=30_000, h=0.02, **options):
    sampler = Sampler("contour", (h,), tempering=tempering.contour(partition=cells, **options))
    start = np.random.default_rng(1).standard_normal((32, 1))
    return sample(NORMAL, sampler, n_steps=n_steps, burn_in=n_steps // 4, n_chains=32, seed=1, init=start)


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        (Partition(LOWEST, 0.5, 20), {"n_steps": 400}, r"θ has not settled: .* it moved by 0\.\d\d in L1"),
        (Partition(LOWEST, 0.02, 200), {"zeta": 1.5}, r"the gradient is multiplied by up to \d+ in bins"),
        (Partition(LOWEST + 0.5, 0.5, 20), {}, r"\d\d% of the energies lie below the partition, .* at 1\.41894;"),
        (Partition(LOWEST, 0.25, 8), {}, r"\d\d% of the energies lie above the partition, .* at 2\.91894;"),
    ],
    ids=["short", "steep", "below", "above"],
)
def test_what_is_warned_of(cells, options, message):
    with pytest.warns(ContourWarning, match=message) as caught:
        run = normal_run(cells, **options)
    assert [str(w.message) for w in caught] == doubts(run)
    assert caught[0].filename == __file__  # the line that called sample, not one within


def test_good_runs_are_quiet():
    for cells in (Partition(LOWEST, 0.5, 24), Partition(LOWEST - 3.0, 1.0, 15)):
        for field in ("theta", "theta_zeta"):
            assert doubts(normal_run(cells, field=field)) == []


def test_only_contour_is_doubted():
    for sampler in (samplers.sgld(0.1), samplers.resgld((0.1, 0.2), temperatures=(1.0, 2.0))):
        run = sample(NORMAL, sampler, n_steps=50, seed=1)
        assert run.partition is None
        assert doubts(run) == []
