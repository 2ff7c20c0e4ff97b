"""The weak likelihood's search: it shows where it is, and ends after its time, in ``identify`` and ``discover``."""

import warnings

import numpy as np
import pytest

import sysid
from sysid.discovery import sparse_fit

PREDATORS = sysid.systems.lotka_volterra()
DATA = sysid.data.simulate(PREDATORS, np.linspace(0.0, 10.0, 101), noise=0.01, seed=0)
LATE = r"^the search for coefficients and paths has not ended within time_limit = 1e-09 s, after \d+ evaluations: it is"


def test_a_search_without_time_says_how_far_it_has_come():
    with pytest.raises(TimeoutError, match=LATE):
        sysid.identify(DATA, PREDATORS, likelihood="weak", time_limit=1e-9)
    with pytest.raises(TimeoutError, match=LATE):
        sysid.discover(DATA, sweeps=50, time_limit=1e-9)
    with pytest.raises(ValueError, match="time_limit must be finite and > 0"):
        sysid.discover(DATA, sweeps=50, time_limit=0.0)


def test_where_a_later_round_has_no_time_the_equations_are_those_before(monkeypatch):
    def late(*arguments):
        raise TimeoutError("the time is up")

    monkeypatch.setattr(sparse_fit, "fit_near", late)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = sysid.discover(DATA, sweeps=50)
    said = [str(warning.message) for warning in caught]
    assert "discover: the time is up. The equations are those of the round before" in said
    assert {"dprey:prey", "dpredator:prey predator"} <= set(found.sparse.support)


def test_searches_show_their_stage_where_that_is_wanted(capsys):
    quiet = sysid.identify(DATA, PREDATORS, likelihood="weak")
    assert capsys.readouterr().err == ""
    shown = sysid.identify(DATA, PREDATORS, likelihood="weak", progress=True)
    assert "coefficients and paths, the fit with 2 steps between samples" in capsys.readouterr().err
    np.testing.assert_array_equal(shown.prepared.numbers, quiet.prepared.numbers)
    sysid.discover(DATA, sweeps=50, progress=True)
    assert "coefficients and paths, round 1 of the sparse posterior" in capsys.readouterr().err
