"""Groups that share θ: the bits of ``sample`` with one, its run to rounding with K = 1; refusals, Ctrl-C, folders."""

import dataclasses
import math
import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose

from targets import constrained, domains, mixtures
from toolkit import (
    CheckpointError,
    CheckpointWarning,
    ContourWarning,
    DivergenceError,
    InterruptedWarning,
    boundaries,
    dynamics,
    from_callable,
    load,
    sample,
    sample_in_rounds,
    samplers,
    schedules,
)
from toolkit._distributed import replica_group, round_workers, rounds
from toolkit._engine.run_options import RunOptions
from toolkit.tempering import Partition
from toolkit.tempering.contour_groups import GroupTheta, SharedTheta, averaged, with_bins

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.ContourWarning")  # runs of some hundred steps are not settled

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
PLANE = mixtures.gaussian_mixture([[0.0, 0.0], [3.0, 0.0]], 1.0)
LOWEST = 0.5 * math.log(2.0 * math.pi)
BINS = Partition(LOWEST, 0.5, 24)
EIGHT = samplers.icsgld(0.02, n_replicas=8, partition=BINS)
FOUR = samplers.icsgld(0.02, n_replicas=4, partition=Partition(2.0, 0.4, 20))
SHORT = {"n_steps": 300, "seed": 5, "n_chains": 3, "burn_in": 20, "thin": 3, "threads": 1}
ROUNDS = {"n_groups": 2, "steps_per_round": 40, **SHORT}
MALA = dataclasses.replace(samplers.mala(0.4), step_sizes=(0.4,) * 4, temperatures=(1.0,) * 4)
HMC = dataclasses.replace(samplers.hmc(0.8, n_leapfrogs=3), step_sizes=(0.8,) * 4, temperatures=(1.0,) * 4)
CONTOUR = FOUR.tempering
CASES = {
    "icsgld": (PLANE, FOUR),
    "pilot": (PLANE, samplers.icsgld(0.02, n_replicas=4)),
    "csgld": (PLANE, samplers.csgld(0.02, partition=CONTOUR.partition)),
    "icsghmc": (PLANE, samplers.icsghmc(0.02, n_replicas=4, partition=CONTOUR.partition)),
    "preconditioned": (PLANE, dataclasses.replace(FOUR, dynamics=dynamics.preconditioned_langevin())),
    "noisy": (PLANE, dataclasses.replace(FOUR, energy_noise=0.1, gradient_noise=0.2)),
    "cycles": (PLANE, dataclasses.replace(FOUR, schedule=schedules.cosine_cycles(3))),
    "freezes": (PLANE, dataclasses.replace(FOUR, tempering=dataclasses.replace(CONTOUR, freezes=True))),
    "sweep": (PLANE, dataclasses.replace(FOUR, step_sizes=[[0.01] * 4, [0.02] * 4, [0.03] * 4])),
    "reflects": (
        constrained(PLANE, domains.ball([0.0, 0.0], 2.0)),
        dataclasses.replace(FOUR, boundary=boundaries.reflect()),
    ),
    "mala": (PLANE, dataclasses.replace(MALA, tempering=CONTOUR)),
    "hmc": (PLANE, dataclasses.replace(HMC, tempering=CONTOUR)),
}
TESTED = ("mala", "hmc")  # with a Metropolis test


def arrays_of(run):
    """All arrays of a run, by name."""
    found = {name: getattr(run, name) for name in ("replica_draws", "replica_weights", "energies", "steps", "init")}
    found |= {f"counts.{name}": values for name, values in run.counts._asdict().items()}
    if run.statistics is not None:
        found |= {f"statistics.{name}": values for name, values in run.statistics._asdict().items()}
    return {name: values for name, values in found.items() if values is not None}


def same(one, other):
    """Whether two runs have the same bits."""
    theirs = arrays_of(other)
    return arrays_of(one).keys() == theirs.keys() and all(
        values.dtype == theirs[name].dtype and np.array_equal(values, theirs[name], equal_nan=True)
        for name, values in arrays_of(one).items()
    )


@pytest.mark.parametrize("name", CASES)
def test_one_group_has_the_bits_of_sample(name):
    problem, sampler = CASES[name]
    whole = sample(problem, sampler, keep_energies=True, **SHORT)
    for length in (7, 1000):
        run = sample_in_rounds(problem, sampler, n_groups=1, steps_per_round=length, keep_energies=True, **SHORT)
        assert same(run, whole)
        assert run.sampler == whole.sampler
        assert run.gradient_evaluations == whole.gradient_evaluations
        assert run.warnings == whole.warnings
    other = sample(problem, sampler, keep_energies=True, **{**SHORT, "seed": 6})
    assert not same(run, other)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("csgld", *TESTED)])
def test_one_step_a_round_is_the_run_of_sample(name):
    """To rounding in all that a run has, from the first draw on: new bins, weights, counts and starts included."""
    problem, sampler = CASES[name]
    from_the_start = {**SHORT, "n_steps": 120, "thin": 1, "keep_energies": True}
    whole = sample(problem, sampler, **from_the_start)
    for n_groups in (2, 4):
        run = sample_in_rounds(problem, sampler, n_groups=n_groups, steps_per_round=1, **from_the_start)
        theirs = arrays_of(whole)
        for field, values in arrays_of(run).items():
            assert_allclose(values, theirs[field], rtol=1e-9, atol=1e-11, err_msg=field)


def mean_alone(shared, groups):
    """θ averaged, and bins that are new to some groups left at 0 in the others."""
    visits = shared.visits + sum(group.visits - shared.visits for group in groups)
    return SharedTheta(sum(group.theta for group in groups) / len(groups), visits)


def summed(shared, groups):
    """Increments added up."""
    right = averaged(shared, groups)
    theta = np.maximum(right.theta + (len(groups) - 1) * (right.theta - shared.theta), 1e-200)
    return right._replace(theta=np.where(right.visits > 0.0, theta / theta.sum(axis=1, keepdims=True), 0.0))


def first_alone(shared, groups):
    """The first group's θ."""
    return averaged(
        shared, [groups[0], *(g._replace(theta=groups[0].theta, scale=groups[0].scale) for g in groups[1:])]
    )


def of_tables(shared, groups):
    """The mean of the engine's tables, which are θ over the scale, made to sum to 1."""
    right = averaged(shared, groups)
    table = sum(group.theta / group.scale[:, None] for group in groups)
    return right._replace(
        theta=np.where(right.visits > 0.0, np.maximum(table / table.sum(axis=1)[:, None], 1e-200), 0.0)
    )


@pytest.mark.parametrize("wrong", [mean_alone, summed, first_alone, of_tables])
def test_a_wrong_average_is_not_the_run_of_sample(wrong, monkeypatch):
    arguments = {**SHORT, "n_steps": 120, "thin": 1, "burn_in": 0}
    whole = sample(PLANE, FOUR, **arguments)
    monkeypatch.setattr(rounds, "averaged", wrong)
    run = sample_in_rounds(PLANE, FOUR, n_groups=4, steps_per_round=1, **arguments)
    assert np.abs(run.theta - whole.theta).max() > 1e-5


def test_weights_are_at_the_shared_theta(monkeypatch):
    """Those of the last draw of a round; each group's own θ gives others, with K = 1 for all draws."""
    monkeypatch.setattr(rounds.Rounds, "_weigh_again", lambda *given: None)
    arguments = {**SHORT, "n_steps": 120, "thin": 1}
    run = sample_in_rounds(PLANE, FOUR, n_groups=4, steps_per_round=1, **arguments)
    whole = sample(PLANE, FOUR, **arguments)
    assert_allclose(run.draws, whole.draws, rtol=1e-9, atol=1e-11)
    assert np.abs(run.weights - whole.weights).max() > 1e-4


@pytest.mark.parametrize("name", [name for name in CASES if name != "csgld"])
def test_threads_and_blocks_change_no_bit_and_theta_sums_to_1(name):
    problem, sampler = CASES[name]
    run = sample_in_rounds(problem, sampler, **ROUNDS)
    assert same(run, sample_in_rounds(problem, sampler, **{**ROUNDS, "threads": 4}))
    assert_allclose(run.theta.sum(axis=1), 1.0, rtol=1e-12)
    assert (run.theta[run.counts.visits > 0] > 0.0).all()
    assert (run.counts.outside[:, 2] == 280 * 4).all()
    visits, low, high = run.counts.visits.sum(), run.counts.outside[:, 0].sum(), run.counts.outside[:, 1].sum()
    if not sampler.tempering.freezes and name != "cycles":
        assert 0 <= 3 * 4 * 300 - visits - low - high <= 3 * 4 * 20  # energies outside during burn-in
    assert not same(run, sample_in_rounds(problem, sampler, **{**ROUNDS, "steps_per_round": 13}))


def test_a_contour_that_freezes_shares_at_the_end_of_burn_in_for_the_last_time():
    problem, sampler = CASES["freezes"]
    arguments = {**ROUNDS, "burn_in": 130}
    run = sample_in_rounds(problem, sampler, **arguments)
    at_end = sample_in_rounds(problem, sampler, **{**arguments, "n_steps": 140})
    assert np.array_equal(run.theta, at_end.theta)
    assert np.array_equal(run.weights[:, : at_end.weights.shape[1]], at_end.weights)


# The average, on its own.


def plain_average(theta, steps):
    """θ after a step of all groups, in which no bin is new. steps: (group, bin, share)."""
    total = sum(share for _, _, share in steps) / 2
    new = (1.0 - total) * theta
    for _, j, share in steps:
        new[j] += share / 2
    return new


def test_the_average_of_one_step_is_the_step_of_all():
    theta, shares = np.array([[0.5, 0.3, 0.2]]), [(0, 1, 0.01), (0, 2, 0.02), (1, 1, 0.03), (1, 0, 0.005)]
    groups = []
    for number in (0, 1):
        own = [(j, share) for group, j, share in shares if group == number]
        left = 1.0 - sum(share for _, share in own)
        new, visits = left * theta, np.ones((1, 3))
        for j, share in own:
            new[0, j] += share
            visits[0, j] += 1
        groups.append(GroupTheta(new, visits, np.array([left])))
    found = averaged(SharedTheta(theta, np.ones((1, 3))), groups)
    assert_allclose(found.theta[0], plain_average(theta[0], shares), rtol=1e-14)
    assert found.visits.tolist() == [[2.0, 3.0, 2.0]]


def test_new_bins_take_their_nearest_neighbours_theta():
    masses = with_bins(np.array([0.0, 0.7, 0.0, 0.3, 0.0]), np.array([0, 1, 0, 1, 0]) > 0, np.ones(5) > 0)
    assert masses.tolist() == [0.7, 0.7, 0.7, 0.3, 0.3]
    assert with_bins(np.zeros(3), np.zeros(3) > 0, np.array([0, 1, 1]) > 0).tolist() == [0.0, 1.0, 1.0]


def test_theta_stays_positive_where_it_falls_by_many_orders():
    """A group whose table was scaled anew reports a scale that is too large; θ is above 0 all the same."""
    shared = SharedTheta(np.array([[0.6, 0.4, 0.0]]), np.array([[1.0, 1.0, 0.0]]))
    fallen = GroupTheta(np.array([[1e-90, 1.0, 0.0]]), np.array([[1.0, 9.0, 0.0]]), np.array([1.0]))
    new = GroupTheta(np.array([[0.3, 0.3, 0.4]]), np.array([[1.0, 1.0, 5.0]]), np.array([0.6]))
    for groups in ([fallen, new], [new, fallen], [fallen, fallen]):
        theta = averaged(shared, groups).theta
        assert_allclose(theta.sum(), 1.0)
        assert (theta[0, :2] > 0.0).all()
    assert averaged(shared, [fallen, fallen]).theta[0, 0] == 1e-90


def test_a_group_that_has_visited_nothing_takes_the_others_theta():
    shared = SharedTheta(np.zeros((1, 3)), np.zeros((1, 3)))
    seen = GroupTheta(np.array([[0.0, 1.0, 0.0]]), np.array([[0.0, 1.0, 0.0]]), np.ones(1))
    nothing = GroupTheta(np.zeros((1, 3)), np.zeros((1, 3)), np.ones(1))
    assert averaged(shared, [nothing, seen]).theta.tolist() == [[0.0, 1.0, 0.0]]
    assert averaged(shared, [nothing, nothing]).theta.tolist() == [[0.0, 0.0, 0.0]]


# What is refused, ends and goes on.


@pytest.mark.parametrize(
    ("sampler", "changes", "words"),
    [
        (samplers.sgld(0.1), {}, "sampler must have tempering by contour"),
        (samplers.resgld((0.1, 0.2), temperatures=(1.0, 2.0)), {}, "sampler must have tempering by contour"),
        (samplers.csgld(0.1), {}, "n_groups must divide the 1 replicas"),
        (FOUR, {"n_groups": 3}, "n_groups must divide the 4 replicas of a chain of 'icsgld', got 3"),
        (FOUR, {"n_groups": 0}, "n_groups must be ≥ 1"),
        (FOUR, {"steps_per_round": 0}, "steps_per_round must be ≥ 1"),
        (FOUR, {"steps_per_round": 1.5}, "steps_per_round must be an integer"),
        (FOUR, {"n_steps": 0}, "n_steps must be"),
        (FOUR, {"checkpoint": "/nowhere/at/all"}, "checkpoint must lie in a folder that exists"),
        (FOUR, {"checkpoint": __file__}, "checkpoint must be the path of a folder"),
        (FOUR, {"client": 3}, "client must be None or a dask.distributed.Client"),
        (None, {}, "sampler must be a Sampler"),
    ],
)
def test_what_cannot_be_is_refused(sampler, changes, words):
    with pytest.raises((TypeError, ValueError), match=words):
        sample_in_rounds(PLANE, sampler, **{**ROUNDS, **changes})


def after_rounds(monkeypatch, n_rounds, action):
    """Let ``action`` happen at the end of the work of the round ``n_rounds``."""
    advance, count = round_workers.LocalWorkers.advance, []

    def counting(self, *given):
        found = advance(self, *given)
        count.append(1)
        if len(count) == n_rounds:
            action()
        return found

    monkeypatch.setattr(round_workers.LocalWorkers, "advance", counting)


def fail():
    raise OSError("pulled the plug")


@pytest.mark.parametrize("name", ["icsgld", "pilot", "reflects", "hmc"])
def test_a_run_goes_on_from_its_folder(name, tmp_path, monkeypatch):
    problem, sampler = CASES[name]
    arguments = {**ROUNDS, "keep_energies": True}
    whole = sample_in_rounds(problem, sampler, **arguments)
    saving = {**arguments, "checkpoint": tmp_path / "run", "checkpoint_every": 1e-9}
    with monkeypatch.context() as patch:
        after_rounds(patch, 4, fail)
        with pytest.raises(OSError, match="pulled the plug") as caught:
            sample_in_rounds(problem, sampler, **saving)
    assert caught.value.run.n_steps == 120
    steps = []
    with monkeypatch.context() as patch:
        advance = replica_group.ReplicaGroup.advance
        patch.setattr(
            replica_group.ReplicaGroup,
            "advance",
            lambda self, *given: (steps.append(given[0]), advance(self, *given))[1],
        )
        assert same(sample_in_rounds(problem, sampler, **saving), whole)
    assert min(steps) == 120
    steps.clear()
    assert same(sample_in_rounds(problem, sampler, **saving), whole)  # of a run that has ended
    assert steps == []
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["draws", "state", "state.previous"]


def test_a_folder_of_another_run_is_refused_in_words(tmp_path):
    saving = {**ROUNDS, "checkpoint": tmp_path / "run"}
    sample_in_rounds(PLANE, FOUR, **saving)
    for changes, words in (
        ({"seed": 6}, "seed: 5 there, 6 here"),
        ({"n_groups": 4}, "n_groups: 2 there, 4 here"),
        ({"steps_per_round": 41}, "steps_per_round: 40 there, 41 here"),
        ({"n_steps": 301}, "n_steps: 300 there, 301 here"),
    ):
        with pytest.raises(CheckpointError, match=words):
            sample_in_rounds(PLANE, FOUR, **{**saving, **changes})


def test_a_damaged_state_gives_way_to_the_previous(tmp_path):
    saving = {**ROUNDS, "checkpoint": tmp_path / "run", "checkpoint_every": 1e-9}
    whole = sample_in_rounds(PLANE, FOUR, **saving)
    (tmp_path / "run" / "state").write_bytes(b"manymode and nothing")
    with pytest.warns(CheckpointWarning, match="the run goes on from .*state.previous', saved after step 280"):
        assert same(sample_in_rounds(PLANE, FOUR, **saving), whole)
    for name in ("state", "state.previous"):
        (tmp_path / "run" / name).write_bytes(b"manymode and nothing")
    with pytest.raises(CheckpointError, match="remove the folder to begin anew"):
        sample_in_rounds(PLANE, FOUR, **saving)


def test_a_folder_in_use_is_refused_and_a_refused_call_leaves_none(tmp_path, monkeypatch):
    def again():
        with pytest.raises(CheckpointError, match="is in use by another run"):
            sample_in_rounds(PLANE, FOUR, **saving)

    saving = {**ROUNDS, "checkpoint": tmp_path / "run"}
    after_rounds(monkeypatch, 2, again)
    sample_in_rounds(PLANE, FOUR, **saving)
    far = {**ROUNDS, "checkpoint": tmp_path / "other", "init": [1e200, 0.0]}
    with pytest.raises(ValueError, match="init must have a finite"):
        sample_in_rounds(PLANE, FOUR, **far)
    assert not (tmp_path / "other").exists()


def test_ctrl_c_returns_the_rounds_that_are_done(tmp_path, monkeypatch):
    whole = sample_in_rounds(PLANE, FOUR, **ROUNDS)
    saving = {**ROUNDS, "checkpoint": tmp_path / "run"}
    with monkeypatch.context() as patch:
        after_rounds(patch, 3, lambda: signal.raise_signal(signal.SIGINT))
        with pytest.warns(
            InterruptedWarning, match="interrupted after 120 of 300 steps; the run holds 33 of 93 draws"
        ) as told:
            run = sample_in_rounds(PLANE, FOUR, **saving)
    assert run.interrupted
    assert told[0].filename == __file__
    assert run.n_steps == 120
    assert np.array_equal(run.replica_draws, whole.replica_draws[:, :, :33])
    assert same(sample_in_rounds(PLANE, FOUR, **saving), whole)


def test_a_divergence_is_named_and_can_be_lived_with():
    steep = dataclasses.replace(FOUR, step_sizes=[[0.02] * 4, [1e6] * 4, [0.02] * 4])
    with pytest.raises(DivergenceError, match=r"chain 1, replica \d diverged at step \d+: its last finite") as caught:
        sample_in_rounds(PLANE, steep, **ROUNDS, on_divergence="stop")
    assert caught.value.chain == 1
    assert caught.value.run.n_steps == 40
    assert caught.value.replica == 0
    assert caught.value.state.shape == (2,)
    run = sample_in_rounds(PLANE, steep, **ROUNDS)
    assert run.diverged.tolist() == [False, True, False]
    assert np.isnan(run.weights[1]).any()
    assert np.isfinite(run.weights[[0, 2]]).all()
    calm = sample_in_rounds(PLANE, dataclasses.replace(FOUR, step_sizes=[[0.02] * 4] * 3), **ROUNDS)
    assert np.array_equal(run.draws[[0, 2]], calm.draws[[0, 2]])


def test_a_divergence_in_the_last_round_is_not_saved_as_a_result(tmp_path):
    steep = dataclasses.replace(FOUR, step_sizes=[[0.02] * 4, [1e6] * 4, [0.02] * 4])
    saving = {**ROUNDS, "n_steps": 30, "on_divergence": "stop", "checkpoint": tmp_path / "run"}
    for _ in range(2):
        with pytest.raises(DivergenceError):
            sample_in_rounds(PLANE, steep, **saving)


def squares(points):
    """½ |x|² of arrays."""
    return 0.5 * (points**2).sum(axis=1), points


def test_a_python_callable_is_sampled_by_several_threads():
    target = from_callable(squares, dim=2)
    arguments = {**ROUNDS, "n_steps": 80, "init": [0.5, 0.5]}
    run = sample_in_rounds(target, FOUR, **{**arguments, "threads": 2})
    assert same(run, sample_in_rounds(target, FOUR, **arguments))
    whole = sample(target, FOUR, **{**SHORT, "n_steps": 80, "init": [0.5, 0.5], "keep_energies": False})
    one = sample_in_rounds(target, FOUR, **{**arguments, "n_groups": 1})
    assert np.array_equal(one.draws, whole.draws)


def test_warnings_are_the_callers():
    cells = Partition(6.0, 0.5, 20)
    with pytest.warns(ContourWarning, match="of the energies lie below the partition") as told:
        sample_in_rounds(PLANE, samplers.icsgld(0.02, n_replicas=4, partition=cells), **ROUNDS)
    assert {each.filename for each in told} == {__file__}


def test_a_run_is_saved_and_loaded(tmp_path):
    run = sample_in_rounds(PLANE, FOUR, **ROUNDS)
    run.save(tmp_path / "run.npz")
    assert same(load(tmp_path / "run.npz"), run)
    assert run.replica_draws.shape == (3, 4, 93, 2)
    assert run.replica_weights.shape == (3, 4, 93)
    assert "contour (ζ = 0.75, 20 bins" in str(run)


def test_bins_of_a_group_are_no_part_of_its_state_where_theta_is_shared():
    request = replica_group.GroupsRequest(PLANE, FOUR, np.zeros((2, 4, 2)), 2, RunOptions(n_steps=10, seed=1))
    group = replica_group.ReplicaGroup(request, 1, 1)
    assert not {"contour.table", "contour.scale"} & group.state().keys()
    assert group.job.keys.first_replica == 2
    group.close()
