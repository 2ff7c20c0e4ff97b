"""Which cases of long tests are left to `make test-slow`: some case of the same test runs every time."""

import os
import signal
from collections import Counter

import pytest

SECOND_CASES = (
    "test_boundaries.py::test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not[heart]",
    "test_boundaries.py::test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not[polygon]",
    "test_boundaries.py::test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not[cross]",
    "test_catalogue.py::test_gradient_against_complex_step[logistic_regression, Heart (stand-in)]",
    "test_catalogue.py::test_moments_of_exact_draws[logistic_regression, Heart (stand-in)]",
    "test_constraining.py::test_a_domain_much_larger_than_the_target",
    "test_constraining.py::test_a_target_too_sharp_for_the_grid_is_refused",
    "test_constraining.py::test_cell_masses_against_shapely[flower]",
    "test_constraining.py::test_moments_modes_and_quantiles_against_exact_draws[simplex]",
    "test_constraining.py::test_moments_modes_and_quantiles_against_exact_draws[ball]",
    "test_continuous_kernel.py::test_the_biasing_force_flattens_and_the_thermostat_has_its_law[0.5]",
    "test_logistic.py::test_exact_draws_agree_with_the_stored_run[australian]",
    "test_logistic.py::test_exact_draws_agree_with_the_stored_run[german]",
    "test_logistic.py::test_stored_references_agree_with_importance_sampling[german]",
    "test_philox.py::test_neighbouring_names_are_independent_streams[chain]",
    "test_philox.py::test_neighbouring_names_are_independent_streams[replica]",
    "test_posterior.py::test_it_is_linear_regression_for_its_likelihood[batch0-squares_by_array-normal_by_array]",
    "test_posterior.py::test_priors[quartic]",
    "test_students.py::test_draws_agree_with_cells_energies_moments_and_modes[student_mixture(5 in 64-D, 4 degrees)-]",
    "test_symbolic.py::test_the_source_is_the_same_in_every_process",
    "test_trajectory.py::test_energy_is_the_log_density_under_the_solution_to_the_order_of_the_method[rk5-gaussian]",
    "test_underdamped.py::test_stationary_covariance_of_position_and_momentum[0.05-1.0-0.0]",
)

# Of the cases of these, so many run every time, evenly spread over their list.
SOME_CASES = {
    "test_billiards.py::test_a_billiard_fills_its_domain_and_a_clamped_one_does_not": 3,
    "test_billiards.py::test_squared_momentum_keeps_to_rounding": 6,
    "test_catalogue.py::test_truth_against_a_trapezoidal_sum": 6,
    "test_checkpoint.py::test_a_finished_run_is_extended": 12,
    "test_checkpoint.py::test_a_run_stopped_and_resumed_is_the_run_never_stopped": 12,
    "test_constraining.py::test_independent_draws": 2,
    "test_constraining.py::test_masses_sum_to_one_on_any_grid": 2,
    "test_contour.py::test_the_kernels_are_plain_pythons": 4,
    "test_contour_laws.py::test_reweighted_moments_of_the_normal": 8,
    "test_contour_laws.py::test_theta_is_the_energys_law": 4,
    "test_corrections.py::test_noisy_energies_need_their_correction_under_every_scheme": 2,
    "test_curved.py::test_draws_agree_with_cells_energies_moments_and_modes": 3,
    "test_cycles.py::test_regions_count_by_their_mass": 2,
    "test_domains.py::test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not": 5,
    "test_domains.py::test_uniform_draws": 6,
    "test_dynamics.py::test_stationary_variance": 6,
    "test_exchange_laws.py::test_two_states_keep_their_law_on_every_rung_and_stay_independent": 6,
    "test_identification_laws.py::test_means_and_deviations_are_those_of_the_closed_form": 8,
    "test_identify.py::test_constraints": 4,
}


def pytest_configure():
    """Let Ctrl-C interrupt, which a shell that starts a command in the background has it ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark them slow, but where ALL_CASES is set, as for the faults that tests must find."""
    if os.environ.get("ALL_CASES"):
        return
    tests = [item.nodeid.rpartition("/")[2].partition("[")[0] for item in items]
    cases, seen = Counter(tests), Counter()
    for item, test in zip(items, tests, strict=True):
        kept = SOME_CASES.get(test, cases[test])
        number = seen[test]
        seen[test] += 1
        is_left_out = number * kept // cases[test] == (number + 1) * kept // cases[test]
        if item.nodeid.endswith(SECOND_CASES) or is_left_out:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def produced(tmp_path_factory):
    """A script's name → its product, small, made once by this worker."""
    from figures import produce, script

    out, products = tmp_path_factory.mktemp("figures"), {}

    def product(name):
        if name not in products:
            products[name] = produce(script(name), out=out, quick=True)
        return products[name]

    return product
