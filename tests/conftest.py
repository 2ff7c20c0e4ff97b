"""Which cases of long tests are left to `make test-slow`: some case of the same test runs every time."""

import os
import signal
from collections import Counter

import pytest

LEFT_OUT = (
    "test_boundaries.py::test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not[cross]",
    "test_boundaries.py::test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not[heart]",
    "test_boundaries.py::test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not[polygon]",
    "test_catalogue.py::test_gradient_against_complex_step[logistic_regression, Heart (stand-in)]",
    "test_catalogue.py::test_gradient_against_differences[logistic_regression, Heart (stand-in)]",
    "test_catalogue.py::test_moments_of_exact_draws[logistic_regression, Heart (stand-in)]",
    "test_compiling.py::test_an_edit_after_the_import_is_not_filed_under_the_new_source",
    "test_compiling.py::test_an_edit_of_another_package_is_seen",
    "test_constraining.py::test_a_domain_much_larger_than_the_target",
    "test_constraining.py::test_a_target_too_sharp_for_the_grid_is_refused",
    "test_constraining.py::test_cell_masses_against_shapely[flower]",
    "test_constraining.py::test_moments_modes_and_quantiles_against_exact_draws[ball]",
    "test_constraining.py::test_moments_modes_and_quantiles_against_exact_draws[simplex]",
    "test_continuous_kernel.py::test_the_biasing_force_flattens_and_the_thermostat_has_its_law[0.5]",
    "test_datatree.py::test_arviz_draws_a_plot_of_a_run_in_memory",
    "test_describing.py::test_other_processes_describe_alike",
    "test_gradient_check.py::test_the_zoo_passes[linear_regression, Heart (stand-in)]",
    "test_gradient_check.py::test_the_zoo_passes[logistic_regression, Heart (stand-in)]",
    "test_identification.py::test_parameters_named_like_initial_states_are_refused",
    "test_logistic.py::test_exact_draws_agree_with_the_stored_run[australian]",
    "test_logistic.py::test_exact_draws_agree_with_the_stored_run[german]",
    "test_logistic.py::test_stored_references_agree_with_importance_sampling[german]",
    "test_philox.py::test_moments_of_normals",
    "test_philox.py::test_neighbouring_names_are_independent_streams[chain]",
    "test_philox.py::test_neighbouring_names_are_independent_streams[replica]",
    "test_posterior.py::test_it_is_linear_regression_for_its_likelihood[batch0-squares_by_array-normal_by_array]",
    "test_posterior.py::test_priors[quartic]",
    "test_students.py::test_draws_agree_with_cells_energies_moments_and_modes[student_mixture(5 in 64-D, 4 degrees)-]",
    "test_symbolic.py::test_a_max_of_many_costs_one_choice_each",
    "test_symbolic.py::test_a_mixture_is_right_where_every_exponential_underflows",
    "test_symbolic.py::test_the_source_is_the_same_in_every_process",
    "test_trajectory.py::test_a_chaotic_system_is_found_from_noisy_data_by_segments_and_not_without",
    "test_trajectory.py::test_energy_is_the_log_density_under_the_solution_to_the_order_of_the_method[rk5-gaussian]",
    "test_underdamped.py::test_stationary_covariance_of_position_and_momentum[0.05-1.0-0.0]",
)

# Of the cases of these, so many run every time, evenly spread over their list.
SOME_CASES = {
    "test_moments.py::test_moments_of_hard_data": 2,
    "test_accumulators.py::test_runs_gather_what_stored_draws_give": 1,
    "test_billiards.py::test_a_billiard_fills_its_domain_and_a_clamped_one_does_not": 1,
    "test_billiards.py::test_squared_momentum_keeps_to_rounding": 6,
    "test_boundaries.py::test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not": 1,
    "test_catalogue.py::test_energy_quantiles_against_exact_draws": 6,
    "test_catalogue.py::test_gradient_against_complex_step": 5,
    "test_catalogue.py::test_gradient_against_differences": 5,
    "test_catalogue.py::test_memberships_mean_is_the_weights_of_the_modes": 6,
    "test_catalogue.py::test_moments_of_exact_draws": 6,
    "test_catalogue.py::test_truth_against_a_trapezoidal_sum": 2,
    "test_checkpoint.py::test_a_finished_run_is_extended": 8,
    "test_checkpoint.py::test_a_run_stopped_and_resumed_is_the_run_never_stopped": 8,
    "test_constraining.py::test_cell_masses_against_shapely": 2,
    "test_constraining.py::test_independent_draws": 1,
    "test_constraining.py::test_masses_sum_to_one_on_any_grid": 1,
    "test_constraining.py::test_moments_modes_and_quantiles_against_exact_draws": 2,
    "test_continuous_kernel.py::test_the_biasing_force_flattens_and_the_thermostat_has_its_law": 1,
    "test_continuous_kernel.py::test_the_kernel_is_the_papers_algorithm": 2,
    "test_contour.py::test_the_kernels_are_plain_pythons": 2,
    "test_contour_laws.py::test_noisy_energies": 2,
    "test_contour_laws.py::test_reweighted_moments_of_the_normal": 8,
    "test_contour_laws.py::test_theta_is_the_energys_law": 4,
    "test_corrections.py::test_noisy_energies_need_their_correction_under_every_scheme": 1,
    "test_curved.py::test_draws_agree_with_cells_energies_moments_and_modes": 1,
    "test_cycles.py::test_regions_count_by_their_mass": 2,
    "test_describing.py::test_a_sampler_comes_back_equal_and_with_the_same_bits": 2,
    "test_domains.py::test_a_reflected_walk_stays_uniform_and_a_clamped_one_does_not": 2,
    "test_domains.py::test_uniform_draws": 6,
    "test_dynamics.py::test_stationary_variance": 6,
    "test_exchange_laws.py::test_two_states_keep_their_law_on_every_rung_and_stay_independent": 2,
    "test_figures.py::test_each_script_draws_the_same_bytes_again": 1,
    "test_figures.py::test_each_script_measures_the_same_arrays_again": 1,
    "test_gradient_check.py::test_the_zoo_passes": 8,
    "test_identification_laws.py::test_means_and_deviations_are_those_of_the_closed_form": 8,
    "test_identify.py::test_batches_are_unbiased_and_whole_at_the_end": 1,
    "test_identify.py::test_constraints": 2,
    "test_identify.py::test_the_foot_on_a_curved_wall_is_its_nearest_point": 1,
    "test_identify.py::test_velocities_from_clean_states": 1,
    "test_integrate.py::test_complex_steps_give_the_derivatives_of_fixed_steps": 1,
    "test_integrate.py::test_whatever_the_numbers_every_lane_ends_and_is_nan_only_after_its_end": 1,
    "test_law_checks.py::test_a_wrong_law_fails": 2,
    "test_logistic.py::test_exact_draws_agree_with_the_stored_run": 1,
    "test_maths.py::test_every_phase_is_compiled_to_vector_instructions": 8,
    "test_metropolis.py::test_acceptance_and_variance_from_far_away": 2,
    "test_metropolis.py::test_rejection_keeps_the_law_of_25_modes_in_a_flower": 1,
    "test_metropolis.py::test_rejection_keeps_the_law_of_a_normal_in_a_square": 1,
    "test_metropolis.py::test_the_law_is_exact_at_any_step_size": 4,
    "test_mixtures.py::test_energy_law_of_components_of_any_width_and_number": 2,
    "test_partitions.py::test_a_pilot_finds_a_partition_that_works": 2,
    "test_philox.py::test_neighbouring_names_are_independent_streams": 1,
    "test_plane.py::test_a_mode_at_a_centre_is_met_however_narrow": 1,
    "test_pointwise.py::test_every_form_equals_the_block_function": 2,
    "test_polygons.py::test_inside_distance_and_nearest_point": 3,
    "test_polygons.py::test_nearest_points_and_normals": 3,
    "test_posterior.py::test_it_is_linear_regression_for_its_likelihood": 2,
    "test_posterior.py::test_minibatches_have_their_mean_and_covariance": 1,
    "test_product.py::test_every_point_is_refused_or_obeys_its_law": 30,
    "test_regression.py::test_tempering_with_minibatches_of_less_variance": 1,
    "test_saved_files.py::test_an_edited_file_never_gives_another_run": 2,
    "test_saving.py::test_every_constructors_run_comes_back_from_every_format": 4,
    "test_snapshots.py::test_nothing_is_stored_in_vain": 5,
    "test_snapshots.py::test_scratch_is_scratch": 8,
    "test_steppers.py::test_one_step_of_a_linear_system_is_the_methods_polynomial": 2,
    "test_symbolic.py::test_energy_and_gradient_are_those_of_sympy": 6,
    "test_tempering.py::test_a_swap_exchanges_positions_and_rescales_momenta": 1,
    "test_tempering.py::test_acceptance_equals_its_closed_form": 3,
    "test_trajectory.py::test_energy_is_the_log_density_under_the_solution_to_the_order_of_the_method": 1,
    "test_trajectory.py::test_energy_of_a_linear_system_in_closed_form": 1,
    "test_trajectory.py::test_gradient_is_that_of_the_energy": 2,
    "test_underdamped.py::test_stationary_covariance_of_position_and_momentum": 2,
    "test_vectorised.py::test_block_functions_are_vectorised": 2,
    "test_verify.py::test_every_constructor_passes": 4,
    "test_verify.py::test_the_command_runs_the_file_it_is_given_and_fails_where_a_check_does": 1,
    "test_weak.py::test_precision_is_that_of_the_spread_over_noise": 1,
    "test_wells.py::test_centres_are_minima": 2,
    "test_wells.py::test_draws_agree_with_cells_energies_moments_and_modes": 1,
    "test_wells.py::test_truth_against_the_trapezoidal_rule": 1,
}


def pytest_configure():
    """Let Ctrl-C interrupt, which a shell that starts a command in the background has it ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark them slow, but where ALL_CASES is set, as for the faults that tests must find."""
    if os.environ.get("ALL_CASES"):
        return
    others = []
    for item in items:
        if item.nodeid.partition("[")[0].endswith(LEFT_OUT) or item.nodeid.endswith(LEFT_OUT):
            item.add_marker(pytest.mark.slow)
        elif not item.get_closest_marker("slow"):
            others.append((item.nodeid.rpartition("/")[2].partition("[")[0], item))
    cases, seen = Counter(test for test, _ in others), Counter()
    for test, item in others:
        kept, number = SOME_CASES.get(test, cases[test]), seen[test]
        seen[test] += 1
        if number * kept // cases[test] == (number + 1) * kept // cases[test]:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def produced(tmp_path_factory):
    """A script's name → its product, small, drawn once by this worker of data that any worker has measured."""
    from figures import produce, script

    out, products = tmp_path_factory.mktemp("figures"), {}
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = tmp_path_factory.getbasetemp().parent / "figures_data"
        shared.mkdir(exist_ok=True)
        (out / "data").symlink_to(shared, target_is_directory=True)

    def product(name):
        if name not in products:
            products[name] = produce(script(name), out=out, quick=True)
        return products[name]

    return product


@pytest.fixture
def unflushed(monkeypatch):
    """Leave it to the system when to write saved runs to the disk, which tests need not wait for."""
    monkeypatch.setattr("toolkit._output.storage.run_file.flush", lambda *_, **__: None)
