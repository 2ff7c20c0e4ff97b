"""Second cases of long tests, left to `make test-slow`: another case of the same test runs every time."""

import signal

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


def pytest_configure():
    """Let Ctrl-C interrupt, which a shell that starts a command in the background has it ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark them slow."""
    for item in items:
        if item.nodeid.endswith(SECOND_CASES):
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
