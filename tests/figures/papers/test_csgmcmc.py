"""Figures and tables of cyclical SG-MCMC: settings are those stated, numbers those of theory and of long runs."""

import numpy as np
import pytest

from figures.papers.csgmcmc import gaussian_grid, table4, table5
from figures.scripts.claims import DERIVED, PRINTED
from targets import mixtures
from toolkit.diagnostics import ess_by_cutoff, mode_coverage
from toolkit.schedules import evaluate

STEPS = np.arange(50_000)
NAMES = [f"csgmcmc_{name}" for name in ("fig1", "fig2", "fig5", "table4", "table5")]


def schedule(label):
    """Step sizes, temperatures and kept steps of one sampler of the 25 Gaussians, over 50,000 steps."""
    sampler = gaussian_grid.methods()[gaussian_grid.LABELS.index(label)]
    found = evaluate(sampler.schedule, STEPS, STEPS.size)
    return sampler.step_sizes[0] * found.step_size, found.temperature, found.keep


def test_schedules_are_those_of_the_paper():
    """Section 5.1, each formula written out again here."""
    np.testing.assert_allclose(schedule("SGLD")[0], 0.05 * (STEPS + 1.0) ** -0.55, rtol=1e-12)
    steps, temperature, keep = schedule("cSGLD")
    place = STEPS % 1667 / 1667
    np.testing.assert_allclose(steps, 0.045 * (np.cos(np.pi * place) + 1.0), atol=1e-15)
    assert ((temperature == 0.0) == (place < 0.25)).all()
    assert (keep == (place >= 0.25)).all()


def test_schedules_are_those_of_the_released_code():
    steps, _, keep = schedule("SGLD, released")
    assert (steps[:500] == 0.043).all()
    np.testing.assert_allclose(steps[500:], 0.043 * (STEPS[500:] - 499.0) ** -0.55, rtol=1e-12)
    assert keep.all()
    steps, temperature, keep = schedule("cSGLD, released")
    assert steps[0] == 0.07
    assert (temperature == 1.0).all()
    starts = np.flatnonzero(np.diff(steps, prepend=0.0) > 0.0)
    assert (starts == np.ceil(np.arange(30) * 5000 / 3)).all()  # cycles of 1,666⅔ steps
    assert STEPS.size - keep.sum() == pytest.approx(30 * 50, abs=10)
    assert not keep[:50].any()
    assert keep[50]


def test_compositions_cost_no_more_than_a_single_chain(produced):
    for name in ("csgmcmc_fig5", "csgmcmc_table4"):
        for record in produced(name).measured.records:
            assert record.gradient_evaluations == 50_000 * record.chains
            assert record.burn_in == 0


@pytest.mark.parametrize("centre", [0.0, 4.0])
def test_modes_are_counted_as_mode_coverage_counts_them(centre):
    """Draws far outside, between modes, and at the very radius."""
    rng = np.random.default_rng(1)
    truth = mixtures.gaussian_grid25().truth
    draws = np.concatenate([truth.independent_draws(3_000, seed=1), rng.uniform(-12, 12, (2_000, 2))])
    draws = np.concatenate([draws, np.array([[centre + 0.25, centre], [centre, centre - 0.25], [1.0, -3.0]])])
    draws = np.stack([draws, draws[::-1] + 0.1])
    found = mode_coverage(draws, truth.modes.centres)
    assert (gaussian_grid.mode_counts(draws) == found.counts).all()
    assert ((gaussian_grid.mode_counts(draws) > gaussian_grid.THRESHOLD).sum(axis=1) == found.number).all()


def test_table4_numbers(produced):
    """Against 400 chains: 17.44 and 17.83 modes of cSGLD, each with a deviation of 1.7 over chains."""
    data = produced("csgmcmc_table4").measured.data
    single, parallel = (dict(zip(gaussian_grid.LABELS, data[key], strict=True)) for key in ("single", "parallel"))
    assert (single["SGLD"] == 1).all()
    assert single["SGLD, released"].mean() < 1.5
    for label, expected in (("cSGLD", 17.44), ("cSGLD, released", 17.83)):
        assert abs(single[label].mean() - expected) < 4.0 * 1.7 / np.sqrt(single[label].size)
        assert parallel[label].mean() > 24.4
    assert (parallel["SGLD"] <= 4).all()
    for label in gaussian_grid.LABELS[4:]:
        assert (single[label] == 25).all()
    assert data["fewest_draws"][4:].min() > gaussian_grid.THRESHOLD


def test_what_exchanges_the_rows_of_table4():
    """Four chains of m modes picked at random, by simulation: 6.5 for 1.8, 24.8 for 18, 17.8 for 6.7."""
    rng = np.random.default_rng(2)
    for single, together in ((1.8, 6.5), (18.0, 24.8), (6.7, 17.8)):
        covered = rng.uniform(size=(100_000, 4, 25)) < single / 25
        assert covered.any(axis=1).sum(axis=1).mean() == pytest.approx(together, abs=0.06)
    assert table4.EXCHANGED["cSGLD", 1] == table4.PRINTED["SGLD", 4] == (18.0, 0.47)
    assert table4.EXCHANGED["SGLD", 4] == table4.PRINTED["cSGLD", 1] == (6.7, 0.52)


@pytest.mark.parametrize("name", ["csgmcmc_fig2", "csgmcmc_fig5"])
def test_densities_and_kl(produced, name):
    """SGLD stays in as many modes as it has chains; r2SGLD is near the floor and far below cSGLD."""
    data = produced(name).measured.data
    group = 4 if name == "csgmcmc_fig2" else 1
    modes, last = dict(zip(gaussian_grid.SHOWN, data["modes"], strict=True)), data["kl"][:, :, -1].mean(axis=1)
    assert modes["SGLD"].max() <= group
    assert (modes["r2SGLD"] == 25).all()
    assert data["evaluations"][-1] == 50_000 * group
    assert data["floor"][-1] < last[4] < 7.0 * data["floor"][-1]
    assert last[4] < 0.2 * last[1]
    assert last[1] < 0.4 * last[0]
    assert data["densities"].sum(axis=(1, 2)) == pytest.approx(1.0, abs=0.02)
    assert data["densities"][0].sum() == pytest.approx(1.0, abs=1e-6)


def test_fig1_numbers(produced):
    """Sums of cosines on their grids, of 1,667 steps and of thirds of a step; the shares above 0.06 by arccos."""
    data = produced("csgmcmc_fig1").measured.data
    assert data["total"][1] == pytest.approx(0.045 * (30 * 1667 + 30), rel=1e-6)
    assert data["total"][3] == pytest.approx(0.035 * (50_000 + 10), rel=1e-6)
    assert data["above"][1] == pytest.approx(np.arccos(1 / 3) / np.pi, abs=1e-3)
    assert data["above"][3] == pytest.approx(np.arccos(5 / 7) / np.pi, abs=1e-3)
    assert (data["above"][[0, 2]] == 0.0).all()
    assert data["kept"] == pytest.approx([1.0, 0.75, 1.0, 0.97], abs=1e-3)


def test_table5_settings_are_those_it_states():
    """K.1: steps over N, friction, cycles, exploration and decay."""
    assert [(name, *steps) for name, _, *steps in table5.DATA] == [
        ("Australian", 1.2, 0.5), ("German", 0.5, 0.3), ("Heart", 1.5, 1.0)]  # fmt: skip
    assert [len(load().labels) for _, load, *_ in table5.DATA] == [690, 1000, 270]
    steps = np.arange(10_000)
    sgld, csgld, sghmc, csghmc, *goes_on, csgld_within, csghmc_within = table5.methods(1.2, 0.5, 10_000)
    assert len(goes_on) == 2
    for sampler, largest in ((sgld, 1.2), (csgld, 1.2), (sghmc, 0.5), (csghmc, 0.5)):
        assert tuple(sampler.step_sizes) == (largest,)
    decay = np.where(steps < 5_000, 1.0, np.maximum(steps - 4_999.0, 1.0) ** -0.55)
    for sampler in (sgld, sghmc):
        np.testing.assert_allclose(evaluate(sampler.schedule, steps, 10_000).step_size, decay, rtol=1e-12)
    for sampler in goes_on:
        factors = evaluate(sampler.schedule, steps, 10_000).step_size
        np.testing.assert_allclose(factors, np.minimum(1.0, ((steps + 1) / 5_000.0) ** -0.55), rtol=1e-12)
    for sampler in (csgld, csghmc):
        found = evaluate(sampler.schedule, steps, 10_000)
        np.testing.assert_allclose(found.step_size, 0.5 * (np.cos(np.pi * (steps % 100) / 100) + 1.0), atol=1e-15)
        assert (found.keep == (steps % 100 > 0)).all()
    for sampler in (csgld_within, csghmc_within):  # 100 cycles in the kept half
        found = evaluate(sampler.schedule, steps, 10_000)
        np.testing.assert_allclose(found.step_size, 0.5 * (np.cos(np.pi * (steps % 50) / 50) + 1.0), atol=1e-15)
    assert sghmc.dynamics.parameters[0] == csghmc.dynamics.parameters[0] == 0.5


def test_sum_over_all_lags():
    """The closed form against the sum written out, on two coordinates of 60 draws."""
    draws = np.cumsum(np.random.default_rng(3).normal(size=(2, 60, 2)), axis=1)
    mean, variance = np.array([1.0, -2.0]), np.array([20.0, 30.0])
    found = table5.ess_over_all_lags(draws, mean, variance)
    for chain in range(2):
        for d in range(2):
            x, n = draws[chain, :, d] - mean[d], 60
            rho = [(x[s:] * x[: n - s]).sum() / (variance[d] * (n - s)) for s in range(n)]
            below = 1.0 + 2.0 * sum((1.0 - s / n) * rho[s] for s in range(1, n))
            assert found[chain, d] == pytest.approx(n / below if below > 1.0 else n, rel=1e-9)


def test_bound_on_the_ess_of_table5():
    """SGLD on N(0, Σ) with the largest curvature N/4, from its law: an AR(1) of 1 − αN/4; others have less."""
    step, n = 1.2, 4_000
    for curvature, meets in ((0.25, True), (0.1, False)):
        factor = 1.0 - step * curvature
        noise = np.random.default_rng(4).normal(size=(16, n)) * np.sqrt(1.0 - factor**2)
        draws = np.empty((16, n, 1))
        draws[:, 0, 0] = noise[:, 0] / np.sqrt(1.0 - factor**2)
        for i in range(1, n):
            draws[:, i, 0] = factor * draws[:, i - 1, 0] + noise[:, i]
        ess = ess_by_cutoff(draws, mean=np.zeros(1), variance=np.ones(1)).mean()
        bound = table5.bound(step, n)
        assert (0.9 * bound < ess < 1.2 * bound) if meets else ess < 0.6 * bound


def test_friction_bound_of_table5():
    """SGHMC of constant steps α = a/(2N) on curvature N/4: about n α λ / (2η), where all lags are summed."""
    step, friction, n, n_chains = 0.5, 0.5, 4_000, 400
    rng, pull = np.random.default_rng(5), 0.5 * step * 0.25
    position, momentum = rng.normal(size=n_chains), np.sqrt(0.5 * step * 0.25) * rng.normal(size=n_chains)
    total = np.zeros(n_chains)
    for _ in range(n):
        momentum += -friction * momentum - pull * position + np.sqrt(2.0 * friction * pull) * rng.normal(size=n_chains)
        position = position + momentum
        total += position
    ess = n**2 / total.var()  # of positions of variance 1
    assert ess == pytest.approx(table5.friction_bound(step, n), rel=0.35)
    assert table5.friction_bound(0.3, 5_000) == 187.5


def test_table5_orders_and_data(produced):
    """Cyclical above plain with the paper's decay, and below without its jump; minibatches take from the cyclical."""
    product = produced("csgmcmc_table5")
    data = product.measured.data
    mean, error = table5.means_and_errors(data["ess"])
    for i in range(3):
        for cyclical, plain in ((1, 0), (3, 2)):
            assert mean[i, 0, cyclical] - mean[i, 0, plain] > 2.0 * np.hypot(error[i, 0, cyclical], error[i, 0, plain])
        for without_jump, cyclical in ((4, 1), (5, 3)):
            assert mean[i, 0, without_jump] > mean[i, 0, cyclical]
        for k in (1, 3):
            assert mean[i, 2, k] < mean[i, 0, k]
        overdamped = table5.DATA[i][2]
        assert mean[i, 0, [0, 1, 4, 6]].max() < table5.bound(overdamped, int(data["draws"]))
        assert (table5.PRINTED[i, :2] > table5.bound(overdamped, 5_000)).all()
        assert mean[i, 0].max() < 0.2 * table5.PRINTED[i].min()
        assert mean[i, 3].max() < 0.1  # raw columns
        assert data["spread"][i, 3].min() > 30.0
        assert (np.abs(data["spread"][i, 0].mean(axis=-1)[4:] - 1.0) < 0.4).all()
    rows = product.script.module.table(data)
    assert {row["data"] for row in rows} == {"Australian", "German", "Heart"}
    assert not any(load().is_stand_in for _, load, *_ in table5.DATA)


def test_table4_is_counted_once(produced):
    """Its four numbers as printed, and those of the two rows that we take to be exchanged as our derivation."""
    claims = [c for c in produced("csgmcmc_table4").script.compare(produced("csgmcmc_table4").measured.data)
              if not np.isnan(c.printed)]  # fmt: skip
    assert [c.comes_from for c in claims if c.is_same] == [PRINTED] * 4 + [DERIVED] * 2
    assert [c.printed for c in claims[:4]] == [1.8, 6.7, 18.0, 24.4]
    assert {c.verdict for c in claims if not c.is_same} == {"another quantity"}  # of the released settings


def test_orders_are_counted():
    printed = np.array([1, 2, 3, 3])
    assert table5.in_order(printed, np.array([1.0, 5.0, 9.0, 8.0]), np.full(4, 0.01))[:2] == (5, 5)
    assert table5.in_order(printed, np.array([9.0, 5.0, 1.0, 6.0]), np.full(4, 0.01))[:2] == (5, 1)


@pytest.mark.parametrize("name", NAMES)
def test_claims_and_files(produced, name):
    product = produced(name)
    claims = product.script.compare(product.measured.data)
    assert len(claims) >= 3
    assert all(claim.why for claim in claims if claim.verdict == "worse")
    assert [path.suffix for path in product.paths] == [".png", ".csv"]
    assert product.script.differs
    assert product.script.caption


@pytest.mark.slow
def test_full_size_claims(tmp_path):
    """Table 4 at full size: 17.4 ± 0.1 and 24.8 ± 0.05 modes, 25 in every run of the compositions."""
    from figures import produce, script

    product = produce(script("csgmcmc_table4"), out=tmp_path, quick=False)
    rows = {(row["method"], row["chains"]): row for row in product.script.module.table(product.measured.data)}
    assert rows["cSGLD", 1]["ours"] == pytest.approx(18.0, abs=2 * 0.47)
    assert rows["cSGLD, released", 1]["ours"] == pytest.approx(18.0, abs=2 * 0.47)
    assert rows["cSGLD", 4]["ours"] >= 24.4
    assert rows["r2SGLD", 1]["least"] == rows["cyclical r2SGLD", 1]["least"] == 25
