"""What calls give that hide information (masks, imaginary parts) or hold nonsense: the value, or the error in words."""

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import sysid
from sysid import libraries, priors
from sysid.constraints import Coordinates, region_of
from sysid.data.series import Series
from sysid.systems.system import System
from targets import domains, mixtures
from targets.classics.gaussians import correlated_gaussian
from targets.posteriors import logistic
from toolkit import diagnostics, load, sample, samplers, weighting
from toolkit._output.storage import run_contents
from toolkit._output.storage.formats import write_npz

HIDDEN = np.ma.masked_equal([[0.0], [1.0], [99.0], [2.0]], 99.0)  # 99 is hidden
NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)


def decay(t: float, x: Any, p: Any) -> tuple[float]:
    """dx/dt = −p x."""
    return (-p[0] * x[0],)


def given_by(call: Any) -> str:
    """The value or the error of ``call``, short."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = call()
        except Exception as error:  # whatever it is, it is what is to be shown
            return f"{type(error).__name__}: {str(error).rpartition('none (')[2]:.110}"
    return f"accepted, gives {value!r:.90}".replace("\n", " ")


def walls_of(text: str) -> Any:
    """The box that a constraint of sigma, rho, beta leaves."""
    q = 3
    none = np.zeros(q, np.bool_)
    region = region_of(text, ("sigma", "rho", "beta"), Coordinates(none, np.zeros(q), np.eye(q)), none)
    return None if region is None else (region.lower, region.upper, region.normals)


def loaded_with(name: str, change: Any) -> Any:
    """What a saved file loads to, one array of which was changed and the checksum made anew."""
    run = sample(NORMAL, samplers.sgld(0.1), n_steps=8, n_chains=2, seed=0, keep_energies=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        whole = run_contents.contents_of(run)
        key = json.loads(whole.header)
        for part in name.split("."):
            key = key[part]
        changed = run_contents.Contents(
            whole.header, {**whole.arrays, key["$array"]: change(whole.arrays[key["$array"]])}
        )
        write_npz(run, changed, path)
        return load(path)


def cases() -> dict[str, tuple[Any, str]]:
    """Every case, with what is wanted."""
    rows, times = np.arange(4.0)[:, None], np.arange(4.0)
    draws = np.ma.array(np.arange(40.0).reshape(2, 20, 1), mask=np.arange(40).reshape(2, 20, 1) == 7)
    energies = np.ma.array(np.arange(40.0).reshape(2, 20), mask=np.arange(40).reshape(2, 20) == 7)
    edges = np.linspace(0.0, 40.0, 5)
    imaginary = libraries.Term("c", "own(x)", own=lambda x: 1j * x[0])
    return {
        "Series(values masked)": (lambda: Series(times, HIDDEN, ("x",)).values.ravel(), "nan for 99"),
        "Series(times masked)": (lambda: Series(np.ma.masked_equal(times, 1.0), rows, ("x",)), "an error"),
        "from_arrays(velocities masked)": (
            lambda: sysid.data.from_arrays(times, rows, "x", velocities=HIDDEN).velocities,
            "an error",
        ),
        "from_arrays(list with masked)": (
            lambda: sysid.data.from_arrays([0, 1], [[0.0], [np.ma.masked]], "x"),
            "an error",
        ),
        "ess": (lambda: diagnostics.ess(draws), "an error"),
        "resample": (lambda: weighting.resample(draws, np.ones((2, 20)), seed=0).ravel()[:3], "an error"),
        "init": (lambda: sample(NORMAL, samplers.sgld(0.1), n_steps=1, seed=0, init=HIDDEN[2]).draws, "an error"),
        "gaussian_mixture": (lambda: mixtures.gaussian_mixture(HIDDEN, 1.0).truth.mean, "an error"),
        "box": (lambda: domains.box(np.ma.masked_equal([-1.0, -99.0], -99.0), [1.0, 1.0]).lower, "an error"),
        "logistic_regression": (lambda: logistic.logistic_regression(HIDDEN, [0, 1, 0, 1]), "an error"),
        "kl_divergence": (lambda: diagnostics.kl_divergence(HIDDEN.ravel(), np.full(4, 0.25)), "an error"),
        "energy_histogram": (lambda: diagnostics.energy_histogram(energies, edges), "an error"),
        "wasserstein": (lambda: diagnostics.wasserstein(draws, np.zeros((2, 20, 1))), "an error"),
        "Library.evaluate(complex)": (lambda: libraries.polynomial(["x"], 1).evaluate(np.array([[1j]])), "an error"),
        "Library, a term that gives 1j x": (
            lambda: libraries.Library(("x",), (imaginary,)).evaluate([[1.0]]),
            "an error",
        ),
        "Prior(1, 0.0, -1.0)": (lambda: priors.Prior(1, 0.0, -1.0), "an error"),
        "Prior(99)": (lambda: priors.Prior(99), "an error"),
        "Prior(4)": (lambda: priors.Prior(4), "an error: a mixture without parts"),
        "System(lyapunov='x', invariant=5)": (
            lambda: System("d", ("x",), ("k",), decay, [1.0], [1.0], lyapunov="x", invariant=5),  # type: ignore[arg-type]
            "an error",
        ),
        "memberships(nan)": (lambda: correlated_gaussian().truth.memberships([[np.nan, 0.0]]), "an error"),
        "saved: energies cut": (lambda: loaded_with("energies", lambda a: a[:, :, :-1]).energies.shape, "an error"),
        "saved: init of one chain": (lambda: loaded_with("init", lambda a: a[:1]).init.shape, "an error"),
        "saved: counts of three chains": (
            lambda: loaded_with("counts.status", lambda a: np.zeros((3, 1), int)).counts.status.shape,
            "an error",
        ),
        "saved: steps that go back": (lambda: loaded_with("steps", lambda a: a[::-1].copy()).steps, "an error"),
        "constraint 'sigma > parameter_1'": (lambda: walls_of("sigma > parameter_1"), "an error"),
        "constraint 'sigma > 1 # + beta'": (lambda: walls_of("sigma > 1 # + beta"), "an error"),
        "constraint 'sigma < 1e999'": (lambda: walls_of("sigma < 1e999"), "an error"),
        "constraint 'sigma > 1 + beta'": (lambda: walls_of("sigma > 1 + beta"), "accepted"),
    }


def main() -> None:
    """Print what each case gives."""
    for what, (call, wanted) in cases().items():
        print(f"{what}: {given_by(call)} (wanted {wanted})")


if __name__ == "__main__":
    main()
