"""Simulated data have the errors they say, files are read or their faults named, and the lynx–hare table is right."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from sysid import systems
from sysid.data import check, files, from_arrays, load, lynx_hare, simulate, sources
from sysid.systems.system import System
from tests.sysid.right_hand_sides import decay

LORENZ, LOTKA, SIR = systems.lorenz(), systems.lotka_volterra(), systems.sir()
TIMES = np.linspace(0.0, 20.0, 2001)
SURE = 1e-5  # false-alarm rate of each look at random numbers


def looks_standard_normal(errors):
    squares = stats.chi2(errors.size).cdf((errors**2).sum())
    return stats.kstest(errors.ravel(), "norm").pvalue > SURE and SURE < squares < 1.0 - SURE


@pytest.mark.parametrize("noise", [0.05, [0.01, 0.05, 0.2]])
def test_gaussian_errors_are_a_share_of_the_root_mean_square(noise):
    exact = simulate(LORENZ, TIMES, seed=0)
    noisy = simulate(LORENZ, TIMES, noise=noise, seed=0)
    sizes = np.sqrt((exact.values**2).mean(axis=0))
    np.testing.assert_allclose(noisy.noise, noise * sizes)
    errors = (noisy.values - exact.values) / noisy.noise
    assert looks_standard_normal(errors)
    assert not looks_standard_normal(1.1 * errors)
    assert np.abs(np.corrcoef(errors.T) - np.eye(3)).max() < 4.5 / np.sqrt(len(TIMES))
    absolute = simulate(LORENZ, TIMES, noise=0.3, relative=False, seed=0)
    np.testing.assert_allclose((absolute.values - exact.values) / 0.3, errors, rtol=1e-9)


def test_lognormal_errors_are_factors():
    exact = simulate(LOTKA, TIMES, seed=3)
    noisy = simulate(LOTKA, TIMES, noise=0.2, errors="lognormal", seed=3)
    logs = np.log(noisy.values / exact.values)
    assert looks_standard_normal(logs / 0.2)
    assert not looks_standard_normal(logs / 0.22)
    np.testing.assert_array_equal(noisy.noise, [0.2, 0.2])
    with pytest.raises(ValueError, match=r"errors must be 'gaussian' unless all states are > 0, but 'recovered' is 0"):
        simulate(SIR, TIMES, noise=0.1, errors="lognormal", seed=0)


@pytest.mark.parametrize("method", ["DOP853", "LSODA", "dopri5"])
def test_every_method_gives_the_same_states_and_the_exact_velocities(method):
    times = np.array([0.0, 0.01, 0.5, 0.7, 3.0])
    found = simulate(LORENZ, times, seed=0, method=method)
    np.testing.assert_allclose(found.values, simulate(LORENZ, times, seed=0).values, rtol=1e-6)
    exact = [LORENZ.rhs(t, x, LORENZ.usual) for t, x in zip(times, found.values, strict=True)]
    np.testing.assert_allclose(found.velocities, exact, rtol=1e-12)
    np.testing.assert_array_equal(found.values[0], LORENZ.start)


def test_velocities_are_of_the_states_without_errors():
    exact, noisy = (simulate(LORENZ, TIMES, noise=noise, seed=1) for noise in (0.0, 0.1))
    np.testing.assert_array_equal(exact.velocities, noisy.velocities)


def test_missing_values_are_a_share_and_leave_the_others_alone():
    whole = simulate(LORENZ, TIMES, noise=0.1, seed=5)
    some = simulate(LORENZ, TIMES, noise=0.1, missing=0.3, seed=5)
    gone = np.isnan(some.values)
    assert gone.sum() == round(0.3 * gone.size)
    np.testing.assert_array_equal(some.values[~gone], whole.values[~gone])
    expected = 0.09 * len(TIMES)  # both of two states missing at random
    assert abs((gone[:, 0] & gone[:, 1]).sum() - expected) < 4.5 * np.sqrt(expected)
    few = simulate(LORENZ, TIMES[:5], missing=0.99, seed=5)
    assert (~np.isnan(few.values)).sum(axis=0).tolist() == [2, 2, 2]


def test_the_seed_decides():
    one, same, other = (simulate(LORENZ, TIMES, noise=0.1, missing=0.1, seed=s).values for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).mean() > 0.9


def square_rhs(t, x, p):
    return (p[0] * x[0] * x[0],)


@pytest.mark.parametrize("method", ["DOP853", "LSODA", "dopri5"])
def test_a_system_that_blows_up_is_an_error_not_a_hang(method):
    square = System("square", ("x",), ("a",), square_rhs, [1.0], [1.0])
    with pytest.raises(ArithmeticError, match="square was not solved"):
        simulate(square, np.linspace(0.0, 2.0, 21), seed=0, method=method)


def test_a_stiff_system_ends(monkeypatch):
    monkeypatch.setattr(sources, "MAX_EVALUATIONS", 20_000)
    with pytest.raises(ArithmeticError, match="van_der_pol was not solved: 21000 evaluations, and only t = "):
        simulate(systems.van_der_pol(), [0.0, 1e6], parameters=[1e6], seed=0)


def test_the_lynx_hare_table():
    table = lynx_hare()
    assert table.states == ("hare", "lynx")
    np.testing.assert_array_equal(table.times, np.arange(1900, 1921))
    assert table.values[[0, 3, -1]].tolist() == [[30.0, 4.0], [77.4, 35.2], [24.7, 8.6]]
    np.testing.assert_allclose(table.values.sum(axis=0), [715.7, 423.5])
    assert table.values.argmax(axis=0).tolist() == [3, 4]
    assert table.time_unit == "year"
    assert "Hudson's Bay" in table.source
    assert check(table) == []


def write(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table_is_read_with_its_missing_values(tmp_path, separator, end):
    text = '# of a lake\n"t",x , site,y\n0,1.5,a,-2e-3\n1,,b,NA\n2, NA ,c,3\n3,nan,d,"4"\n4,5,e,\n\n'
    path = tmp_path / "table.csv"
    path.write_bytes(text.replace(",", separator).replace("\n", end).encode())
    found = load(path, time="t", states=("y", "x"), time_unit="day", units=("m", "s"))
    nan = np.nan
    np.testing.assert_array_equal(found.times, [0.0, 1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(found.values, [[-2e-3, 1.5], [nan, nan], [3.0, nan], [4.0, nan], [nan, 5.0]])
    assert (found.name, found.time_unit, found.units) == ("table", "day", ("m", "s"))


def test_numbers_are_read_to_the_last_bit_also_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK", 1000)
    draws = np.random.default_rng(0)
    values = draws.standard_normal((500, 2)) * 10.0 ** draws.integers(-300, 300, (500, 2))
    values[draws.random((500, 2)) < 0.1] = np.nan
    lines = [f"{t},{','.join('' if np.isnan(v) else repr(v) for v in row)}" for t, row in enumerate(values.tolist())]
    found = load(write(tmp_path, "t,x,y\n" + "\n".join(lines)), time="t")
    np.testing.assert_array_equal(found.values, values)
    lines[400] = "400,oops,1"
    with pytest.raises(
        ValueError, match=r"table.csv, line 402, column 'x': 'oops' is not a number; missing values are"
    ):
        load(write(tmp_path, "t,x,y\n" + "\n".join(lines)), time="t")


BAD = {
    "text": ("t,x\n0,1\n1,high\n", "table.csv, line 3, column 'x': 'high' is not a number; missing values are written"),
    "decimal comma": ("t;x\n0;1,5\n", "table.csv, line 2, column 'x': '1,5' is not a number; numbers have a decimal"),
    "short line": ("t,x\n0,1\n1\n2,3\n", "table.csv, line 3: has 1 columns, but the header has 2"),
    "long line": ("t,x\n0,1\n1,2,3\n", "table.csv, line 3: has 3 columns, but the header has 2"),
    "one long, one short": ("t,x,y\n0,1,2\n1,2,3,4\n2,3\n", "table.csv, line 3: has 4 columns, but the header has 3"),
    "blank line": ("t,x\n0,1\n\n1,2\n", "table.csv, line 3: is blank, with data after it"),
    "repeated column": ("t,x,x\n0,1,2\n", "table.csv: columns must have different names, got 'x' at 3 again"),
    "no time": ("time,x\n0,1\n", "table.csv: has no column 't'; its columns are 'time', 'x'"),
    "no header": ("0,1\n1,2\n", "table.csv, line 1: must name the columns, got numbers: '0,1'"),
    "one column": ("t\n0\n", "table.csv, line 1: must name columns between , ; or tabs, got 't"),
    "empty": ("", "table.csv: must begin with a line that names the columns, but is empty"),
    "no rows": ("t,x\n", "table.csv: times must be at least 2, got 0"),
    "one row": ("t,x\n0,1\n", "table.csv: times must be at least 2, got 1: one sample says nothing of a change"),
    "no time in a line": ("t,x\n0,1\n,2\n", "table.csv, line 3, column 't': a time must be finite, got nan"),
    "repeated time": ("t,x\n0,1\n1,2\n1,2\n",
        r"table.csv: times must increase, got 1 and then 1 \(repeated\) at row 2; row 0 is line 2"),
    "decreasing time": ("t,x\n0,1\n1,2\n0.5,2\n", r"table.csv: times must increase, got 1 and then 0.5 \(decreasing\)"),
    "infinite": ("t,x\n0,1\n1,inf\n",
        "table.csv: values must be finite, or nan where missing, got inf of 'x' at row 1"),
    "all missing": ("t,x\n0,NA\n1,NA\n", "table.csv: values must not all be missing, but are for 'x'"),
    "hexadecimal": ("t,x\n0,0x10\n", "table.csv, line 2, column 'x': '0x10' is not a number"),
    "underscore": ("t,x\n0,1_0\n", "table.csv, line 2, column 'x': '1_0' is not a number"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_fault_in_a_file_is_named_by_line_and_column(tmp_path, what):
    text, words = BAD[what]
    with pytest.raises(ValueError, match=f"^{tmp_path}/{words}"):
        load(write(tmp_path, text), time="t")


def test_other_bad_calls_are_refused(tmp_path):
    path = write(tmp_path, "t,x\n0,1\n1,nan\n2,-99\n")
    with pytest.raises(ValueError, match="column 'x': 'nan' is not a number; missing values are written '-99'"):
        load(path, time="t", missing=["-99"])
    assert np.isnan(load(path, time="t", missing=["nan", "-99"]).values).ravel().tolist() == [False, True, True]
    with pytest.raises(FileNotFoundError, match=r"nothing.csv': no such file"):
        load(tmp_path / "nothing.csv", time="t")
    with pytest.raises(ValueError, match="is a folder"):
        load(tmp_path, time="t")
    with pytest.raises(TypeError, match="path must be the path of a file, got 3"):
        load(3, time="t")
    with pytest.raises(ValueError, match="has no column 'y'; its columns are 't', 'x'"):
        load(path, time="t", states=["y"])
    with pytest.raises(ValueError, match="states and inputs must not hold the time, got 't'"):
        load(path, time="t", states=["t"])
    with pytest.raises(TypeError, match="missing must be a sequence of words, got 'NA'"):
        load(path, time="t", missing="NA")
    with pytest.raises(TypeError, match=r"^units must be a sequence of texts, got None"):
        load(path, time="t", units=None)
    (tmp_path / "binary.csv").write_bytes(b"t,x\n\xff\xfe\x00,1\n")
    with pytest.raises(ValueError, match=r"binary.csv: is not a text file in UTF-8"):
        load(tmp_path / "binary.csv", time="t")


def test_many_rows_need_little_more_memory_than_their_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK", 2**16)
    n = 100_000
    path = write(tmp_path, "t,x,y\n" + "\n".join(f"{k},{k * 0.5},{k * 0.25}" for k in range(n)))
    tracemalloc.start()
    found = load(path, time="t")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == n
    assert peak < 3.0 * n * 3 * 8


@pytest.mark.slow
def test_ten_million_rows(tmp_path):
    path, piece = tmp_path / "long.csv", 100_000
    with path.open("w") as stream:
        stream.write("t,x\n")
        for k in range(0, 10_000_000, piece):
            stream.write("".join(f"{i},{0.5 * i if i % 7 else ''}\n" for i in range(k, k + piece)))
    found = load(path, time="t")
    np.testing.assert_array_equal(found.times, np.arange(1e7))
    np.testing.assert_array_equal(np.isnan(found.values[:, 0]), np.arange(10_000_000) % 7 == 0)
    assert np.nansum(found.values) == 0.5 * np.where(np.arange(1e7) % 7, np.arange(1e7), 0.0).sum()


def test_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"t": [0, 1, 2], "x": [1.0, None, 3.0], "who": ["a", "b", "c"]})
    parquet.write_table(table, tmp_path / "table.parquet")
    found = load(tmp_path / "table.parquet", time="t", states=["x"])
    np.testing.assert_array_equal(found.values, [[1.0], [np.nan], [3.0]])
    with pytest.raises(ValueError, match=r"table.parquet, column 'who': must hold numbers, got string"):
        load(tmp_path / "table.parquet", time="t")
    write(tmp_path, "t,x\n0,1\n", "false.parquet")
    with pytest.raises(ValueError, match=r"false.parquet: is not a Parquet file that can be read"):
        load(tmp_path / "false.parquet", time="t")


def test_arrays():
    masked = np.ma.masked_equal([1.0, -1.0, 3.0], -1.0)
    found = from_arrays([0, 1, 2], masked, "x", noise=[0.1])
    np.testing.assert_array_equal(found.values, [[1.0], [np.nan], [3.0]])
    with pytest.raises(ValueError, match=r"times must increase, got 1 and then 1 \(repeated\) at row 2"):
        from_arrays([0, 1, 1], masked, "x")
    with pytest.raises(TypeError, match="values must be an array of real numbers"):
        from_arrays([0, 1], ["a", "b"], "x")


def test_arrays_with_all_that_is_known_of_them():
    known = {"velocities": [[1.0], [-1.0]], "noise": [0.5], "units": ("m",), "time_unit": "s", "name": "lake",
        "source": "a book"}  # fmt: skip
    found = from_arrays([0.0, 1.0], [1.0, 2.0], "x", **known)
    plain = from_arrays([0.0, 1.0], [1.0, 2.0], "x")
    for field, value in known.items():
        np.testing.assert_array_equal(getattr(found, field), value)
        assert not np.array_equal(getattr(plain, field), value)


def told(words, values, times=TIMES, states=("x",), **given):
    """Whether just one warning is given, which has these words."""
    found = check(from_arrays(times, values, states), **given)
    return len(found) == 1 and words in found[0]


def test_what_looks_wrong_is_told_and_what_does_not_is_not():
    draws = np.random.default_rng(0)
    wave = np.sin(TIMES)
    assert check(from_arrays(TIMES, wave, "x")) == []
    assert told("'x' is constant, 2", np.full(TIMES.size, 2.0))
    assert told("'y' is equal to 'x' at all times", np.stack([wave, wave], axis=1), states=("x", "y"))
    assert told("'x' is missing at 75% of the times", np.where(np.arange(TIMES.size) % 4, np.nan, wave))
    assert told("'x' at one time says nothing of the next", draws.standard_normal(TIMES.size))
    assert told("'x' at one time says nothing of the next", np.sin(1e6 * TIMES**1.3))
    assert told("'x' does not change beyond rounding in 90% of the steps", np.repeat(wave[::10], 10)[: TIMES.size])
    assert told("there is a gap from 10 to 60, 5e+03 times", wave, np.where(TIMES > 10.0, TIMES + 49.99, TIMES))
    assert told("times are near 1.7e+09 but span 20", wave, TIMES + 1.7e9)
    assert told("times near 1.7e+18 are rounded to 256", wave, np.arange(TIMES.size) * 256.0 + 1.7e18)


@pytest.mark.parametrize("unit", [1.0, 60.0, 1.0 / 3600.0, 1000.0])
def test_a_wrong_unit_of_time_is_told_with_its_factor(unit):
    clean = simulate(LORENZ, TIMES, noise=0.001, missing=0.05, seed=0)
    found = check(from_arrays(clean.times / unit, clean.values, clean.states), LORENZ)
    if unit == 1.0:
        assert found == []
    else:
        assert len(found) == 1
        factor = float(found[0].split(" times those of lorenz")[0].removeprefix("speeds are "))
        assert factor == pytest.approx(unit, rel=0.05)
    with pytest.raises(ValueError, match="series must have states of the model, prey, predator, got 'x'"):
        check(clean, LOTKA)


def test_speeds_are_compared_with_those_of_the_parameters_given():
    """Decay at rate 2 looks twice too fast beside the usual rate, and right beside its own."""
    fading = System("decay", ("x",), ("rate",), decay, [1.0], [1.0])
    series = simulate(fading, np.linspace(0.0, 2.0, 201), parameters=[2.0], seed=0)
    assert check(series, fading, [2.0]) == []
    assert check(series, fading)[0].startswith("speeds are 2 times those of decay")


REFUSED = {
    "seed": (lambda: simulate(LORENZ, TIMES, seed=-1), "seed must be ≥ 0"),
    "one time": (lambda: simulate(LORENZ, [0.0], seed=0), "times must be at least 2, got 1: a Series of one sample"),
    "units of arrays": (lambda: from_arrays([0, 1], [1.0, 2.0], "x", units=None), "units must be a sequence of texts"),
    "parameters of the system": (lambda: check(from_arrays([0, 1], np.ones((2, 3)), LORENZ.states), LORENZ, [10.0]),
        r"parameters must have shape \(3,\), got \(1,\)"),
    "noise": (lambda: simulate(LORENZ, TIMES, noise=-0.1, seed=0), "noise must be finite and ≥ 0, got -0.1"),
    "noises": (lambda: simulate(LORENZ, TIMES, noise=[0.1, 0.2], seed=0),
        "noise must be one number, or one of each of 3 states, got 2"),
    "errors": (lambda: simulate(LORENZ, TIMES, errors="cauchy", seed=0),
        "errors must be one of 'gaussian', 'lognormal', got 'cauchy'"),
    "missing": (lambda: simulate(LORENZ, TIMES, missing=1.0, seed=0),
        "missing must be finite and ≥ 0 and < 1, got 1.0"),
    "method": (lambda: simulate(LORENZ, TIMES, method="RK45", seed=0),
        "method must be one of 'DOP853', 'LSODA', 'dopri5', got 'RK45'"),
    "parameters": (lambda: simulate(LORENZ, TIMES, parameters=[1.0], seed=0), r"parameters must have shape \(3,\)"),
    "lanes": (lambda: simulate(LORENZ, TIMES, start=np.ones((2, 3)), seed=0),
        r"start must have shape \(3,\), got \(2, 3\)"),
    "system": (lambda: simulate("lorenz", TIMES, seed=0), "system must be a System, got 'lorenz'"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_off_is_refused_with_its_value(what):
    call, words = REFUSED[what]
    with pytest.raises((TypeError, ValueError), match=f"^{words}"):
        call()
