"""r2SGLD's figures and the galleries: their small versions have the numbers that theory and the paper ask for."""

from dataclasses import replace

import numpy as np
import pytest

from figures import produce, script
from figures.galleries.gallery_targets import SLOW
from figures.papers.r2sgld import identification
from figures.papers.r2sgld.fig5_flower import RELEASED
from figures.papers.r2sgld.fig11_diameter import RADII, modes_in
from figures.papers.r2sgld.nine_samplers import COMPOSITION, NINE, nine_samplers, with_own_penalty
from figures.scripts.statistics import paired_ratio
from targets import catalogue
from toolkit import boundaries

POSTERIORS = ("r2sgld_fig4_lorenz_posterior", "r2sgld_fig6_lorenz_posterior", "r2sgld_fig8_lotka_volterra_posterior")


def table_of(produced, name):
    product = produced(name)
    return product.script.module.table(product.measured.data)


def test_flower_numbers(produced):
    """With 2,000 draws and 4 chains the order of the methods shows already."""
    table = table_of(produced, "r2sgld_fig5_flower")
    last = {row["method"]: row for row in table if int(row["draws"]) == 2_000}
    kl = {method: float(row["kl_nats"]) for method, row in last.items()}
    assert len(kl) == 15
    for reflected, penalised, free in (
        ("R-SGLD", "P-SGLD", "SGLD"), ("R-cycSGLD", "P-cycSGLD", "cycSGLD"), ("r2SGLD", "P-reSGLD", "reSGLD")
    ):  # fmt: skip
        assert kl[reflected] < kl[free]
        assert kl[reflected] < kl[penalised] * 1.25  # they part with more draws
    assert kl["P-reSGLD (ours)"] < kl["reSGLD"]
    assert min(NINE, key=kl.get) == "r2SGLD"
    floor = float(last["r2SGLD"]["kl_of_independent_draws"])
    assert floor == pytest.approx(kl["independent draws"], rel=0.05)
    assert floor < kl["r2SGLD"] < 1.2 * floor
    assert float(last["r2SGLD"]["worth_independent_draws"]) > 1_500
    assert float(last["r2SGLD"]["share_outside"]) == 0.0
    assert float(last["SGLD"]["share_outside"]) > 0.2
    assert 0.25 < float(last["r2SGLD"]["swap_rate"]) < 0.35


def test_flower_settings_are_those_it_states(produced):
    """Equal cost, the paper's step sizes and noise, the stated penalty: what the script's text says it runs."""
    records = {record.label: record for record in produced("r2sgld_fig5_flower").measured.records}
    assert tuple(records)[:9] == NINE
    for record in records.values():
        assert (record.steps - record.burn_in) * record.replicas == 20 * 2_000
        assert record.burn_in * 5 == record.steps - record.burn_in
        assert record.thin * record.replicas == 20
    for method, sampler in nine_samplers().items():
        printed = "penalise_as_printed" if method.startswith("P-") else "ignore"
        kind = "reflect" if method.startswith(("R-", "r2")) else printed
        assert sampler.boundary.kind == kind
        assert sampler.boundary.coefficient == (10.0 if method.startswith("P-") else 0.0)
        assert sampler.gradient_noise == 0.05
        if sampler.n_replicas == 2:
            assert (tuple(sampler.step_sizes), tuple(sampler.temperatures)) == ((5e-4, 1.5e-3), (1.0, 10.0))
            assert (sampler.energy_noise, sampler.tempering.swap_threshold) == (0.05, None)
        else:
            cyclical = sampler.schedule.name == "cosine_cycles(5, exploration=0.0, floor=0.1)"
            assert cyclical == ("cyc" in method)
            assert tuple(sampler.step_sizes) == ((1e-3,) if cyclical else (5e-4,))
    for method, own in with_own_penalty().items():
        printed = nine_samplers()[method.removesuffix(" (ours)")]
        assert own == replace(printed, boundary=boundaries.penalise(400.0))
    assert (RELEASED.correction, RELEASED.tempering.swap_threshold) == (9.5, 3e-4)
    assert RELEASED.boundary.kind == "reflect"


def test_independent_draws_differ_between_chains(produced):
    table = table_of(produced, "r2sgld_fig5_flower")
    assert all(float(r["kl_half_width_95"]) > 0 for r in table)


def test_domains_numbers(produced):
    """r2SGLD and the composition are near the floor on every domain; penalised exchange, near it too, leaves them."""
    table = table_of(produced, "r2sgld_fig10_domains")
    for domain in ("heart", "octagon", "cross"):
        last = {row["method"]: row for row in table if row["domain"] == domain and row["draws"] == 2_000}
        kl = {method: row["kl_nats"] for method, row in last.items()}
        floor = last["r2SGLD"]["kl_of_independent_draws"]
        assert kl["independent draws"] == pytest.approx(floor, rel=0.05)
        assert all(0.9 * floor < kl[method] < 1.2 * floor for method in ("r2SGLD", COMPOSITION))
        assert all(kl[method] > 1.05 * kl["r2SGLD"] for method in NINE if method not in ("r2SGLD", "P-reSGLD"))
        for method, row in last.items():
            within = method.startswith(("R-", "r2", "independent"))
            assert row["share_outside"] == 0.0 if within else row["share_outside"] > 0.001
    claims = produced("r2sgld_fig10_domains").script.compare(produced("r2sgld_fig10_domains").measured.data)
    best = [claim.what.split()[3].rstrip(",") for claim in claims if "best of the others" in claim.what]
    assert len(claims) == 3 * 12 - best.count("P-reSGLD")  # whose pair with r2SGLD is that row
    assert len({claim.what for claim in claims}) == len(claims)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["r2sgld_fig5_flower", "r2sgld_fig10_domains"])
def test_r2sgld_is_the_best_of_nine_at_full_size(name, tmp_path):
    product = produce(script(name), out=tmp_path, quick=False)
    best = [claim for claim in product.script.compare(product.measured.data) if "best of the others" in claim.what]
    assert {claim.verdict for claim in best} == {"as claimed"}


def test_diameter_numbers(produced):
    """The flat octagon relaxes as 1/diameter², at the rate of the Laplacian; of equal areas, a disc is the fastest."""
    table = table_of(produced, "r2sgld_fig11_diameter")
    assert [row["modes"] for row in table] == [9, 13, 21]
    assert [modes_in(radius) for radius in RADII] == [9, 9, 13, 13, 21, 25]
    assert table[0]["power_of_flat"] == pytest.approx(1.0, abs=0.15)
    assert table[0]["power_of_independent_draws"] == pytest.approx(1.0, abs=0.15)  # cells are as the area
    assert 0.8 < table[0]["power_of_reach"] < 1.5
    assert -0.1 < table[0]["power_of_worth"] < 0.5
    disc = 1.8411838**2 / (np.sqrt(8.0) / np.pi)  # the first zero of J1', and an octagon's area over π radius²
    rates = np.array([row["flat_rate_per_unit_time"] * row["circumradius"] ** 2 for row in table])
    assert rates.mean() == pytest.approx(disc, rel=0.06)
    kl = [row["kl_nats"] for row in table]
    assert all(row["kl_nats"] > 1.3 * row["kl_of_independent_draws"] for row in table)
    assert kl[0] < kl[1] < kl[2]


def test_even_odd_numbers(produced):
    """Even–odd swaps make more round trips than random ones, neither more than swaps without memory would."""
    table = {(row["scheme"], row["replicas"]): row for row in table_of(produced, "r2sgld_fig13_deo_paths")}
    assert len(table) == 8
    for row in table.values():
        ratio = row["round_trips_per_attempt"] / row["expected_if_independent"]
        assert 0.6 < ratio < 1.0 + 4.5 * row["standard_error"] / row["expected_if_independent"]
    trips = {key: row["round_trips_per_attempt"] for key, row in table.items()}
    assert trips["deo", 2] == trips["seo", 2]  # one pair, tried every time
    for n, gain in ((4, 1.5), (8, 3.0), (16, 6.0)):
        assert trips["deo", n] > gain * trips["seo", n]
    walkers = produced("r2sgld_fig13_deo_paths").measured.data["walkers"]
    assert (np.sort(walkers, axis=1) == np.arange(8)[None, :, None]).all()
    steps = np.abs(np.diff(np.argsort(walkers, axis=1), axis=-1))
    assert steps.max() == 1  # a walker moves by one temperature at a time


def test_trajectory_numbers(produced):
    table = table_of(produced, "r2sgld_fig1_trajectory")
    assert len(table) == 400
    assert 0.2 < np.mean([int(row["swapped"]) for row in table]) < 0.45
    paths = {r: np.array([[float(row[f"{r}_x1"]), float(row[f"{r}_x2"])] for row in table]) for r in ("cold", "hot")}
    swapped = np.array([int(row["swapped"]) for row in table])[1:] == 1
    for name, other, reach in (("cold", "hot", 8 * np.sqrt(2 * 5e-4)), ("hot", "cold", 8 * np.sqrt(2 * 1.5e-3 * 10))):
        came_from = np.where(swapped[:, None], paths[other][:-1], paths[name][:-1])
        assert (np.hypot(*(paths[name][1:] - came_from).T) < reach).all()


def test_gallery_numbers(produced):
    known = {row["target"]: row for row in table_of(produced, "gallery_targets")}
    assert list(known) == [target.name for target in catalogue() if not target.name.startswith(SLOW)]
    assert float(known["unequal_pair"]["log_normaliser"]) == 0.0
    assert float(known["unequal_pair"]["lightest_mode"]) == 0.4
    assert int(known["gaussian_grid25"]["modes"]) == 25
    gaussian = known["correlated_gaussian(0.95) in 2-D"]
    assert float(gaussian["energy_median"]) == pytest.approx(np.log(2.0), rel=1e-5)
    assert float(gaussian["log_normaliser"]) == pytest.approx(np.log(2 * np.pi * np.sqrt(1 - 0.95**2)), rel=1e-5)
    regions = {row["domain"]: row for row in table_of(produced, "gallery_domains")}
    assert float(regions["flower"]["area"]) == pytest.approx(np.pi * (2 / 3.5) ** 2 * 9.5, rel=1e-5)
    assert float(regions["box"]["largest_distance"]) == pytest.approx(1.0, abs=0.06)  # on a grid of 30 points
    assert {float(row["share_of_path_outside"]) for row in regions.values()} == {0.0}


def test_identification_numbers(produced):
    """Three seeds in place of ten: the closed form is there, and σ of SGLD as far as its relaxation law has come."""
    posterior = {name: table_of(produced, name) for name in POSTERIORS}
    for table in posterior.values():
        for row in table:
            assert float(row["closed_form_mean"]) == pytest.approx(float(row["truth"]), rel=2e-3)
            assert float(row["mode_sd_over_seeds"]) > 0.0
            assert np.isnan(row["swap_rate"]) == ("re" not in row["method"] and "r2" not in row["method"])
            assert (float(row["reflections_per_seed"]) > 0.0) <= row["method"].startswith(("R-", "r2"))
    sigma = {row["method"]: row for row in posterior["r2sgld_fig6_lorenz_posterior"] if row["parameter"] == "sigma"}
    rate = 5e-6 / float(sigma["SGLD"]["closed_form_sd"]) ** 2
    steps = np.where(np.arange(60_000) < 10_000, 1.0, 0.9999 ** (np.arange(60_000) - 10_000.0)).cumsum()
    at = np.exp(-rate * steps[20_000:]).mean()  # the draws' mean, from 0 and from 2
    assert float(sigma["SGLD"]["mean"]) == pytest.approx(10.0 * (1.0 - at), abs=0.25)
    assert float(sigma["R-SGLD"]["mean"]) > float(sigma["SGLD"]["mean"]) + 0.2
    printed = {(r["method"], r["parameter"]): r["printed_mode"] for r in posterior["r2sgld_fig4_lorenz_posterior"]}
    assert printed["r2SGLD", "sigma"] == 9.99
    for name in ("r2sgld_fig3_lorenz_simulation", "r2sgld_fig7_lorenz_simulation"):
        assert all(0.0 < float(row["time_together"]) < 40.0 for row in table_of(produced, name))
    assert all(0.0 < float(row["relative_error_of_simulation"]) < 1.5
               for row in table_of(produced, "r2sgld_fig9_lotka_volterra_simulation"))  # fmt: skip
    assert all(int(r["swaps"]) > 0 and int(r["reflections"]) > 0 for r in table_of(produced, "r2sgld_fig2_schematic"))


def test_quick_identification_shows_what_it_is_about(produced):
    """A newcomer sees the quick pictures first: draws in the panels, and simulations that do not come to rest."""
    for name in POSTERIORS[:2]:
        data = produced(name).measured.data
        inside = data["densities"][:, -1].sum(axis=-1) * np.diff(data["grids"])[:, 0]
        assert (inside > 0.9).all(), inside
    for name in ("r2sgld_fig3_lorenz_simulation", "r2sgld_fig7_lorenz_simulation"):
        spread = produced(name).measured.data["states"][:, -1_000:, 0].std(axis=1)
        assert (spread > 0.5 * spread[0]).all()


WORDS = {  # claims in words that had no row, by a part of each row's text
    "r2sgld_fig3_lorenz_simulation": ["r2SGLD's less reSGLD's"],
    "r2sgld_fig4_lorenz_posterior": [
        "modes from the truth, lorenz: reSGLD's over r2SGLD's",
        "peaks of a seed's posterior",
    ],
    "r2sgld_fig6_lorenz_posterior": [
        "cycSGLD's over R-cycSGLD's",
        "R-cycSGLD's over r2SGLD's",
        "R-SGLD's over r2SGLD's",
    ],
    "r2sgld_fig7_lorenz_simulation": [f"r2SGLD's less {method}'s" for method in identification.METHODS[:4]],
    "r2sgld_fig8_lotka_volterra_posterior": ["reSGLD's over r2SGLD's", "R-SGLD's over R-cycSGLD's"],
    "r2sgld_fig9_lotka_volterra_simulation": ["R-cycSGLD's less r2SGLD's", "R-SGLD's less r2SGLD's"],
    "r2sgld_fig13_deo_paths": ["round trips of DEO over SEO's, 8", "swap rate of DEO over SEO's, 8"],
}


@pytest.mark.parametrize("name", WORDS)
def test_claims_in_words_have_a_row_each(produced, name):
    claims = [claim for claim in produced(name).script.compare(produced(name).measured.data) if claim.in_words]
    for part in WORDS[name]:
        assert [claim.what for claim in claims if part in claim.what], part
    assert len({(claim.what, claim.source) for claim in claims}) == len(claims)


def test_a_paired_ratio_knows_the_numbers_that_both_share():
    """Of 2,000 pairs of samples with the same noise it is in error by what the pairs leave, and by twice it in 5 %."""
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=(2_000, 10)), 0.05 * rng.normal(size=(2, 2_000, 10))
    found = [paired_ratio(3.0 + a, 3.0 + b) for a, b in zip(shared + own[0], shared + own[1], strict=True)]
    z = np.array([(value - 1.0) / error for value, error in found])
    assert 0.05 < (np.abs(z) > 2.0).mean() < 0.12  # Student's t of 9 degrees has 7.7 %
    assert np.mean([error for _, error in found]) < 0.01
    assert paired_ratio([3.0, 4.0], [6.0, 8.0]) == (pytest.approx(0.5), pytest.approx(0.0))


def test_identification_settings_are_those_it_states():
    experiment = identification
    assert (experiment.N_STEPS, experiment.BURN_IN, experiment.BATCH, experiment.N_SEEDS) == (60_000, 20_000, 4096, 10)
    for name, largest in (("lorenz", 2e-5), ("lotka_volterra", 1e-5)):
        steps = {m: tuple(experiment.sampler_of(name, m).step_sizes) for m in experiment.METHODS}
        pairs = ("SGLD", "R-SGLD"), ("cycSGLD", "R-cycSGLD"), ("reSGLD", "r2SGLD")
        for pair, expected in zip(pairs, ((5e-6,), (largest,), (2e-6, largest)), strict=True):
            assert [steps[method] for method in pair] == [expected] * 2
        for method in experiment.METHODS:
            sampler = experiment.sampler_of(name, method)
            assert sampler.boundary.kind == ("reflect" if method.startswith(("R-", "r2")) else "ignore")
            assert ("cosine_cycles(10" if "cyc" in method else "exponential_decay(0.9999") in sampler.schedule.name


def test_modes_are_claimed_with_the_scatter_of_one_seed(produced):
    for name in POSTERIORS[:2]:
        product = produced(name)
        claims = [claim for claim in product.script.compare(product.measured.data) if not claim.in_words]
        assert len(claims) == 3 * len(product.measured.data["methods"])
        for claim in claims:
            assert claim.printed_error == pytest.approx(claim.error * np.sqrt(product.measured.data["modes"].shape[1]))
            assert (claim.verdict == "not printed") == np.isnan(claim.printed)
