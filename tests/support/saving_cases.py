"""Runs to be saved, in every format, and what it means that two are the same."""

from pathlib import Path

import numpy as np
import pytest

from targets import constrained, domains, mixtures
from tests.toolkit.storage.test_description import NAMED
from toolkit import Run, sample

ROOT = Path(__file__).resolve().parents[2]
NORMAL = mixtures.gaussian_mixture([[0.0, 0.0]], 1.0)
BOX = constrained(NORMAL, domains.box([-2.0, -2.0], [2.0, np.inf]))
FORMATS = (".npz", ".nc", ".zarr", ".zarr.zip")
SEED = 2**64 - 1


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
