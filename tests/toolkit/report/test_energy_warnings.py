"""Runs whose energy has no law, or no resolution, say so; counted, and once."""

import numpy as np
import pytest

from toolkit import DivergenceError, from_callable, sample, samplers, target

STEPS = {"n_steps": 4_000, "n_chains": 8, "seed": 0}


def made(function, calls=None):
    """A target in the plane, whose points are counted."""

    def counted(x):
        if calls is not None:
            calls.append(len(x))
        return function(x)

    return from_callable(counted, dim=2, name="mine")


def normal(x):
    with np.errstate(all="ignore"):  # far out
        return 0.5 * (x**2).sum(axis=1), x


def angle(x):
    return -3.0 * np.cos(x[:, 0]) + 0.5 * x[:, 1] ** 2, np.stack([3.0 * np.sin(x[:, 0]), x[:, 1]], axis=1)


def test_an_angle_without_a_box_is_named():
    run = sample(made(angle), samplers.mala(0.3), **STEPS)
    assert "It repeats every 2π: for an angle, give the problem a domain" in run.warnings[0]
    assert run.warnings[0] in str(run)


def test_a_log_density_is_named_where_the_run_ends_and_where_it_diverges():
    wrong = made(lambda x: (-normal(x)[0], -x))
    run = sample(wrong, samplers.mala(0.01), **STEPS)
    assert "Did you return the log density?" in run.warnings[0]
    with pytest.raises(DivergenceError, match="Did you return the log density"):
        sample(wrong, samplers.sgld(0.5), n_steps=20_000, n_chains=8, seed=0)


def test_a_divergence_of_a_law_keeps_its_cause():
    with pytest.raises(DivergenceError, match="make the step size smaller"):
        sample(made(normal), samplers.sgld(5.0), n_steps=20_000, n_chains=8, seed=0)


def test_a_constant_that_drowns_the_energy_is_said():
    run = sample(made(lambda x: (normal(x)[0] + 1e17, x)), samplers.mala(0.3), **STEPS)
    assert "neighbouring numbers in float64 are 16 nats apart" in run.warnings[0]


def test_a_good_energy_is_looked_at_once_for_a_hundredth_of_the_run():
    calls = []
    run = sample(made(normal, calls), samplers.mala(0.7), **{**STEPS, "n_steps": 3_000})
    before = sum(calls)
    assert not [sentence for sentence in run.warnings if "mine" in sentence]
    looked = sum(calls) - before
    assert 0 < looked <= 0.01 * run.gradient_evaluations
    assert str(run)
    assert sum(calls) == before + looked


def test_a_function_that_raises_afterwards_does_not_spoil_the_report():
    broken = []

    def function(x):
        if broken:
            raise KeyError("gone")
        return normal(x)

    run = sample(made(function), samplers.mala(0.7), **STEPS)
    broken.append(True)
    assert "mala on mine" in str(run)


@target(dim=2)
def compiled_angle(x):
    return -3.0 * np.cos(x[0]) + 0.5 * x[1] * x[1], (3.0 * np.sin(x[0]), x[1])


@target(dim=2)
def compiled_log_density(x):
    return -0.5 * (x[0] * x[0] + x[1] * x[1]), (-x[0], -x[1])


@target(dim=2)
def compiled_constant(x):
    return 1e17 + 0.5 * (x[0] * x[0] + x[1] * x[1]), (x[0], x[1])


@target(dim=2)
def compiled_normal(x):
    return 0.5 * (x[0] * x[0] + x[1] * x[1]), (x[0], x[1])


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (compiled_angle, "repeats every 2π"),
        (compiled_log_density, "return the log density"),
        (compiled_constant, "leave out the constant"),
        (compiled_normal, None),
    ],
)
def test_a_compiled_target_is_looked_at_however_short_the_run(problem, said):
    run = sample(problem, samplers.mala(0.1), n_steps=20, n_chains=2, seed=0)
    found = [sentence for sentence in run.warnings if "energy of" in sentence.lower() or "Energies of" in sentence]
    assert [said in sentence for sentence in found] == ([] if said is None else [True])


def test_a_fault_of_the_package_is_not_hidden(monkeypatch):
    def raises(*_, **__):
        raise ZeroDivisionError("ours")

    run = sample(made(normal), samplers.mala(0.7), **STEPS)
    monkeypatch.setattr("toolkit._output.report.energy_warnings.improper_words", raises)
    with pytest.raises(ZeroDivisionError):
        _ = run.warnings
