"""What is kept of a run's state is all that it needs, and needs all of it; and it fits blocks of any size."""

import numpy as np
import pytest

from targets import mixtures
from tests.support.checkpoint_cases import CASES, assert_same, run_case, stopped
from toolkit import Layout, Problem, samplers
from toolkit._compiler.block_rows import LAMBDA
from toolkit._engine import state
from toolkit._engine.cpu import CpuEngine
from toolkit._engine.driver import Driver
from toolkit._engine.job import make_job
from toolkit._engine.run_options import RunOptions
from toolkit._engine.run_record import count
from toolkit._engine.state import make_blocks
from toolkit.tempering import ContinuousTempering

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs too short for θ
MADE_ANEW = {"chain", "replica", "base_step_size", "base_temperature", "scale", "status"}
NEEDED_BY = {
    "position": "sgld",
    "momentum": "sghmc",
    "memory": "psgld",
    "bounces": "r2sgld",
    "fallbacks": "bounces run out",
    "accepted": "mala",
    "scratch": "minibatches about an anchor",
    "exchange.walker": "resgld",
    "exchange.last_end": "resgld",
    "exchange.attempted": "resgld",
    "exchange.accepted": "resgld",
    "exchange.round_trips": "resgld",
    "exchange.correction": "adapted correction",
    "exchange.rests": "one swap per window",
    "contour.table": "csgld",
    "contour.scale": "csgld",
    "contour.late": "csgld",
    "contour.early": "csgld",
    "contour.mark": "csgld",
    "contour.outside": "csgld",
    "continuous.rows": "tact_hmc",
    "continuous.bias": "tact_hmc",
    "continuous.visits": "tact_hmc",
}


STORED_FIELDS = {f"{n.partition('.')[0]}.{state.FIELD_OF.get(n, n.partition('.')[2])}" for n in state.STORED}


def spoil(driver):
    """Fill all that is not stored, and is not made anew, with nan."""
    state_has_rows = set()
    for block in driver.blocks:
        for field, value in block.state._asdict().items():
            if field == "noise_buffer":
                value.normals[:] = np.nan  # its names are made anew
            elif isinstance(value, tuple):
                assert {f"{field}.{name}" for name in value._fields} <= {*STORED_FIELDS, *state.DERIVED}
                if field == "contour":
                    value.decays[:] = np.nan
            elif field == "rows":
                constant = value[LAMBDA].copy()
                value[:] = np.nan
                if not isinstance(driver.job.sampler.tempering, ContinuousTempering):
                    value[LAMBDA] = constant
            elif field not in state.STORED and field not in MADE_ANEW:
                value[:] = np.nan
                state_has_rows.add(field)
    assert state_has_rows == {"previous", "gradient", "curvature", "noise", "mirror_point", "distances", "masses"}


@pytest.fixture(scope="module")
def wholes():
    """The uninterrupted runs, made when asked for."""
    made = {}

    def whole(name):
        if name not in made:
            made[name] = run_case(name)
        return made[name]

    return whole


@pytest.mark.cases(8)
@pytest.mark.parametrize("name", CASES)
def test_scratch_is_scratch(name, wholes, tmp_path, monkeypatch):
    """With nan in all that is not stored a run goes on to the bits of the uninterrupted one."""
    path, spoiled = tmp_path / "run.ckpt", []
    stopped(monkeypatch, 330, run_case, name, 1, checkpoint=path)
    resume = Driver.resume

    def resume_spoiled(self, *position):
        for block in self.blocks:
            block.state.contour.visited_range[...] = 1  # known, and wrong
        resume(self, *position)
        spoil(self)
        spoiled.append(position[0])

    monkeypatch.setattr(Driver, "resume", resume_spoiled)
    assert_same(run_case(name, 2, checkpoint=path), wholes(name))
    assert spoiled == [345]  # 15 chunks of 23 steps


def test_every_field_is_stored_or_known_not_to_be():
    assert set(NEEDED_BY) == set(state.STORED)


@pytest.mark.cases(5)
@pytest.mark.parametrize("field", state.STORED)
def test_nothing_is_stored_in_vain(field, wholes, tmp_path, monkeypatch):
    """Without any one field a run goes on to other bits."""
    path, name = tmp_path / "run.ckpt", NEEDED_BY[field]
    monkeypatch.setattr(state, "STORED", tuple(f for f in state.STORED if f != field))
    step = 201 if field == "contour.late" else 330  # θ is marked at steps 188 and 316, and not again
    stopped(monkeypatch, step, run_case, name, 1, checkpoint=path)
    run = run_case(name, 2, checkpoint=path)
    with pytest.raises(AssertionError):
        assert_same(run, wholes(name))


def test_a_view_is_one_and_leaves_padding_out():
    """Five chains of three replicas in a block of sixteen lanes: what is written by chain arrives in its lane."""
    problem, sampler, _ = CASES["estimated correction"]
    (block,) = make_blocks(Problem(problem), sampler, np.zeros((5, 3, 2)), Layout(), 1)
    view = state.by_chain(block.state, "position", 5, 3)
    assert block.state.position.shape == (2, 16)
    assert view.shape == (5, 2, 3)
    block.state.position[:] = -1.0
    view[3, 1, 2] = 7.0
    assert block.state.position[1, 2 * 5 + 3] == 7.0
    assert (block.state.position == -1.0).sum() == 31
    (other,) = state.views([block], "exchange.correction", 3)
    other[4, 1] = 9.0
    assert block.state.exchange.correction[1, 4] == 9.0


def test_blocks_share_their_scratch_and_threads_do_not():
    """Three blocks, the last of them smaller: one thread advances each with the scratch that those of its size have."""
    shape, sampler = (37, 1, 2), CASES["sgld"][1]
    blocks = make_blocks(Problem(CASES["sgld"][0]), sampler, np.zeros(shape), Layout(lanes=16), 1)
    assert [block.state.status.size for block in blocks] == [16, 16, 8]
    job = make_job(
        Problem(CASES["sgld"][0]), sampler, RunOptions(n_steps=8, n_chains=37, init=np.zeros(2), seed=0, threads=2)
    )
    engine = CpuEngine(job, blocks)
    for name in state.SCRATCH:
        first, second, last = (getattr(block.state, name) for block in blocks)
        assert first is second
        assert first is not last
        for block in blocks[1:]:
            own, again = (getattr(engine._for_thread(block.state, 1), name) for _ in range(2))
            assert own is again
            assert own.shape == getattr(block.state, name).shape
            assert not np.shares_memory(own, getattr(block.state, name))
    moved = engine._for_thread(blocks[1].state, 1)
    assert moved.position is blocks[1].state.position
    assert (moved.rows[LAMBDA] == 1.0).all()


def test_blocks_share_what_is_constant_and_the_same_in_them():
    """Of 37 chains in blocks of 16, the last smaller; in the second case the first 20 have another step size."""
    sizes = np.where(np.arange(37) < 20, 1e-3, 2e-3)
    for step_size, equal in ((1e-3, {*state.CONSTANT}), (sizes, {"replica", "base_temperature", "scale"})):
        problem, sampler = Problem(mixtures.cosine25()), samplers.sgld(step_size)
        blocks = make_blocks(problem, sampler, np.zeros((37, 1, 2)), Layout(lanes=16), 1)
        first, second, last = (block.state for block in blocks)
        assert {name for name in state.CONSTANT if getattr(first, name) is getattr(second, name)} == equal
        assert {name for name in state.CONSTANT if getattr(first, name) is getattr(last, name)} == set()
        np.testing.assert_array_equal(second.base_step_size, np.broadcast_to(step_size, 37)[16:32])
        assert second.chain[0] == 16


def test_counts_that_stay_0_take_no_memory():
    """Without walls and tests; and all of them as the blocks have them."""
    for name, zero in (("sgld", True), ("r2sgld", False), ("mala", False)):
        problem, sampler, _ = CASES[name]
        problem = problem if isinstance(problem, Problem) else Problem(problem)
        (block,) = make_blocks(problem, sampler, np.zeros((5, sampler.n_replicas, 2)), Layout(), 1)
        for field in () if zero else ("bounces", "fallbacks") if problem.domain else ("accepted",):
            getattr(block.state, field)[:5] = [1, 0, 3, 0, 2]
        counts = count([block], problem, sampler)
        assert counts.status.shape == (5, sampler.n_replicas)
        assert not counts.status.any()
        assert counts.bounces[:, 0].tolist() == [1, 0, 3, 0, 2] if problem.domain else not counts.bounces.any()
        assert counts.accepted_moves[:, 0].tolist() == [1, 0, 3, 0, 2] if name == "mala" else True
        block.state.status[3] = 9
        assert count([block], problem, sampler).status[3, 0] == 9


def test_impossible_values_are_seen():
    """A tempering variable beyond its walls, or nan, would be a place beyond its table; a mark of 0 an endless loop."""
    for name, spoil_state in (
        ("tact_hmc", lambda state: state.continuous.rows.__setitem__((0, 2), np.nan)),
        ("tact_hmc", lambda state: state.continuous.rows.__setitem__((0, 2), 1.5)),
        ("csgld", lambda state: state.contour.next_mark.__setitem__(3, 0)),
    ):
        problem, sampler, _ = CASES[name]
        blocks = make_blocks(Problem(problem), sampler, np.zeros((5, 1, 2)), Layout(), 1)
        assert state.are_valid(blocks)
        spoil_state(blocks[0].state)
        assert not state.are_valid(blocks)
