"""Held chains that were saved go on to the bits of chains that never were, on the problem that they had last."""

import os

import numpy as np
import pytest

import toolkit
from targets import constrained, domains, mixtures
from targets.posteriors import linear
from tests.support.checkpoint_cases import ANCHORED, CASES, COSINE, N_STEPS, REGRESSION, SGLD, bowl, same
from tests.toolkit.engine.test_online import FIELDS, FIRST, SECOND, joined
from toolkit import CheckpointError, CheckpointWarning, DivergenceError, Layout, from_callable, sample, samplers

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
GIVEN = {"n_chains": 3, "seed": 5}


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", CASES)
def test_saved_chains_go_on_as_if_never_saved(name, tmp_path):
    """Three times, in other layouts, with all that was not saved of no use."""
    problem, sampler, own = CASES[name]
    kept = {key: own[key] for key in ("init", "keep_energies", "keep_replicas", "n_chains") if key in own}
    options = {"burn_in": 60, "seed": 2**63 + 11, "n_chains": 5, **kept}
    whole = sample(problem, sampler, n_steps=N_STEPS, thin=2, threads=1, **options)
    needs_length = sampler.schedule.name.startswith(("cosine", "custom"))
    runs, path = [], tmp_path / "held.ckpt"
    for n, layout in zip((37, 100, 263), (Layout(lanes=8), Layout(), Layout(lanes=3)), strict=True):
        total = N_STEPS if needs_length else None
        with toolkit.chains(problem, sampler, n_steps=total, layout=layout, checkpoint=path, **options) as c:
            runs.append(c.advance(n, thin=2))
    for field in FIELDS:
        value = getattr(whole, field)
        same(field, joined(runs, field), tuple(value) if field == "statistics" and value is not None else value)
    for field, value in whole.counts._asdict().items():
        same(field, value, getattr(runs[-1].counts, field))
    assert runs[-1].n_steps == N_STEPS
    same("init", runs[-1].init, whole.init)


def test_a_file_belongs_to_the_problem_that_was_held_last(tmp_path):
    path = tmp_path / "held.ckpt"
    sampler = samplers.sghmc(0.02)
    with toolkit.chains(FIRST, sampler, **GIVEN) as c:
        c.advance(20)
        c.replace(SECOND)
        c.advance(20)
        positions, energies = c.positions, c.energies
        rest = c.advance(20, thin=1)
    with toolkit.chains(FIRST, sampler, checkpoint=path, **GIVEN) as c:
        c.advance(20)
        start = c.advance(1, thin=1).init
    with toolkit.chains(FIRST, sampler, checkpoint=path, **GIVEN) as c:
        assert c.steps == 21
    path.unlink()
    for name in ("held.ckpt.draws", "held.ckpt.previous"):
        (tmp_path / name).unlink()
    with toolkit.chains(FIRST, sampler, checkpoint=path, **GIVEN) as c:
        c.advance(20)
        c.replace(SECOND)
        c.advance(20)
    with pytest.raises(
        CheckpointError, match=r"held\.ckpt' is of another run: problem\.target\.parameters\[0\]: 1\.0 t"
    ):
        toolkit.chains(FIRST, sampler, checkpoint=path, **GIVEN)
    with toolkit.chains(SECOND, sampler, checkpoint=path, **GIVEN) as c:
        assert c.steps == 40
        same("positions", c.positions, positions)
        same("energies", c.energies, energies)
        run = c.advance(20, thin=1)
    same("draws", run.replica_draws, rest.replica_draws)
    same("init", run.init, start)


def test_a_replacement_without_a_step_is_saved_too(tmp_path):
    path = tmp_path / "held.ckpt"
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        c.advance(20)
        c.save()
        c.replace(SECOND)
    with toolkit.chains(SECOND, SGLD, checkpoint=path, **GIVEN) as c:
        assert c.steps == 20
        c.replace(FIRST)
        expected = c.advance(20, thin=1)
    same("draws", expected.draws, sample(FIRST, SGLD, n_steps=40, **GIVEN).draws[:, 20:])


def test_an_anchor_is_saved_with_the_chains(tmp_path):
    """Between two steps at which it moves, and after a replacement that moved it."""
    other = linear.linear_regression(**{**REGRESSION, "noise": 2.0}, batch_size=4, refresh_every=50)
    path = tmp_path / "held.ckpt"
    with toolkit.chains(ANCHORED, SGLD, **GIVEN) as c:
        c.advance(20)
        c.replace(other)
        c.advance(5)
        expected = c.advance(10, thin=1)
    with toolkit.chains(ANCHORED, SGLD, checkpoint=path, **GIVEN) as c:
        c.advance(20)
        c.replace(other)
        c.advance(5)
    with toolkit.chains(other, SGLD, checkpoint=path, **GIVEN) as c:
        same("draws", c.advance(10, thin=1).draws, expected.draws)


def test_starts_need_not_fit_the_problem_that_is_held_last(tmp_path):
    """They were drawn in the first problem's domain, and are those of the run all the same."""
    low, high = (
        constrained(mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), domains.box([-a, -a], [b, b]))
        for a, b in ((3.0, 3.0), (-9.0, 10.0))
    )
    sampler = samplers.sgld(0.02, boundary=toolkit.boundaries.reflect())
    wide = constrained(mixtures.gaussian_mixture([[0.0, 0.0]], 1.0), domains.box([-20.0] * 2, [20.0] * 2))
    path = tmp_path / "held.ckpt"
    with toolkit.chains(low, sampler, checkpoint=path, **GIVEN) as c:
        first = c.advance(1, thin=1).init
        c.replace(wide)
    with pytest.raises(CheckpointError, match="problem"):
        toolkit.chains(high, sampler, checkpoint=path, **GIVEN)
    with toolkit.chains(wide, sampler, checkpoint=path, **GIVEN) as c:
        same("init", c.advance(1, thin=1).init, first)


def test_a_state_without_its_start_is_damaged(tmp_path, monkeypatch):
    path = tmp_path / "held.ckpt"
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        c.advance(20)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with pytest.raises(CheckpointError, match="is torn"):
        toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN)
    path.write_bytes(data)
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        c.advance(1)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(CheckpointWarning, match="the run goes on from .*previous', saved after step 20"):
        c = toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN)
    with c:
        assert c.steps == 20


def test_save_to_another_path_is_a_copy(tmp_path):
    path, whole = tmp_path / "copy.ckpt", sample(FIRST, SGLD, n_steps=60, **GIVEN)
    with toolkit.chains(FIRST, SGLD, **GIVEN) as c:
        with pytest.raises(ValueError, match="path must be given where there is no checkpoint, got None"):
            c.save()
        with pytest.raises(ValueError, match="path must be given after the first step"):
            c.save(path)
        for n in (10, 20):
            c.advance(n)
            c.save(path)
        c.advance(5)
    assert sorted(os.listdir(tmp_path)) == ["copy.ckpt", "copy.ckpt.draws", "copy.ckpt.previous"]
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        assert c.steps == 30
        same("draws", c.advance(30, thin=1).draws, whole.draws[:, 30:])
        c.save(path)  # its own
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        assert c.steps == 60


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 6}, "seed: 5 there, 6 here"),
        ({"n_chains": 4}, "n_chains: 3 there, 4 here"),
        ({"burn_in": 3}, "burn_in: 0 there, 3 here"),
        ({"init": [0.0, 0.0]}, "init: None there, an array"),
        ({"init": toolkit.Spread(1.0)}, "init: None there, something here"),
        ({"keep_replicas": True}, "keep_replicas"),
        ({"sampler": samplers.sgld(0.03)}, r"sampler\.step_sizes\[0\]: 0\.02 there, 0\.03 here"),
    ],
)
def test_other_chains_are_refused_here_and_there(change, words, tmp_path):
    path, arguments = tmp_path / "held.ckpt", {"problem": FIRST, "sampler": SGLD, **GIVEN}
    with toolkit.chains(**arguments, checkpoint=path) as c:
        c.advance(20)
    with pytest.raises(CheckpointError, match=words):
        toolkit.chains(**{**arguments, **change}, checkpoint=path)
    with toolkit.chains(**{**arguments, **change}) as c:
        c.advance(5)
        with pytest.raises(CheckpointError, match=words):
            c.save(path)


def test_neither_is_a_run_nor_a_stream_and_one_uses_it_at_a_time(tmp_path):
    path = tmp_path / "run.ckpt"
    sample(FIRST, SGLD, n_steps=20, checkpoint=path, **GIVEN)
    with pytest.raises(CheckpointError, match="called: 'sample' there, 'chains' here"):
        toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN)
    with toolkit.chains(FIRST, SGLD, checkpoint=tmp_path / "held.ckpt", **GIVEN) as c:
        c.advance(1)
        with pytest.raises(CheckpointError, match="in use by another run"):
            toolkit.chains(FIRST, SGLD, checkpoint=tmp_path / "held.ckpt", **GIVEN)
        with pytest.raises(CheckpointError, match="called: 'sample' there, 'chains' here"):
            c.save(path)
        c.save()


def test_fewer_steps_than_done_are_refused(tmp_path):
    path = tmp_path / "held.ckpt"
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        c.advance(20)
    with pytest.raises(CheckpointError, match=r"n_steps must be ≥ 20, the steps that .* has done, got 19"):
        toolkit.chains(FIRST, SGLD, n_steps=19, checkpoint=path, **GIVEN)
    with toolkit.chains(FIRST, SGLD, n_steps=30, checkpoint=path, **GIVEN) as c:
        c.advance(10)


def test_what_ends_the_block_does_not_keep_it_from_being_saved(tmp_path):
    path = tmp_path / "held.ckpt"
    with pytest.raises(KeyError):
        advance_once(path, KeyError("a fault of the loop"))
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        assert c.steps == 1


def steep_bowl(points):
    """U = Σ x⁴, which SGLD overshoots from afar."""
    with np.errstate(all="ignore"):
        return (points**4).sum(axis=1), 4.0 * points**3


def test_chains_that_have_diverged_are_not_saved_over_those_that_had_not(tmp_path):
    path, start = tmp_path / "held.ckpt", [[0.1, 0.0], [0.0, 10.0], [0.2, 0.0]]
    steep = from_callable(steep_bowl, dim=2)
    given = {**GIVEN, "init": start, "layout": Layout(chunk_steps=2)}
    sampler = samplers.sgld(0.02)
    with toolkit.chains(steep, sampler, checkpoint=path, **given) as c:
        c.advance(1)
        c.save()
        with pytest.raises(DivergenceError):
            c.advance(50)
    with toolkit.chains(steep, sampler, checkpoint=path, on_divergence="keep", **given) as c:
        assert c.steps == 1
        c.advance(49)
        diverged = c.diverged
    assert diverged.tolist() == [False, True, False]
    with toolkit.chains(steep, sampler, checkpoint=path, on_divergence="keep", **given) as c:
        assert c.diverged.tolist() == [False, True, False]
        run = c.advance(10, thin=1)
    whole = sample(steep, sampler, n_steps=60, on_divergence="keep", **given)
    same("draws", run.draws, whole.draws[:, 50:])


def advance_once(path, error=None):
    """Hold the chains for one step, and raise an error."""
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        c.advance(1)
        if error is not None:
            raise error


def test_a_disk_that_refuses_is_told_and_the_chains_go_on(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    path = tmp_path / "held.ckpt"
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        c.advance(20)
        with monkeypatch.context() as patch:
            patch.setattr("toolkit._output.storage.checkpoint.write_state", full)
            with pytest.raises(CheckpointError, match=r"could not be written after step 20: .*No space left"):
                c.save()
        c.advance(1)
    with toolkit.chains(FIRST, SGLD, checkpoint=path, **GIVEN) as c:
        assert c.steps == 21
    with monkeypatch.context() as patch:
        patch.setattr("toolkit._output.storage.checkpoint.write_state", full)
        with pytest.raises(CheckpointError, match="could not be written"):
            advance_once(path)
        with pytest.warns(CheckpointWarning, match="could not be written"), pytest.raises(KeyError):
            advance_once(path, KeyError("a fault of the loop"))


def test_weights_and_the_partition_come_back(tmp_path, monkeypatch):
    path, sampler = tmp_path / "held.ckpt", samplers.csgld(0.02)
    with toolkit.chains(COSINE, sampler, checkpoint=path, **GIVEN) as c:
        c.advance(200)
        weights, theta, partition = c.weights, c.theta, c.sampler.tempering.partition
    monkeypatch.setattr("toolkit._output.storage.checkpoint_head.completed_by_pilot", None)
    with toolkit.chains(COSINE, sampler, checkpoint=path, **GIVEN) as c:
        same("weights", c.weights, weights)
        same("theta", c.theta, theta)
        assert c.sampler.tempering.partition == partition


def test_a_python_function_is_saved_by_what_it_does(tmp_path):
    path = tmp_path / "held.ckpt"
    with toolkit.chains(from_callable(bowl, dim=2), SGLD, checkpoint=path, **GIVEN) as c:
        c.advance(20)
    with toolkit.chains(from_callable(bowl, dim=2), SGLD, checkpoint=path, **GIVEN) as c:
        run = c.advance(20, thin=1)
    same("draws", run.draws, sample(from_callable(bowl, dim=2), SGLD, n_steps=40, **GIVEN).draws[:, 20:])
    with pytest.raises(CheckpointError, match="other code of"):
        toolkit.chains(from_callable(lambda x: bowl(x), dim=2, name="bowl"), SGLD, checkpoint=path, **GIVEN)
