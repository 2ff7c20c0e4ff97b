"""ICSGLD's comparisons: equal cost and one domain, θ's variances against the corollary, SVGD's shares of modes."""

import numpy as np
import pytest

from figures.papers.icsgld import fig7_theta, rugged_box
from toolkit import boundaries
from toolkit.diagnostics import energy_probabilities, expected_kl


def test_every_method_costs_the_same_and_keeps_as_many_draws():
    """What the captions state: budgets, thinning, the paper's step sizes, noise and partition."""
    found = rugged_box.methods(boundaries.reject())
    assert len(found) == 7
    for name, (sampler, start) in found.items():
        replicas = sampler.n_replicas
        assert start.shape == (replicas, 2)
        assert replicas == {"P5": 5, "T5": 1, "P2": 2}[name[-2:]]
        steps, burn_in = rugged_box.EVALUATIONS // replicas, rugged_box.BURN_IN // replicas
        thin = rugged_box.PER_DRAW * sampler.n_target_replicas / replicas
        assert (steps - burn_in) // thin * sampler.n_target_replicas == 395_000 // 20
        assert (sampler.gradient_noise, sampler.boundary.kind) == (0.25, "reject")
        assert sampler.energy_noise == (0.0 if name in ("SGLD×P5", "cycSGLD×T5") else 0.25)
    assert {name: sampler.step_sizes[0] for name, (sampler, _) in found.items()} == {
        "SGLD×P5": 3e-3, "cycSGLD×T5": 1e-2, "reSGLD×P5": 1e-3, "CSGLD×T5": 3e-3, "ICSGLD×P5": 3e-3, "ICSGHMC×P5": 1e-3,
        "reSGHMC×P2": 1e-3,
    }  # fmt: skip
    assert found["reSGLD×P5"].sampler.temperatures == (1.0, 2.0, 3.0, 4.0, 5.0)
    for name, field in {"CSGLD×T5": "theta_zeta", "ICSGLD×P5": "theta"}.items():
        tempering = found[name].sampler.tempering
        assert (tempering.field, tempering.zeta, tempering.decay.cap) == (field, 0.75, 3e-3)
        assert tempering.partition == rugged_box.PARTITION
    doubled = rugged_box.with_step_sizes(found["reSGLD×P5"], np.array([1.0, 2.0])).sampler
    np.testing.assert_allclose(doubled.step_sizes, np.outer([1.0, 2.0], [1e-3, 2e-3, 3e-3, 4e-3, 5e-3]))


def test_probabilities_in_the_box_are_those_of_its_truth():
    cells = rugged_box.CELLS
    np.testing.assert_allclose(
        rugged_box.box_masses(cells), rugged_box.BOXED.truth.cell_masses(cells, cells), atol=1e-8, rtol=1e-5
    )
    assert rugged_box.WIDE_CELLS[[12, 37]] == pytest.approx([-2.5, 2.5], abs=1e-12)


@pytest.mark.slow
def test_energies_in_the_box_are_those_of_its_truth():
    edges = np.arange(-4.0, 2.01, 0.25)
    expected = energy_probabilities(rugged_box.BOXED.truth, edges)
    np.testing.assert_allclose(rugged_box.box_energies(edges), expected, atol=3e-4)


def test_kl_on_one_domain(produced):
    """A tenth of the cost, 8 repeats: replica exchange is ahead of all others, and nothing beats independent draws."""
    product = produced("icsgld_fig6_kl")
    data, records = product.measured.data, product.measured.records
    assert {record.gradient_evaluations for record in records} == {8 * 40_000}
    assert len(records) == 12
    names = list(product.script.module.LINES)
    for key in ("box", "free"):
        mean = dict(zip(names, data[key][:, :, -1].mean(axis=1), strict=True))
        floor = float(data[f"floor_{key}"][-1])
        assert sorted(mean, key=mean.get)[:2] == ["reSGHMC×P2", "reSGLD×P5"]
        assert floor < mean["reSGHMC×P2"] < 1.35 * floor
        assert mean["ICSGLD×P5"] > 1.3 * mean["reSGLD×P5"]
    assert data["floor_box"][-1] == pytest.approx(expected_kl(data["masses"], int(data["draws"][-1])), rel=1e-12)
    assert -np.log(data["inside"]) == pytest.approx(0.21745, abs=1e-5)
    assert (data["mixed"][:, :, -1] > 0.2174).all()
    claims = product.script.compare(data)
    assert len(claims) == 17
    behind = [claim.what.split()[2] for claim in claims if claim.verdict == "contradicted"]
    assert behind.count("reSGLD×P5") == 2
    assert all(claim.ours < 0.8 for claim in claims if "reSGHMC×P2" in claim.what)


def test_step_sizes_that_are_too_large_miss_low_energies(produced):
    """A tenth of the cost: CSGLD suffers more than ICSGHMC, low energies are lost, and there multipliers peak."""
    product = produced("icsgld_fig6_step_size")
    data = product.measured.data
    assert {record.gradient_evaluations for record in product.measured.records} == {6 * 4 * 40_000}
    mean = dict(zip(product.script.module.LINES, data["kl"].mean(axis=2), strict=True))
    best = {name: values.min() for name, values in mean.items()}
    assert sorted(best, key=best.get)[:2] == ["reSGHMC×P2", "reSGLD×P5"]
    assert min(best.values()) > data["floor"]
    largest = {name: values[-1] for name, values in mean.items()}
    assert largest["CSGLD×T5"] > 1.3 * largest["ICSGHMC×P5"]
    low = data["low"][:, 0]  # the paper's is the fourth of six step sizes
    assert low[5] < 0.6 * low[3]
    edges = product.script.module.PARTITION.edges[:-1]
    at_paper = data["multipliers"][3]
    assert np.nanmax(at_paper[edges < -3.0]) > 1.5
    assert np.nanmax(at_paper[(edges > -2.0) & (edges < 1.0)]) < 1.3


def test_variances_of_theta_follow_the_corollary(produced):
    """P ω_Pk / ω_k = 3.19 at 10⁴ steps of ten chains; no gain, or one of P, lies beyond four standard errors."""
    product = produced("icsgld_fig7_theta")
    data, script = product.measured.data, product.script.module

    def omega(k):
        return 1.0 / (k**0.6 + 100.0)

    law = np.log(10.0 * omega(1e5) / omega(1e4))
    assert law == pytest.approx(np.log(3.19), abs=0.005)
    for field in ("theta", "theta_zeta"):
        logs, errors = script.log_ratios(data, f"part {field}")
        assert errors[-1] < 0.25
        assert abs(logs[-1] - law) < 4.0 * errors[-1]
        assert abs(logs[-1]) > 4.0 * errors[-1]
        assert abs(logs[-1] - np.log(10.0)) > 4.0 * errors[-1]
        often = data["truth"] > script.SMALLEST
        for name in script.METHODS:
            off = data[f"part {field} {name}"][:, often].mean(axis=0) / data["truth"][often] - 1.0
            assert np.abs(off).max() < 0.25
    claims = product.script.compare(data)
    assert len(claims) == 8
    moved = [
        claim._replace(ours=factor * claim.printed, error=0.01) for claim in claims[::2][:3] for factor in (0.7, 1.3)
    ]
    assert {claim.verdict for claim in moved} == {"missed"}  # to either side of the corollary's ratio


def test_theta_settings_are_those_it_states():
    for field in ("theta", "theta_zeta"):
        sampler = fig7_theta.sampler(field, 10)
        assert (set(sampler.step_sizes), len(sampler.step_sizes)) == ({0.1}, 10)
        assert (sampler.gradient_noise, sampler.energy_noise) == (0.03, 0.0)
        tempering = sampler.tempering
        assert (tempering.field, tempering.zeta, tempering.partition.width) == (field, 0.9, 1.0)
        assert (tempering.decay.gain, tempering.decay.exponent, tempering.decay.offset) == (1.0, 0.6, 100.0)
        assert tempering.decay.cap == 1.0
    assert pytest.approx(2.512, abs=1e-3) == fig7_theta.COROLLARY


def test_particles_do_not_find_the_weights_of_modes(produced):
    """The start has the KL of 500 uniform draws, within four standard errors; and no step brings it near the floor."""
    product = produced("icsgld_fig_svgd")
    data = product.measured.data
    p = data["masses"].ravel()
    rng = np.random.default_rng(0)
    counts = rng.multinomial(500, np.full(25, 1 / 25), 4_000)
    uniform = (p * np.log(p * 512.5 / (counts + 0.5))).sum(axis=1)
    floor = expected_kl(data["masses"], 500)
    for name in product.script.module.GROUPS:
        kl = data[f"kl {name}"]
        assert data[f"particles {name}"].shape == (500, 2)
        assert abs(kl[:, 0].mean() - uniform.mean()) < 4.0 * uniform.std() / len(kl) ** 0.5
        assert (kl[:, -1] > 1.5 * floor).all()
    for claim in product.script.compare(data):
        assert claim.ours + 2.0 * claim.error < 500.0
        assert claim.why
