"""Malformed calls that ``test_hostile_input`` found to be taken, or to end in another's error, one of a kind."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

import figures
from targets import classics, mixtures, posteriors, shapes
from targets.classics import student
from toolkit import Sampler, accumulators, check_gradient, diagnostics, from_callable, ladders, sample, samplers
from toolkit.boundaries.rules import Boundary
from toolkit.diagnostics import thermostats
from toolkit.diagnostics.cycles import combine_cycles, cycle_of
from toolkit.schedules import Schedule
from toolkit.weighting import resample

NORMAL, PLANAR = mixtures.gaussian_mixture([[0.0]], 1.0), mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
PATH, AXES = np.zeros((2, 2)), Figure().subplots()
HALF: list = [1.0]
HALF.append(HALF)
# What was taken, or ended in another's error, until these calls were found: the call, and what its refusal says first.
FOUND = {
    "ragged times": (lambda: accumulators.kl([1.0], [0.0, 1.0], at=[1, [2]]), r"at\[1\] must be an integer"),
    "ragged masses": (lambda: diagnostics.kl_path([[[0.0]]], [1.0, [1.0]], [0.0, 1.0]), "masses must be an array"),
    "truths for labels": (
        lambda: posteriors.logistic_regression(np.ones((2, 1)), [True, False]),
        r"labels must be .*: give 0 for False and 1 for True, by .astype\(float\)",
    ),
    "ragged breaks": (lambda: figures.trajectory(PATH, AXES, breaks=[[], [None]]), "breaks must be booleans"),
    "weights of others": (
        lambda: diagnostics.mmd([[0.0], [1.0]], [[0.0], [2.0]], other_weights=[-1.0, 1.0]), "other_weights must be ≥ 0",
    ),
    "ragged variance": (lambda: mixtures.gaussian_mixture([[0.0]], [[1.0], [[1.0]]]), "variance must be an array"),
    "ragged cycles": (lambda: combine_cycles([[[0.0]]], [[0.0]], [1.0, [2]]), "cycles must be an array of integers"),
    "step without an array": (lambda: cycle_of(0, 1, 5), r"steps must have shape \(draw,\), got shape \(\)"),
    "separation squared": (lambda: combine_cycles([[[0.0]]], [[0.0]], [0], separation=1e154), "separation must be"),
    "nearly normal": (lambda: student.student_mixture([[0.0]], 1.0, 1e305), "degrees must be finite and ≥ 0.1 and"),
    "checkpoint of a long name": (lambda: sample(NORMAL, samplers.sgld(0.1), n_steps=2, seed=0, checkpoint="x" * 5000),
        "checkpoint must be the path of a file, of at most 240 bytes"),
    "recursive list": (lambda: samplers.sgld(HALF), r"step_size\[1\] must be a number"),
    "replicas beyond number": (lambda: samplers.icsgld(0.1, n_replicas=2**40), "n_replicas must be ≥ 1 and < 65536"),
    "as many particles": (lambda: samplers.svgd(n_replicas=2**40), "n_replicas must be ≥ 1 and < 65536"),
    "bytes for a number": (lambda: samplers.sgld(b"\x80"), "step_size must be a number"),
    "bytes in a table": (lambda: Sampler(step_sizes=("", b"\x80")), "step_sizes"),
    "empty in a ladder": (lambda: samplers.r2sgld(temperatures=[0.5, range(0)]), r"temperatures\[1\] must be a number"),
    "nothing per chain": (lambda: samplers.mala(memoryview(b"")), "step_size must be a number"),
    "no step size": (lambda: samplers.hmc([]), "step_size must be a number, or one for every chain, got"),
    "square beyond floats": (lambda: samplers.sghmc(0.1, noise_estimate=1e155),
        "noise_estimate must be finite and < 1e"),
    "name": (lambda: Sampler(name=None, step_sizes=[0.1]), "name must be a str, got None"),
    "hollow schedule": (lambda: samplers.sgld(0.1, schedule=Schedule("own", None)),
        "schedule.factors must be a function"),
    "count that is a flag": (lambda: Boundary("ignore", max_bounces=False),
        "max_bounces must be an integer, got False"),
    "truth": (lambda: replace(NORMAL, truth=False), "truth must be None or a Truth, got False"),
    "stochastic": (lambda: replace(NORMAL, stochastic=None), "stochastic must be True or False, got None"),
    "name of a function": (lambda: from_callable(lambda x: (x, x), dim=1, name=0), "name must be a str, got 0"),
    "many rungs": (lambda: ladders.geometric_ladder(1.0, 2.0, 2**30), "n_replicas must be ≥ 2 and < 65536, got 10737"),
    "rate near 0": (lambda: ladders.deo_window(2, 5e-324), "rate must be finite and > 1e-300, got 5e-324"),
    "no sampler": (lambda: thermostats.thermostat_law(None, 2), "sampler must be a Sampler, got None"),
    "no run": (lambda: thermostats.coupling_histogram(None), "run must be a Run, got None"),
    "no axis": (lambda: thermostats.running_average(0), "values must have an axis, got the number 0"),
    "nan alone": (lambda: PLANAR.truth.energy_quantiles(np.nan), "probabilities must be finite, got nan"),
    "edge beyond floats": (lambda: PLANAR.truth.cell_masses(10**400, [0.0, 1.0]),
        "x_edges must be an array of real numbers, got 1000"),
    "draws": (lambda: PLANAR.truth.independent_draws(2**50, seed=0), "n must fit into memory, got 1125899906842624,"),
    "points": (lambda: check_gradient(NORMAL, n_points=2**40), "n_points must fit into memory, got 1099511627776,"),
    "resampled": (lambda: resample(np.zeros((1, 2, 1)), [[1, 1]], n=2**50, seed=0),
        "n must fit into memory, got 11258"),
    "radius": (lambda: classics.ring(radius=1e200), "radius must be finite and > 1e-100 and < 1e\\+100, got 1e\\+200"),
    "width": (lambda: classics.ring(width=5e-324), "width must be finite and > 1e-100 and < 1e\\+100, got 5e-324"),
    "shape of nothing": (lambda: shapes.Shape("none", None), "rings must be a sequence of at least one ring, got None"),
    "petals": (lambda: shapes.flower(petals=2**34), "petals must be ≥ 1 and < 16777216, got 17179869184"),
    "hole of no size": (lambda: shapes.annulus(inner=5e-324), "inner must be finite and > 1e-100"),
    "pseudo-count": (lambda: diagnostics.expected_kl([0.5, 0.5], 2, pseudo_count=5e-324),
        "pseudo_count must be finite"),
    "figure elsewhere": (lambda: figures.save(Figure(), [{"a": 1}], Path("out"), "../a"),
        "name must be the name of a fi"),
    "figure in a folder": (lambda: figures.save(Figure(), [{"a": 1}], Path("out"), "a/b"),
        "name must be the name of a fi"),
}  # fmt: skip


@pytest.mark.parametrize("what", FOUND)
def test_what_was_found_is_refused_in_words(what):
    call, words = FOUND[what]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        call()
