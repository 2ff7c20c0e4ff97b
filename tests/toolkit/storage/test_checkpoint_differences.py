"""Another run than the saved one is refused and the difference named; what changes no bit is not compared."""

import os

import numpy as np
import pytest

import toolkit
from targets import constrained, mixtures, shapes
from targets.posteriors import linear
from tests.support.checkpoint_cases import COSINE, FLOWER, PAIR, REGRESSION, RUN, SGLD, Sums, assert_same, bowl
from toolkit import CheckpointError, Layout, from_callable, sample, samplers, schedules, stream
from toolkit._compiler.function_digest import BITS
from toolkit._engine.driver import Driver

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ


def scaled(points):
    """Another function than ``bowl``."""
    return (points**2).sum(axis=1), 2.0 * points


PAIRED = samplers.r2sgld(**PAIR)
BOWL = from_callable(bowl, dim=2)
OTHERS = {
    "seed": ({"seed": 4}, "seed: 3 there, 4 here"),
    "n_chains": ({"n_chains": 3}, "n_chains: 2 there, 3 here"),
    "burn_in": ({"burn_in": 7}, "burn_in: 10 there, 7 here"),
    "thin": ({"thin": 1}, "thin: 2 there, 1 here"),
    "init": ({"init": [0.0, 0.1]}, r"init\[0, 0, 1\]: 0.0 there, 0.1 here"),
    "keep_replicas": ({"keep_replicas": True}, "keep_replicas: False there, True here"),
    "keep_draws": ({"keep_draws": False}, "called: 'sample' there, 'sample without draws' here"),
    "keep_energies": ({"keep_energies": True}, "keep_energies: False there, True here"),
    "keep_statistics": ({"keep_statistics": False}, "keep_statistics: True there, False here"),
    "trace_every": ({"trace_every": 5}, "trace_every: None there, 5 here"),
    "accumulators": ({"accumulators": {}}, "accumulators.sums: .*Sums there, nothing here"),
    "an accumulator's number": ({"accumulators": {"sums": Sums(3)}}, "accumulators.sums.*power: 1 there, 3 here"),
    "step size": (
        {"sampler": samplers.r2sgld(**{**PAIR, "step_sizes": (0.011, 0.02)})},
        r"sampler.step_sizes\[0\]: 0.01 there, 0.011",
    ),
    "noise": ({"sampler": samplers.r2sgld(**PAIR, gradient_noise=1e-300)}, "gradient_noise: 0.0 there, 1e-300"),
    "swap": ({"sampler": samplers.r2sgld(**PAIR, swap_every=2)}, "sampler.tempering.swap_every: 1 there, 2 here"),
    "schedule": (
        {"sampler": samplers.r2sgld(**PAIR, schedule=schedules.exponential_decay(0.9))},
        "sampler.schedule: constant there, exponential_decay here",
    ),
    "target": (
        {"problem": constrained(mixtures.five_spots(), shapes.flower())}, "problem.target.name: 'cosine25' there",
    ),
    "domain": ({"problem": constrained(COSINE, shapes.flower(petals=4))}, "problem.domain.*real"),
    "no domain": ({"problem": COSINE, "sampler": samplers.resgld(**PAIR)}, "problem.domain: flower there, None here"),
}  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A finished run's checkpoint, and what it was made with."""
    given = {"problem": FLOWER, "sampler": PAIRED, "burn_in": 10, "thin": 2, "accumulators": {"sums": Sums()}, **RUN}
    given["init"] = [0.0, 0.0]
    path = tmp_path_factory.mktemp("saved") / "run.ckpt"
    sample(checkpoint=path, **given)
    return path, given


@pytest.mark.parametrize("what", OTHERS)
def test_another_run_is_refused_and_the_difference_named(what, saved):
    path, given = saved
    before = {name: (path.parent / name).read_bytes() for name in os.listdir(path.parent)}
    other, message = OTHERS[what]
    with pytest.raises(CheckpointError, match=message):
        sample(checkpoint=path, **{**given, **other})
    assert before == {name: (path.parent / name).read_bytes() for name in os.listdir(path.parent)}


def test_a_stream_is_not_a_sample(saved):
    path, given = saved
    with pytest.raises(CheckpointError, match="called: 'sample' there, 'stream' here"):
        stream(checkpoint=path, **given)


def test_other_bits_are_refused_and_edits_that_change_none_are_not(saved, monkeypatch):
    """A number says so, in place of the version and of the sources, which any edit of a comment changes."""
    path, given = saved
    with monkeypatch.context() as patch:
        patch.setattr(toolkit._output.storage.description, "BITS", BITS + 1)
        patch.setattr(toolkit._compiler.function_digest, "BITS", BITS + 1)
        with pytest.raises(CheckpointError, match=f"toolkit.bits: {BITS} there, {BITS + 1} here"):
            sample(checkpoint=path, **given)
    monkeypatch.setattr(toolkit, "__version__", "0.0.1")
    monkeypatch.setattr(toolkit._compiler.disk_cache, "OWN_STAMP", "0" * 64)
    assert sample(checkpoint=path, **given).n_steps == given["n_steps"]


def test_a_checkpoint_from_before_bits_were_noted_is_refused_in_words(tmp_path, monkeypatch):
    given = {"problem": mixtures.gaussian_grid25(), "sampler": samplers.sgld(0.01), "n_steps": 40, "seed": 1}
    asked, noted = toolkit._output.storage.checkpoint.describe_call, {"version": "0.1.0", "sources": "0" * 64}
    with monkeypatch.context() as patch:
        patch.setattr(toolkit._output.storage.checkpoint, "describe_call", lambda *a: asked(*a) | {"toolkit": noted})
        sample(checkpoint=tmp_path / "old", **given)
    with pytest.raises(CheckpointError, match="noted its sources and not its bits, so whether it can go on is not"):
        sample(checkpoint=tmp_path / "old", **given)


def test_what_changes_no_bit_is_not_compared(saved, monkeypatch):
    path, given = saved
    whole = sample(checkpoint=path, **given)
    monkeypatch.setattr(Driver, "advance", None)
    assert_same(sample(checkpoint=path, threads=2, progress=False, checkpoint_every=5.0, **given), whole)
    assert_same(sample(checkpoint=path, **{**given, "layout": Layout(4, 7)}), whole)
    assert_same(sample(checkpoint=path, **{**given, "init": np.zeros((2, 2))}), whole)


def test_a_target_s_numbers_and_function_are_compared(tmp_path):
    path = tmp_path / "run.ckpt"
    sample(linear.linear_regression(**REGRESSION), SGLD, checkpoint=path, **RUN)
    other = linear.linear_regression(**{**REGRESSION, "noise": 1.25})
    with pytest.raises(CheckpointError, match=r"problem.target.parameters\[\d+\]: .* and \d+ further entries"):
        sample(other, SGLD, checkpoint=path, **RUN)
    path = tmp_path / "python.ckpt"
    whole = sample(BOWL, SGLD, checkpoint=path, **RUN)
    assert_same(sample(from_callable(bowl, dim=2), SGLD, checkpoint=path, **RUN), whole)  # another handle
    with pytest.raises(CheckpointError, match=r"problem\.target\.energy_gradient"):
        sample(from_callable(scaled, dim=2, name="bowl"), SGLD, checkpoint=path, **RUN)
