"""Several experiments in one trajectory likelihood: sums of energies, what is shared, own and known, and intervals."""

import pickle

import numpy as np
import pytest

import sysid
from sysid import Series, System, priors
from sysid.likelihoods.trajectories import trajectory
from sysid.likelihoods.trajectory_kernel import TrajectoryEnergy
from tests.sysid.likelihoods.test_trajectories import slopes_by_differences
from toolkit import load, sample, samplers


def two_compartments(t, x, p):
    return (-(p[0] + p[1]) * x[0] + p[2] * x[1], p[1] * x[0] - p[2] * x[1])


KINETICS = System(
    "two compartments", ("blood", "tissue"), ("out", "to", "back"), two_compartments, [0.3, 0.5, 0.4], [1.0, 0.0],
    terms={
        "blood": {"blood": {"out": -1.0, "to": -1.0}, "tissue": "back"},
        "tissue": {"blood": "to", "tissue": {"back": -1.0}},
    },
)  # fmt: skip
RATES = np.array([0.3, 0.5, 0.4])
OUT = {"low": 0.3, "middle": 0.6, "high": 0.15}  # the experiments' own rate
DOSES = {"low": 2.0, "middle": 4.0, "high": 8.0}
SD = 0.05


def matrix_of(rates):
    """The system's matrix."""
    out, to, back = rates
    return np.array([[-(out + to), back], [to, -back]])


def exact(times, rates, start):
    """The solution (n, 2) of the linear system, by eigenvectors."""
    values, vectors = np.linalg.eig(matrix_of(rates))
    weights = np.linalg.solve(vectors, start)
    return np.real((vectors[None] * np.exp(values * np.asarray(times)[:, None])[:, None]) @ weights)


def experiments(seed=0, names=tuple(OUT), sd=SD):
    """A series for each name: different times, lengths and missing states."""
    rng = np.random.default_rng(seed)
    found = []
    for k, name in enumerate(names):
        times = np.linspace(0.0, 8.0 - k, 15 + 4 * k)
        values = exact(times, [OUT[name], *RATES[1:]], [DOSES[name], 0.5])
        values = values + sd * rng.standard_normal(values.shape)
        values[3 + k, k % 2] = np.nan
        found.append(Series(times, values, KINETICS.states, name=name))
    return found


DATA = experiments()
LAWS = [
    {},
    {"own": ("out", "sd(tissue)")},
    {"own": ("out",), "known": {"back": 0.4}, "errors": "gaussian"},
    {"known": {"out": tuple(OUT.values())}, "segments": 2, "gap": 0.05},
    {"noise": 0.1, "known": {"to": 0.5}, "own": ("back",), "start": (3.0, 0.5)},
]


def gathered(names, theta, single, label, known):
    """The parameters of one experiment, by their names."""
    values = dict(zip(names, theta, strict=True))
    return np.array([values.get(f"{n}[{label}]", values.get(n, known.get(n))) for n in single.names])


@pytest.mark.cases(1)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_energy_is_the_sum_of_those_of_the_experiments_and_its_gradient_is_right(law):
    joint, start = trajectory(step=0.5, **law).energy_and_start(DATA, KINETICS)
    theta = start * np.exp(0.05 * np.random.default_rng(1).standard_normal(start.size))
    (energy,), (slope,) = joint.evaluate(theta)
    alone = {key: value for key, value in law.items() if key not in ("own", "known")}
    total = 0.0
    for e, series in enumerate(DATA):
        single, _ = trajectory(step=0.5, **alone).energy_and_start(series, KINETICS)
        known = {name: np.ravel(v)[e * (np.size(v) > 1)] for name, v in law.get("known", {}).items()}
        total += single.evaluate(gathered(joint.names, theta, single, series.name, known))[0][0]
    # A kick has the width of the data's own spread, which is the same for one series and for one of several.
    assert abs(energy - total) < 1e-11 * abs(total)
    wanted = slopes_by_differences(joint.evaluate, theta, 3e-4)
    scale = np.abs(wanted) + 1e-5 * abs(energy) / np.maximum(np.abs(theta), 0.1)
    assert np.abs((slope - wanted) / scale).max() < 1e-6
    assert np.abs(slope).min() > 0.0


def test_names_say_whose_a_parameter_is():
    own = trajectory(step=0.5, own=("out", "sd(blood)"), known={"back": 0.4})
    assert own.prepare(DATA[:2], KINETICS).names == (
        "out[low]", "out[middle]", "to", "blood(0)[low]", "tissue(0)[low]", "blood(0)[middle]", "tissue(0)[middle]",
        "sd(blood)[low]", "sd(blood)[middle]", "sd(tissue)",
    )  # fmt: skip
    same = [Series(one.times, one.values, one.states) for one in DATA[:2]]
    assert own.prepare(same, KINETICS).names[:2] == ("out[0]", "out[1]")
    one_known = trajectory(step=0.5, known={"back": 0.4}).prepare(DATA[0], KINETICS)
    assert one_known.names == ("out", "to", "blood(0)", "tissue(0)", "sd(blood)", "sd(tissue)")


def test_the_order_of_the_experiments_changes_names_at_most():
    law = trajectory(step=0.5, own=("out",))
    joint, start = law.energy_and_start(DATA, KINETICS)
    turned, turned_start = law.energy_and_start(DATA[::-1], KINETICS)
    assert sorted(joint.names) == sorted(turned.names)
    order = [joint.names.index(name) for name in turned.names]
    for theta in (start, 1.1 * start):
        (one,), (slope,) = joint.evaluate(theta)
        (other,), (other_slope,) = turned.evaluate(theta[order])
        assert abs(one - other) < 1e-12 * abs(one)
        np.testing.assert_allclose(other_slope, slope[order], rtol=1e-9, atol=1e-9 * np.abs(slope).max())
    np.testing.assert_allclose(turned_start, start[order], rtol=1e-3)


def test_one_experiment_in_a_list_is_the_series_to_the_bit():
    law = trajectory(step=0.5)
    alone, start = law.energy_and_start(DATA[0], KINETICS)
    listed, listed_start = law.energy_and_start([DATA[0]], KINETICS)
    assert isinstance(listed, TrajectoryEnergy)
    assert listed.names == alone.names
    assert (listed.numbers == alone.numbers).all()
    assert (listed_start == start).all()
    # The joint kernel of one experiment gives its bits too.
    known, known_start = trajectory(step=0.5, known={"back": 0.4}).energy_and_start(DATA[0], KINETICS)
    theta = np.insert(known_start, 2, 0.4)
    assert known.evaluate(known_start)[0][0] == alone.evaluate(theta)[0][0]
    assert (known.evaluate(known_start)[1][0] == np.delete(alone.evaluate(theta)[1][0], 2)).all()


def test_an_experiment_without_a_solution_makes_the_energy_infinite_and_the_gradient_0():
    joint, start = trajectory(step=0.5, own=("out",), limit=20.0).energy_and_start(DATA, KINETICS)
    bad = np.array(start)
    bad[joint.names.index("out[middle]")] = -3.0
    energy, slope = joint.evaluate(np.array([start, bad]))
    assert np.isfinite(energy[0])
    assert np.isposinf(energy[1])
    assert (slope[1] == 0.0).all()
    assert (slope[0] == joint.evaluate(start)[1][0]).all()


def problem_and_run(n_steps=600):
    """The posterior of three experiments with own and known parameters, and a run of it."""
    likelihood = trajectory(step=0.5, own=("out",), known={"back": RATES[2]})
    problem = sysid.identify(
        DATA, KINETICS, likelihood=likelihood, prior={"to": priors.lognormal(np.log(0.5), 1.0)}
    ).scaled()
    run = sample(
        problem, samplers.hmc(0.4, n_leapfrogs=5), n_steps=n_steps, n_chains=16, seed=1, burn_in=100, thin=5,
        init=problem.starts(16, seed=0),
    )  # fmt: skip
    return problem, run


def test_shared_and_own_parameters_are_found_with_their_intervals_and_simulated(tmp_path):
    problem, run = problem_and_run()
    draws = problem.parameters(run).reshape(-1, problem.dim)
    truth = {f"out[{name}]": rate for name, rate in OUT.items()} | {"to": RATES[1], "sd(blood)": SD, "sd(tissue)": SD}
    truth |= {f"blood(0)[{name}]": dose for name, dose in DOSES.items()}
    for name, value in truth.items():
        column = draws[:, problem.names.index(name)]
        assert abs(column.mean() - value) < 4.0 * column.std(), name
        assert column.std() < 0.3 * value, name
    table = problem.estimates(run)
    assert "out[middle]" in str(table)
    # One rate for all would be far off: the own parameters differ by many of their standard deviations.
    columns = [draws[:, problem.names.index(f"out[{name}]")] for name in OUT]
    assert columns[1].mean() - columns[0].mean() > 10.0 * max(columns[0].std(), columns[1].std())
    for k, (name, series) in enumerate(zip(OUT, DATA, strict=True)):
        ensemble = sysid.simulate(run, series.times, experiment=name, n_draws=100, seed=1)
        away = ensemble.states.mean(axis=0) - series.values
        assert np.nanmax(np.abs(away)) < 4.5 * SD
        assert (ensemble.parameters[:, 2] == RATES[2]).all()
        by_number = sysid.simulate(run, series.times, experiment=k, n_draws=100, seed=1)
        assert (by_number.states == ensemble.states).all()
        assert (problem.start_of(draws, name)[:, 0] == draws[:, problem.names.index(f"blood(0)[{name}]")]).all()
        assert (problem.system_parameters_of(draws, k)[:, 0] == columns[k]).all()
    assert (problem.start_of(draws) == problem.start_of(draws, 0)).all()
    run.save(tmp_path / "run.npz")
    assert (load(tmp_path / "run.npz").draws == run.draws).all()
    again = pickle.loads(pickle.dumps(problem))
    assert (again.start_of(draws, "high") == problem.start_of(draws, "high")).all()


@pytest.mark.slow  # compiles reflection and swaps
def test_r2sgld_of_several_experiments_runs_and_resumes_to_the_bit(tmp_path):
    problem = sysid.identify(
        DATA[:2], KINETICS, likelihood=trajectory(step=0.5, known={"back": (0.4, 0.4)}, noise=0.1),
        constraints="out < 10",
    ).scaled()  # fmt: skip
    arguments = {"n_chains": 4, "seed": 2, "init": problem.starts(4, seed=0)}
    sampler = samplers.r2sgld((0.01, 0.02), temperatures=(1.0, 2.0))
    whole = sample(problem, sampler, n_steps=200, **arguments)
    sample(problem, sampler, n_steps=100, checkpoint=tmp_path / "part", **arguments)
    again = sample(pickle.loads(pickle.dumps(problem)), sampler, n_steps=200, checkpoint=tmp_path / "part", **arguments)
    assert np.isfinite(whole.draws).all()
    assert (whole.draws == again.draws).all()


def test_intervals_hold_what_the_prior_drew():
    """Simulation-based calibration in small: linear, so cheap; 90 % intervals of 48 parameters of 12 data sets."""
    problem_of = trajectory(step=0.5, own=("out",), noise=SD, known={"back": RATES[2]})
    inside = []
    for seed in range(12):
        problem = sysid.identify(experiments(seed + 100), KINETICS, likelihood=problem_of).scaled()
        mode, root = problem.coordinates.shift, problem.coordinates.root
        sd = np.sqrt(np.diag(root @ root.T))
        truth = {f"out[{name}]": rate for name, rate in OUT.items()} | {"to": RATES[1]}
        inside += [
            abs(mode[problem.names.index(name)] - value) < 1.645 * sd[problem.names.index(name)]
            for name, value in truth.items()
        ]
    n = len(inside)
    assert abs(np.mean(inside) - 0.9) < 4.5 * np.sqrt(0.09 / n)


WRONG = {
    "own": (r"own must name free parameters \(out, to, back, sd\(blood\), sd\(tissue\)\), got 'k'", {"own": ("k",)}),
    "own and known": ("own must name free parameters", {"own": ("to",), "known": {"to": 1.0}}),
    "own known noise": ("own must name free parameters", {"own": ("sd(blood)",), "noise": 0.1}),
    "known": (r"known must name parameters \(out, to, back\), got 'dose'", {"known": {"dose": 1.0}}),
    "number": (r"known\['to'\] must be one number or 3, one an experiment, got 2", {"known": {"to": (1.0, 2.0)}}),
    "nan": (r"known\['to'\] must be finite", {"known": {"to": np.nan}}),
    "empty": (r"known\['to'\] must be a number, or one for each experiment", {"known": {"to": ()}}),
    "mapping": ("known must be a mapping", {"known": ["to"]}),
    "names": ("own must be a sequence of names", {"own": "to"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_named(case):
    message, arguments = WRONG[case]
    with pytest.raises((TypeError, ValueError), match=message):
        trajectory(**arguments).prepare(DATA, KINETICS)


def test_wrong_experiments_are_named():
    problem = sysid.identify(DATA[:2], KINETICS, likelihood=trajectory(step=0.5))
    theta = problem.usual_start()
    with pytest.raises(ValueError, match=r"experiment must name one .* \('low', 'middle'\), got 'no'"):
        problem.start_of(theta, "no")
    with pytest.raises(ValueError, match="experiment must be"):
        problem.system_parameters_of(theta, 2)
    with pytest.raises(ValueError, match="experiment must be None for draws of a System, got 1"):
        sysid.simulate(RATES, [0.0, 1.0], problem=KINETICS, experiment=1)
    good = Series([0.0, 1.0], [[1.0, 1.0], [1.0, 1.0]], KINETICS.states, name="low")
    bad = Series([0.0, 1.0], [[1.0, 1.0], [-3.0, 1.0]], KINETICS.states, name="middle")
    with pytest.raises(ValueError, match=r"data\[1\] must be > 0 for log-normal errors, got -3"):
        trajectory(errors="lognormal").prepare([good, bad], KINETICS)
    with pytest.raises(ValueError, match="data must be a Series or several, got none"):
        trajectory().prepare([], KINETICS)


PREDATORS = sysid.systems.lotka_volterra()


def few_samples(n, seed):
    """Ten times for each of ``n`` subjects, with 5 % noise and three values in ten missing."""
    rng, group = np.random.default_rng(seed), []
    for k in range(n):
        times = np.sort(np.r_[0, rng.uniform(0, 8, 9)])
        clean = sysid.data.simulate(PREDATORS, times, start=rng.uniform(4, 16, 2), seed=k)
        values = clean.values * np.exp(0.05 * rng.normal(size=clean.values.shape))
        values[rng.random(values.shape) < 0.3] = np.nan
        there = ~np.isnan(values).all(axis=1)
        group.append(Series(times[there], values[there], PREDATORS.states, name=f"s{k}"))
    return group


@pytest.mark.parametrize(("n", "seed"), [(3, 2), (4, 7)])
def test_a_subject_that_alone_does_not_tell_the_parameters_has_those_of_the_others(n, seed):
    """Of the first, one subject's own search fails; of the second, no subject's parameters have solutions for all."""
    problem = sysid.identify(few_samples(n, seed), PREDATORS, likelihood=trajectory(errors="lognormal"), n_searches=1)
    modes = problem.modes
    assert (np.abs(modes.parameters[0, :4] - PREDATORS.usual) < 4.0 * modes.sd[0, :4]).all()


def test_where_no_subject_and_no_guess_has_a_solution_the_first_subject_is_named():
    growth = System("growth", ("x",), ("r",), lambda t, x, p: (p[0] * x[0] * x[0],), [9.0], [5.0])
    alone = Series(np.linspace(0.0, 2.0, 9), np.full((9, 1), 5.0), ("x",), name="a")
    law = trajectory(errors="lognormal", start=(5.0,), step=0.1, known={"r": 9.0})
    with pytest.raises(ValueError, match=r"^experiment 'a' \(0\): data must be near a solution"):
        law.prepare([alone, alone], growth)
