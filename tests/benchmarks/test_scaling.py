"""The table of scaling: its fits, and that every case can be made at its smallest size."""

import numpy as np
import pytest

from benchmarks.speed.scaling import cases, expected, fitted


def test_a_power_law_is_fitted():
    sizes = np.array([2.0, 10.0, 300.0])
    assert fitted(sizes, 3.0 * sizes**0.7) == pytest.approx(0.7)


def test_a_law_is_met_where_it_is_expected():
    case = next(cases())
    assert case.exponent == -1.0
    assert expected(case, 2, 1.0) == 0.5
    assert expected(case._replace(exponent=0.0), 2, 1.0) == 1.0


def test_sizes_rise_and_the_law_begins_at_one_of_them():
    for case in cases():
        assert list(case.sizes) == sorted(set(case.sizes))
        assert case.first in case.sizes[:-1]


def test_units_are_chain_steps_times_what_grows():
    units = {case.name: case.make(4).units for case in cases() if case.name in ("chains", "replicas", "dimension")}
    assert units == {"chains": 4, "replicas": 1024, "dimension": 4 * 1024}
