"""The figures of TACT-HMC (2018), small: their numbers, and that they run what they state."""

from types import SimpleNamespace

import numpy as np
import pytest

from figures import produce, script
from figures.papers.tact_hmc import ablations
from figures.papers.tact_hmc.ablations import EXCHANGE, LABELS, NO_TEMPERING, NO_THERMOSTATS, TACT, Settings
from figures.scripts.statistics import mean_and_error
from targets import mixtures
from tests.support.laws import SIGMAS
from toolkit import DivergenceError, sample
from toolkit.tempering.exchange import EstimatedCorrection

TARGETS = {"five_spots": mixtures.five_spots, "six_petals": mixtures.six_petals}


def errors_of(data, target=None):
    """Label → errors of weights and variances in standard errors, (2, mode)."""
    tables = data[f"{target}.modes"] if target else data["modes"]
    return dict(zip(LABELS, map(ablations.in_standard_errors, tables), strict=True))


def check_modes(errors, moved):
    """TACT-HMC and replica exchange are right; each ablation fails, in its own way."""
    for label in (TACT, EXCHANGE):
        assert np.abs(errors[label]).max() < SIGMAS
    assert errors[NO_THERMOSTATS][1].min() > 3.0
    assert np.sqrt((errors[NO_THERMOSTATS][1] ** 2).mean()) > SIGMAS
    assert np.abs(errors[NO_TEMPERING][0]).max() > SIGMAS
    assert np.nanmax(np.abs(errors[NO_TEMPERING][1][moved])) < SIGMAS


def test_modes_on_a_line(produced):
    data = produced("tact_hmc_fig1a").measured.data
    check_modes(errors_of(data), moved=[1])
    costs = dict(zip(LABELS, data["evaluations_per_draw"], strict=True))
    assert costs[NO_TEMPERING] == 50.0
    assert costs[EXCHANGE] == 100.0
    assert costs[TACT] == pytest.approx(500.0, rel=0.15)  # the plateau's share of ξ, 0.1
    hot = data["modes"][LABELS.index(NO_THERMOSTATS)][1, :, 0]
    assert (hot < 1.0 + 0.5 * 0.02 * 9.0 / 0.05).all()  # that of momenta which are never drawn afresh
    assert data["heights"].sum(axis=1) * 0.4 == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("target", TARGETS)
def test_modes_in_the_plane(produced, target):
    data = produced("tact_hmc_fig2").measured.data
    check_modes(errors_of(data, target), moved=[0])
    assert data[f"{target}.truth"].sum() == pytest.approx(1.0, abs=1e-3)
    assert np.argmax(data[f"{target}.modes"][LABELS.index(NO_TEMPERING)][0, :, 0]) == 0  # where chains start


def test_thermostats_and_memory(produced):
    product = produced("tact_hmc_fig1b")
    data, module = product.measured.data, product.script.module
    below = []
    for k, settings in enumerate(module.FINER):
        for i, (mean, deviation) in enumerate(module.laws(settings)):
            ours, error = mean_and_error(data["means"][k, i])
            assert 0.8 * mean < ours < mean + SIGMAS * error
            spread, spread_error = mean_and_error(data["deviations"][k, i])
            assert abs(spread - deviation) < 0.08 * deviation + SIGMAS * spread_error
            below.append((mean - ours, error, mean))
    for (coarse, a, _), (fine, b, mean) in zip(below[:2], below[-2:], strict=True):
        assert abs(fine) < coarse + SIGMAS * np.hypot(a, b)
        assert abs(fine) < 0.04 * mean  # at a sixteenth of the time step
    for settings in module.FINER:
        assert module.laws(module.SETTINGS) == pytest.approx(module.laws(settings), rel=1e-12)
    claims = [claim for claim in product.script.compare(data) if "thermostat" in claim.what]
    assert {claim.verdict for claim in claims} <= {"held", "missed"}
    assert len(claims) == 12
    rho = np.array([mean_and_error(row) for row in data["correlations"]])
    assert abs(rho[0, 0] - 1.0) < SIGMAS * rho[0, 1]
    assert (np.diff(rho[:5, 0]) < 0.0).all()
    assert (np.abs(rho[15:, 0]) < SIGMAS * rho[15:, 1]).all()
    assert data["temperatures"].min() == 1.0
    assert 8.0 < data["temperatures"].max() <= 15.0


def test_effective_sample_sizes(produced):
    product = produced("tact_hmc_table_ess")
    data, module = product.measured.data, product.script.module
    names = list(module.baselines())
    across, own = ({n: mean_and_error(r) for n, r in zip(names, data["ess"][:, k], strict=True)} for k in (0, 1))
    assert across[TACT][0] + SIGMAS * across[TACT][1] > 2.1096e4
    for trapped in ("SGHMC, noise known", "SGNHT"):
        assert own[trapped][0] > 7e4
        assert across[trapped][0] < 2_000
    hats = dict(zip(names, data["r_hat"], strict=True))
    assert hats["SGNHT"] > 1.2 > 1.05 > hats[EXCHANGE]
    variances = dict(zip(names, data["modes"][:, 1, :, 0].mean(axis=1), strict=True))
    assert variances["SGHMC"] > 2.0
    assert variances["SGHMC, noise known"] == pytest.approx(1.0, abs=0.1)
    cost = dict(zip(names, data["evaluations"], strict=True))
    gain, error = module.ratio(*(data["ess"][names.index(n), 0] / cost[n] for n in (EXCHANGE, TACT)))
    assert gain - 3.0 * error > 1.5
    by_state = data["swept"][:3].mean(axis=1)
    assert by_state[0] < by_state[1] < by_state[2]
    claims = product.script.compare(data)
    assert [c.printed for c in claims[:3]] == [2.1096e4, 0.602, 0.602]
    assert [claims[i].verdict for i in (0, 1, 2, 4, 5)] == ["another quantity"] * 5  # of a target of ours


def test_settings_are_those_they_state(produced):
    """Noise that no sampler is told of, c, γ and K of the paper's networks, equal numbers of gradient evaluations."""
    settings = Settings()
    assert settings == (0.02, 0.1, 0.05, 1.0, 15.0, 50, 3.0)
    for h in (0.02, 0.01):
        four = ablations.all_samplers(settings._replace(step_size=h))
        assert list(four) == list(LABELS)
        for label, sampler in four.items():
            assert (sampler.gradient_noise, sampler.energy_noise) == (3.0, 0.0 if label == NO_TEMPERING else 3.0)
            assert sampler.step_sizes == ((h, 2.5 * h) if label == EXCHANGE else (h,))
            assert sampler.dynamics.parameters[0] == 0.05
            assert (sampler.dynamics.name == "nose_hoover") == (label != NO_THERMOSTATS)
        assert four[NO_THERMOSTATS].dynamics.parameters[1] == 0.0
        assert four[EXCHANGE].temperatures == (1.0, 12.0)
        assert isinstance(four[EXCHANGE].tempering.correction, EstimatedCorrection)
        for label in (TACT, NO_THERMOSTATS):
            tempering = four[label].tempering
            assert (tempering.top_temperature, tempering.friction, tempering.inertia) == (15.0, 0.05, 1.0)
            assert tempering.step_size == pytest.approx(0.1 * h)
            assert (tempering.resample_every, tempering.thermostat) == (50, label == TACT)
    for name, runs in (("tact_hmc_fig1a", 4), ("tact_hmc_fig2", 8), ("tact_hmc_table_ess", 5)):
        records = produced(name).measured.records[:runs]
        assert {(r.replicas * r.steps, r.replicas * r.burn_in, r.thin) for r in records} == {
            (records[0].steps, records[0].burn_in, 50)
        }
    for name, step in (("tact_hmc_fig1a", 0.02), ("tact_hmc_fig2", 0.01), ("tact_hmc_table_ess", 0.02)):
        assert script(name).module.SETTINGS.step_size == step


@pytest.mark.parametrize("change", [{"coupling_share": 0.3}, {"step_size": 0.08}])
def test_chains_diverge_where_the_table_says_so(change):
    sampler = ablations.tact_sampler(Settings(**change))
    with pytest.raises(DivergenceError):
        sample(mixtures.three_on_a_line(), sampler, n_steps=5_000, n_chains=256, init=[0.0], seed=4)


@pytest.mark.parametrize("target", [mixtures.three_on_a_line, mixtures.six_petals])
def test_errors_of_modes_are_standard_errors(target):
    """Of exact draws they have mean 0 and variance 1, whatever the draws that do not count; a wrong width shows."""
    truth = target().truth
    chains, n = 40, 500

    def run_of(seed, scale=1.0):
        draws = truth.independent_draws(chains * n, seed=seed)
        if scale != 1.0:
            centres = truth.means[truth.memberships(draws).argmax(axis=1)]
            draws = centres + scale * (draws - centres)
        draws = draws.reshape(chains, n, -1)
        weights = np.ones((chains, n))
        weights[:, ::3] = 0.0
        draws[:, ::3] = truth.means[0]
        return SimpleNamespace(draws=draws, weights=weights, n_chains=chains)

    errors = np.stack([ablations.in_standard_errors(ablations.mode_errors(run_of(seed), truth)) for seed in range(15)])
    assert np.abs(errors).max() < SIGMAS + 1.0  # Student's t of 39 degrees
    assert errors.var() == pytest.approx(1.0, abs=0.6)
    for scale in (0.9, 1.1):
        assert (np.abs(ablations.in_standard_errors(ablations.mode_errors(run_of(1, scale), truth))[1]) > SIGMAS).all()


def test_modes_that_few_chains_found():
    """No variance, and an error of the weight that is not nothing."""
    truth = mixtures.five_spots().truth
    draws = np.zeros((20, 30, 2))
    draws[0] = truth.means[1]
    table = ablations.mode_errors(SimpleNamespace(draws=draws, weights=np.ones((20, 30)), n_chains=20), truth)
    assert np.isnan(table[1, 1:]).all()
    np.testing.assert_allclose(table[0, :, 0] * truth.weights, [0.95, 0.05, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(table[0, :, 1] * truth.weights, 0.05, rtol=1e-6)


@pytest.mark.slow
def test_the_paper_s_number_and_the_modes_at_full_size(tmp_path):
    modes = produce(script("tact_hmc_fig1a"), out=tmp_path, quick=False).measured.data
    errors = errors_of(modes)
    assert np.abs(errors[TACT]).max() < 3.5
    assert errors[NO_THERMOSTATS][1].min() > 30.0
    assert np.abs(errors[NO_TEMPERING][0]).max() > 10.0
    ess = produce(script("tact_hmc_table_ess"), out=tmp_path, quick=False)
    assert ess.script.compare(ess.measured.data)[0].ours == pytest.approx(25_000, rel=0.15)


def test_ablations_are_set_apart_by_the_spread_of_a_largest_error():
    """Two largest errors, independent, differ by √2 times the standard deviation of one."""
    tables = np.stack([np.ones((2, 4, 2)) for _ in LABELS])
    _, spread = ablations.largest_of(4)
    rows = [row for row in ablations.claims_of_ablations(tables, "", "text") if f"less {TACT}'s" in row.what]
    assert [row.error for row in rows] == [pytest.approx(spread * 2.0**0.5)] * 2
