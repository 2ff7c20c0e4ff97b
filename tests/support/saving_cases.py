"""Runs to be saved, in every format, and what it means that two are the same."""

from pathlib import Path

import numpy as np
import pytest

from targets import constrained, domains, mixtures
from toolkit import Run, sample, samplers, tempering
from toolkit.tempering.contour_tempering import Partition, step_decay

ROOT = Path(__file__).resolve().parents[2]
NORMAL = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
BOX = constrained(NORMAL, domains.box([-2.0, -2.0], [2.0, np.inf]))
FORMATS = (".npz", ".nc", ".zarr", ".zarr.zip")
SEED = 2**64 - 1
PARTITION = Partition(0.0, 0.5, 20)
PAIR = {"step_sizes": (0.01, 0.02), "temperatures": (1.0, 3.0)}
NAMED = {
    "sgld": samplers.sgld(0.1, gradient_noise=0.3),
    "psgld": samplers.psgld(0.01, decay=0.9, floor=1e-3),
    "sghmc": samplers.sghmc(0.01, friction=0.3, noise_estimate=0.1),
    "sgnht": samplers.sgnht(0.01, friction=0.2, inertia=3.0, by_coordinate=True),
    "cyclical_sgld": samplers.cyclical_sgld(0.1, n_cycles=3, exploration=0.3, floor=0.01),
    "cyclical_sghmc": samplers.cyclical_sghmc(0.1, n_cycles=3, friction=0.4),
    "csgld": samplers.csgld(0.01, partition=PARTITION, zeta=0.6),
    "icsgld": samplers.icsgld(0.01, partition=PARTITION, n_replicas=3, decay=step_decay(gain=2.0)),
    "icsghmc": samplers.icsghmc(0.01, partition=PARTITION, n_replicas=2),
    "resgld": samplers.resgld(**PAIR, correction=tempering.estimated_correction(every=10)),
    "r2sgld": samplers.r2sgld(**PAIR, swap_every=3),
    "r2sghmc": samplers.r2sghmc(**PAIR, correction=tempering.adapted_correction(0.3)),
    "tact_hmc": samplers.tact_hmc(0.01, energy_noise=0.1),
    "svgd": samplers.svgd(0.1, n_replicas=3),
    "mala": samplers.mala(0.1, temperature=np.array([1.0, 2.0])),
    "hmc": samplers.hmc(0.1, n_leapfrogs=4),
    "pt_mala": samplers.pt_mala(**PAIR, swap_every=2),
    "pt_hmc": samplers.pt_hmc(**PAIR, n_leapfrogs=4, random_length=False),
    "pt_baoab": samplers.pt_baoab(**PAIR, friction=0.3, energy_noise=0.1, correction=0.02),
}


def own_move(lanes, memory, parameters, changes):
    for lane in range(lanes.position.shape[1]):
        lanes.position[0, lane] -= lanes.step_size[lane] * lanes.gradient[0, lane]


def run_of(sampler, problem=BOX, **options):
    spread = {"init": np.arange(12.0).reshape(2, 3, 2) / 20} if sampler.name == "svgd" else {}
    given = {"n_steps": 60, "burn_in": 20, "thin": 2, "n_chains": 2, "seed": SEED, **spread, **options}
    return sample(problem, sampler, **given)


def assert_same(a, b):
    """Equal in type, numbers of equal bits."""
    if isinstance(a, np.ndarray):
        assert isinstance(b, np.ndarray)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert type(a) is type(b)
        assert a == b


def assert_same_run(a, b):
    """All fields of two runs, but the problem."""
    for name in Run.__dataclass_fields__:
        if name != "problem":
            assert_same(getattr(a, name), getattr(b, name))


def quick_or_slow(names, quick):
    """Each name with all formats; those that are not ``quick`` with the slower formats go to the slow tests."""
    for name in names:
        yield pytest.param(name, (".npz",), id=f"{name}-.npz")
        marks = () if name in quick else pytest.mark.slow
        yield pytest.param(name, FORMATS[1:], id=f"{name}-others", marks=marks)


SAVED = {}


def saved(suffix, tmp_path):
    """A small run on disk, made once for each format."""
    if suffix not in SAVED:
        run = run_of(NAMED["r2sgld"], keep_energies=True)
        run.save(tmp_path / f"first{suffix}")
        SAVED[suffix] = run
    run = SAVED[suffix]
    path = tmp_path / f"run{suffix}"
    run.save(path)
    return run, path


def files_of(path):
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
