"""Arguments whose own methods raise, times in place of counts, and numbers that no run could end with are refused.

Every refusal is a TypeError or ValueError that names its argument; of the object's methods none is heard of.
"""

import numpy as np
import pytest
from matplotlib.figure import Figure

import figures
import sysid
from sysid import data, libraries, likelihoods, priors, sparsity, systems
from targets import classics, datasets, mixtures
from tests.hostile.values import BASES, ERRORS, METHODS, PROPERTIES, Endless, failing_generator, raising
from toolkit import Sampler, accumulators, errors, sample, samplers

NORMAL, LORENZ = mixtures.gaussian_mixture([[0.0]], 1.0), systems.lorenz()
TIMES = np.linspace(0.0, 1.0, 21)
DATA = data.simulate(LORENZ, TIMES, seed=0)
PROBLEM = sysid.identify(DATA, LORENZ)
# For every kind of check a call with one argument, and its name.
CALLS = {
    "count": (lambda v: samplers.svgd(n_replicas=v), "n_replicas"),
    "number": (lambda v: priors.gaussian(v), "mean"),
    "number per chain": (lambda v: samplers.sgld(v), "step_size"),
    "flag": (lambda v: samplers.svgd(preconditioned=v), "preconditioned"),
    "choice": (lambda v: likelihoods.derivative(velocities=v), "velocities"),
    "text": (lambda v: Sampler(v, step_sizes=[0.1]), "name"),
    "instance": (lambda v: sparsity.natural_scales(DATA, v), "model"),
    "problem": (lambda v: sample(v, samplers.sgld(0.1), n_steps=2, seed=0), "problem"),
    "numbers": (lambda v: priors.Prior(4, weights=v), "weights"),
    "array": (lambda v: sysid.marginal_modes(v), "draws"),
    "lanes": (lambda v: sysid.integrate.solve(LORENZ, TIMES, v), "parameters"),
    "run or array": (lambda v: PROBLEM.parameters(v), "draws"),
    "edges": (lambda v: accumulators.energy_histogram(v), "edges"),
    "path": (lambda v: datasets.heart(v), "path"),
    "path of data": (lambda v: data.load(v, time="t"), "path"),
    "checkpoint": (lambda v: sample(NORMAL, samplers.sgld(0.1), n_steps=2, seed=0, checkpoint=v), "checkpoint"),
    "mapping": (lambda v: sysid.model_of(libraries.polynomial(("x",), 1), fixed=v), "fixed"),
    "names": (lambda v: libraries.polynomial(v, 1), "states"),
    "pictures": (lambda v: figures.trajectory(v, Figure().subplots()), "path"),
}  # fmt: skip
# Of some of these a number, a text or a mapping is right, though its methods raise.
RIGHT = {"number": {int}, "text": {str}, "mapping": {dict}, "path": {str}, "path of data": {str}, "checkpoint": {str}}


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize("base", [object, *BASES])
def test_an_object_whose_methods_raise_is_refused_by_name(kind, base):
    if base in RIGHT.get(kind, ()):
        pytest.skip("right but for its methods, which are called")
    call, name = CALLS[kind]
    every = [(method,) for method in METHODS + PROPERTIES]
    for k, methods in enumerate([*every, METHODS, PROPERTIES, ("__repr__", "__getattr__", "__array__", "__len__")]):
        if base is np.ndarray and "__array_interface__" in methods:
            continue
        with pytest.raises((TypeError, ValueError), match=rf"^{name}\b.* must (be|have)"):
            call(raising(methods, ERRORS[k % len(ERRORS)], base))


@pytest.mark.parametrize("kind", CALLS)
@pytest.mark.parametrize(
    "make", [failing_generator, Endless, lambda: np.timedelta64(3, "s"), lambda: np.datetime64("2000-01-01"),
        lambda: np.timedelta64("NaT"), lambda: 10**5000]
)  # fmt: skip
def test_times_endless_sequences_and_huge_integers_are_refused_by_name(kind, make):
    call, name = CALLS[kind]
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b.* must (be|have)"):
        call(make())


FOUND = {
    "exponent of 30,000 years": (lambda: sysid.largest_lyapunov(LORENZ, time=1e12), r"time \+ burn_in must be at most"),
    "burn-in": (lambda: sysid.largest_lyapunov(LORENZ, burn_in=1e300), r"time \+ burn_in must be at most 1e\+07 times"),
    "short steps": (lambda: sysid.largest_lyapunov(LORENZ, step=5e-324), r"time \+ burn_in must be at most 1e\+09"),
    "no step": (lambda: sysid.largest_lyapunov(LORENZ, step=None), "step must be a number, got None"),
    "parameters": (lambda: PROBLEM.system_parameters_of(0.0), r"parameters must have shape \(3,\) or \(n, 3\), got"),
    "more parameters": (lambda: PROBLEM.start_of([[1.0, 2.0]]), r"parameters must have shape \(3,\) or \(n, 3\), got"),
    "chains": (lambda: PROBLEM.starts(2**40, seed=0), "n_chains must fit into memory, got 1099511627776"),
    "no run": (lambda: PROBLEM.to_datatree(None), "run must be a Run, got None"),
    "prior draws": (lambda: priors.gaussian().draws(2**40, np.random.default_rng(0)), "n must fit into memory"),
    "no generator": (lambda: priors.gaussian().draws(2, 7), "rng must be a Generator, got 7"),
    "trajectories": (lambda: sysid.simulate(LORENZ.usual, TIMES, problem=LORENZ, n_draws=2**30),
        "n_draws must fit into memory, got 1073741824"),
    "other histograms": (lambda: sysid.histograms(DATA.values).distance(None), "other must be a Histograms, got None"),
    "digits": (lambda: sysid.model_of(libraries.polynomial(("x",), 1)).equations([1.0, 2.0], digits=None),
        "digits must be an integer, got None"),
    "no progress": (lambda: likelihoods.trajectory().prepare(DATA, LORENZ, False), "progress must be a SearchProgress"),
    "no numbers": (lambda: likelihoods.trajectory(noise=()), "noise must be one of 'free', 'known' or numbers, got"),
    "nothing to fit": (lambda: likelihoods.weak().fit([DATA], None), "model must be a Model, got None"),
    "tolerance": (lambda: sysid.simulate(LORENZ.usual, TIMES, problem=LORENZ, rtol=None), "rtol must be a number, got"),
    "sweeps": (lambda: sparsity.sparse_posterior(PROBLEM.prepared, None, sweeps=np.timedelta64(20)),
        "sweeps must be an integer, got"),
    "frequencies": (lambda: libraries.fourier(("x",), 1001), "n_frequencies must leave at most 2000 terms, got 1001"),
    "long path": (lambda: datasets.heart("x" * 5000), "path must be None or the path of"),
    "name": (lambda: systems.own(LORENZ.rhs, states="xyz", parameters=(), usual=(), start=(0.0,), name=None),
        "name must be a str, got None"),
    "variance": (lambda: classics.student_mixture([[0.0]], 1.0, np.timedelta64(3)), "degrees must be a number, got"),
}  # fmt: skip


@pytest.mark.parametrize("what", FOUND)
def test_what_the_hostile_calls_found_is_refused_in_words(what):
    call, words = FOUND[what]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        call()


def test_numbers_of_a_class_of_ones_own_are_taken_by_their_value():
    """A float or an int whose methods raise, or lie, counts as what it is: NumPy's and enumerations are such."""
    wrong = {"__float__": lambda self: 7.0, "__int__": lambda self: 7, "__ge__": None, "__lt__": None, "__gt__": None}
    for base, value in ((int, 3), (float, 0.5)):
        own = type("Own", (base,), wrong)(value)
        assert errors.check_number("x", own, above=0.0) == value
    assert errors.check_count("n", type("Own", (int,), wrong)(3), at_least=0) == 3
