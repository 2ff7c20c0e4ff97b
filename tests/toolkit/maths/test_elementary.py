"""The vector maths against 60-digit references, at the edges, and as SIMD in the generated machine code."""

import math
import platform
import re
from pathlib import Path
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from numba import types

from targets import mixtures
from tests.support.machine_code import packed_instructions
from tests.toolkit.maths import fit_polynomials
from toolkit._compiler import signatures
from toolkit._compiler.decorators import compile_part
from toolkit._engine import phases
from toolkit._engine.state import CONTINUOUS_STATE, NUMBERS, STATE
from toolkit.boundaries import polygon, rules
from toolkit.dynamics import gradient_descent, metropolis, overdamped, preconditioned, thermostat, underdamped
from toolkit.maths import elementary, philox, special
from toolkit.tempering import continuous, contour_tempering, exchange, stein_particles

FLOATS = signatures.FLOATS


def fill_exp(x, out):
    for i in range(x.size):
        out[i] = elementary.exp(x[i])


def fill_log(x, out):
    for i in range(x.size):
        out[i] = elementary.log(x[i])


def fill_sincos(x, sine, cosine):
    for i in range(x.size):
        sine[i], cosine[i] = elementary.sincos(x[i])


def fill_sincos_turns(x, sine, cosine):
    for i in range(x.size):
        sine[i], cosine[i] = elementary.sincos_turns(x[i])


def fill_power(x, y, out):
    for i in range(x.size):
        out[i] = elementary.power(x[i], y[i])


def apply(function, *arguments, outputs=1):
    arrays = [np.atleast_1d(np.asarray(a, np.float64)) for a in arguments]
    out = [np.empty(arrays[0].size) for _ in range(outputs)]
    compile_part(function, types.void(*[FLOATS] * (len(arrays) + outputs)))(*arrays, *out)
    return out[0] if outputs == 1 else out


def ulps(values, exact):
    """Largest error in units of the last place of the exact value."""
    return max(
        float(abs(mpmath.mpf(float(v)) - e) / mpmath.mpf(math.ulp(float(e))))
        for v, e in zip(values, exact, strict=True)
    )


@pytest.mark.parametrize(("low", "high"), [(-1e-9, 1e-9), (-1, 1), (-50, 50), (-708, 709.78), (-745.13, -708)])
def test_exp_is_within_2_ulp(low, high):
    x = np.random.default_rng(1).uniform(low, high, 4000)
    with mpmath.workdps(60):
        assert ulps(apply(fill_exp, x), [mpmath.exp(mpmath.mpf(v)) for v in x]) < 1.1


def test_exp_at_the_edges():
    x = [
        0.0,
        -0.0,
        math.inf,
        -math.inf,
        math.nan,
        709.782712893384,
        709.7827128933841,
        1e308,
        -745.1332191019411,
        -746,
        -1e308,
    ]
    expected = [1.0, 1.0, math.inf, 0.0, math.nan, 1.7976931348622732e308, math.inf, math.inf, 5e-324, 0.0, 0.0]
    np.testing.assert_array_max_ulp(apply(fill_exp, x)[:4], np.array(expected)[:4], maxulp=0)
    np.testing.assert_allclose(apply(fill_exp, x), expected, rtol=3e-16)


@pytest.mark.parametrize("sampled", ["all magnitudes", "near 1", "(0, 1)", "subnormal"])
def test_log_is_within_2_ulp(sampled):
    rng = np.random.default_rng(2)
    x = {
        "all magnitudes": np.exp(rng.uniform(-708, 709, 4000)),
        "near 1": 1.0 + rng.uniform(-0.5, 1.0, 4000) ** 3,
        "(0, 1)": rng.random(4000),
        "subnormal": rng.random(4000) * 2.0**-1022,
    }[sampled]
    with mpmath.workdps(60):
        assert ulps(apply(fill_log, x), [mpmath.log(mpmath.mpf(v)) for v in x]) < 1.1


def test_log_at_the_edges():
    largest = 1.7976931348623157e308
    x = [0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, -1.0, -5e-324, 5e-324, largest, 1.3e308, 2.0**1023]
    expected = [-math.inf, -math.inf, 0.0, math.inf, math.nan, math.nan, math.nan, math.nan, -744.4400719213812]
    expected += [709.782712893384, math.log(1.3e308), 709.0895657128241]
    np.testing.assert_array_equal(apply(fill_log, x), expected)


@pytest.mark.parametrize("reach", [1e-8, 1.0, 100.0, 1e6, 2.0**30])
def test_sincos_is_within_1e_15(reach):
    x = np.random.default_rng(3).uniform(-reach, reach, 4000)
    x[:8] = np.arange(1, 9) * math.pi / 4  # where the reduced argument nearly vanishes
    sine, cosine = apply(fill_sincos, x, outputs=2)
    with mpmath.workdps(60):
        assert max(abs(mpmath.sin(mpmath.mpf(v)) - s) for v, s in zip(x, sine.tolist(), strict=True)) < 2.5e-16
        assert max(abs(mpmath.cos(mpmath.mpf(v)) - c) for v, c in zip(x, cosine.tolist(), strict=True)) < 2.5e-16


@pytest.mark.parametrize("reach", [1e-8, 1.0, 1e6, 2.0**40])
def test_sincos_of_turns_is_within_1e_15(reach):
    t = np.random.default_rng(4).uniform(-reach, reach, 4000)
    sine, cosine = apply(fill_sincos_turns, t, outputs=2)
    with mpmath.workdps(60):
        angle = [2 * mpmath.pi * mpmath.mpf(v) for v in t]
        assert max(abs(mpmath.sin(a) - s) for a, s in zip(angle, sine.tolist(), strict=True)) < 3.5e-16
        assert max(abs(mpmath.cos(a) - c) for a, c in zip(angle, cosine.tolist(), strict=True)) < 3.5e-16


def test_sincos_is_exact_at_quarter_turns_and_nan_out_of_range():
    sine, cosine = apply(fill_sincos_turns, [0.0, 0.25, 0.5, 0.75, 1.0, -0.25, 1e6 + 0.25], outputs=2)
    np.testing.assert_array_equal(np.abs(sine), [0, 1, 0, 1, 0, 1, 1])
    np.testing.assert_array_equal(sine[[1, 3, 5, 6]], [1, -1, -1, 1])
    np.testing.assert_array_equal(cosine[[0, 2, 4]], [1, -1, 1])
    for function, limit in ((fill_sincos, 2.0**30), (fill_sincos_turns, 2.0**49)):
        inside, beyond = [limit, -limit], [math.nextafter(limit, math.inf), -1.1 * limit, math.inf, -math.inf, math.nan]
        assert np.isfinite(apply(function, inside, outputs=2)).all()
        assert np.isnan(apply(function, beyond, outputs=2)).all()


def test_power_within_its_stated_error():
    rng = np.random.default_rng(5)
    x, y = np.exp(rng.uniform(-5, 5, 4000)), rng.uniform(-20, 20, 4000)
    with mpmath.workdps(60):
        exact = [mpmath.power(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(x, y, strict=True)]
        relative = [float(abs(v / e - 1)) for v, e in zip(apply(fill_power, x, y).tolist(), exact, strict=True)]
    assert (np.array(relative) < (1 + np.abs(y * np.log(x))) * 3.3e-16).all()
    np.testing.assert_array_equal(apply(fill_power, [0.0, 1.0], [2.0, 5.0]), [0.0, 1.0])


def test_sincos_and_power_at_the_edges():
    tiny = [0.0, -0.0, 5e-324, -5e-324, 1e-310]
    for function in (fill_sincos, fill_sincos_turns):
        sine, cosine = apply(function, tiny, outputs=2)
        np.testing.assert_array_equal(cosine, 1.0)
        np.testing.assert_allclose(sine, np.array(tiny) * (1.0 if function is fill_sincos else 2 * np.pi), atol=1e-323)
    x, y = (
        [0.0, 0.0, 0.0, 1.0, 2.0, 2.0, -1.0, math.nan, 2.0],
        [2.0, -1.0, 0.0, 1e300, 2000.0, -2000.0, 2.0, 1.0, math.nan],
    )
    expected = [0.0, math.inf, math.nan, 1.0, math.inf, 0.0, math.nan, math.nan, math.nan]
    np.testing.assert_array_equal(apply(fill_power, x, y), expected)


def signed(rng, low, high, n=2000):
    """Numbers of both signs, of all magnitudes between ``low`` and ``high``."""
    return np.exp(rng.uniform(np.log(low), np.log(high), n)) * rng.choice([-1.0, 1.0], n)


def spread(rng, reach, n=4000):
    """Numbers from 1e-300 to ``reach``, most of them near it, of both signs."""
    return np.concatenate([signed(rng, 1e-300, 1e-3), rng.uniform(-reach, reach, n)])


# function: the reference, the ulps that its docstring states, and where
STATED = {
    special.expm1: (mpmath.expm1, 2.5, lambda rng: np.append(spread(rng, 2), rng.uniform(-60, 709.7, 1000))),
    special.log1p: (mpmath.log1p, 2, lambda rng: np.append(spread(rng, 0.9999), abs(signed(rng, 0.1, 1e300)))),
    special.sinh: (mpmath.sinh, 3, lambda rng: np.append(spread(rng, 3), rng.uniform(-709.7, 709.7, 1000))),
    special.cosh: (mpmath.cosh, 2, lambda rng: np.append(spread(rng, 3), rng.uniform(-709.7, 709.7, 1000))),
    special.tanh: (mpmath.tanh, 3, lambda rng: np.append(spread(rng, 1), rng.uniform(-30, 30, 1000))),
    special.asinh: (mpmath.asinh, 3, lambda rng: np.append(spread(rng, 3), signed(rng, 1, 1e307))),
    special.acosh: (mpmath.acosh, 3, lambda rng: 1 + np.append(rng.random(2000), abs(signed(rng, 1e-15, 1e307)))),
    special.atanh: (mpmath.atanh, 3, lambda rng: np.append(spread(rng, 1), 1 - abs(signed(rng, 1e-15, 0.1)))),
    special.atan: (mpmath.atan, 1.5, lambda rng: np.append(spread(rng, 5), signed(rng, 1, 1e300))),
    special.asin: (mpmath.asin, 3, lambda rng: np.append(spread(rng, 1), 1 - abs(signed(rng, 1e-15, 0.1)))),
    special.acos: (mpmath.acos, 3, lambda rng: np.append(spread(rng, 1), 1 - abs(signed(rng, 1e-15, 0.1)))),
}
INF, NAN, HALF_PI = math.inf, math.nan, math.pi / 2
EDGES = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 1.5, -800.0, 800.0]
AT_EDGES = {
    special.expm1: [0, 0, INF, -1, NAN, math.expm1(1), math.expm1(-1), math.expm1(1.5), -1, INF],
    special.log1p: [0, 0, INF, NAN, NAN, math.log(2), -INF, math.log(2.5), NAN, math.log(801)],
    special.sinh: [0, -0.0, INF, -INF, NAN, math.sinh(1), -math.sinh(1), math.sinh(1.5), -INF, INF],
    special.cosh: [1, 1, INF, INF, NAN, math.cosh(1), math.cosh(1), math.cosh(1.5), INF, INF],
    special.tanh: [0, -0.0, 1, -1, NAN, math.tanh(1), -math.tanh(1), math.tanh(1.5), -1, 1],
    special.asinh: [0, -0.0, INF, -INF, NAN, *map(math.asinh, EDGES[5:])],
    special.acosh: [NAN, NAN, INF, NAN, NAN, 0, NAN, math.acosh(1.5), NAN, math.acosh(800)],
    special.atanh: [0, -0.0, NAN, NAN, NAN, INF, -INF, NAN, NAN, NAN],
    special.atan: [0, -0.0, HALF_PI, -HALF_PI, NAN, *map(math.atan, EDGES[5:])],
    special.asin: [0, -0.0, NAN, NAN, NAN, HALF_PI, -HALF_PI, NAN, NAN, NAN],
    special.acos: [HALF_PI, HALF_PI, NAN, NAN, NAN, 0, math.pi, NAN, NAN, NAN],
}


def filling(function):
    """A loop that applies ``function``."""

    def fill(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    return fill


def test_shares_are_exponentials_bit_for_bit_and_never_subnormal():
    x = np.concatenate([-(10.0 ** np.linspace(-300, 2.84, 5000)), [0.0, -0.0, -700.0, 1.0, 700.0, np.nan]])
    whole, share = np.empty_like(x), np.empty_like(x)
    for function, out in ((elementary.exp, whole), (elementary.exp_share, share)):
        compile_part(filling(function), types.void(FLOATS, FLOATS))(x, out)
    np.testing.assert_array_equal(share, whole)
    x = np.array([-700.1, -745.0, -1e300, -np.inf])
    out = np.empty(4)
    compile_part(filling(elementary.exp_share), types.void(FLOATS, FLOATS))(x, out)
    assert (out == math.exp(-700.0)).all()


@pytest.mark.parametrize("function", STATED, ids=lambda function: function.__name__)
def test_functions_for_targets_have_their_stated_error_and_edges(function):
    reference, bound, points = STATED[function]
    fill, x = filling(function), points(np.random.default_rng(6))
    with mpmath.workdps(40):
        assert ulps(apply(fill, x), [reference(mpmath.mpf(v)) for v in x.tolist()]) < bound
    edges = apply(fill, EDGES)
    np.testing.assert_allclose(edges, AT_EDGES[function], rtol=5e-16)
    if function not in (special.expm1, special.log1p):
        np.testing.assert_array_equal(np.signbit(edges[:2]), np.signbit(AT_EDGES[function][:2]))


def test_the_angle_of_a_point():
    def fill_atan2(y, x, out):
        for i in range(x.size):
            out[i] = special.atan2(y[i], x[i])

    rng = np.random.default_rng(7)
    y, x = signed(rng, 1e-3, 1e3), signed(rng, 1e-3, 1e3)
    with mpmath.workdps(40):
        exact = [mpmath.atan2(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(y.tolist(), x.tolist(), strict=True)]
        assert ulps(apply(fill_atan2, y, x), exact) < 2.5
    axes = apply(fill_atan2, [0.0, 0.0, 0.0, 1.0, -1.0, 1e300, NAN], [0.0, 2.0, -2.0, 0.0, 0.0, 1e-300, 1.0])
    np.testing.assert_array_equal(axes, [0.0, 0.0, math.pi, HALF_PI, -HALF_PI, HALF_PI, NAN])


@pytest.mark.parametrize("reach", [1.0, 100.0, 1e6])
def test_sin_cos_and_tan_by_themselves(reach):
    x = np.random.default_rng(8).uniform(-reach, reach, 2000)
    sine, cosine = apply(fill_sincos, x, outputs=2)
    np.testing.assert_array_equal(apply(filling(special.sin), x), sine)
    np.testing.assert_array_equal(apply(filling(special.cos), x), cosine)
    with mpmath.workdps(40):
        exact = [mpmath.tan(mpmath.mpf(v)) for v in x.tolist()]
        errors = [abs(v - e) / (1 + e * e) for v, e in zip(apply(filling(special.tan), x), exact, strict=True)]
    assert max(errors) < 5e-16


def test_fma_rounds_once():
    def fill_fma(x, out):
        for i in range(x.size):
            out[i] = elementary.fma(x[i], x[i], -1.0)

    x = 1.0 + 2.0**-30
    assert apply(fill_fma, [x])[0] == 2.0**-29 + 2.0**-60  # x·x − 1 rounds the 2⁻⁶⁰ away


def fill_uniforms(out, seed, chain):
    for lane in range(out.size):
        out[lane] = philox.uniform_pair(seed, chain[lane], np.uint64(0), np.uint64(0), np.uint64(1), np.uint64(0))[0]


def named(kind, *fields):
    """The type of a named tuple of ``kind`` for Numba."""
    return types.NamedTuple(fields, kind)


MATRIX, NAMES = signatures.MATRIX, signatures.NAMES
PHASES = {
    "energy and gradient of cosine25": (mixtures.cosine25_block, signatures.TARGET),
    "energy and gradient of a Gaussian grid": (mixtures.gaussian_grid_block, signatures.TARGET),
    **{function.__name__: (filling(function), types.void(FLOATS, FLOATS)) for function in STATED},
    "energy and gradient of a mixture": (mixtures.gaussian_mixture_block, signatures.TARGET),
    "penalty": (
        rules.add_penalty.py_func,
        types.void(MATRIX, MATRIX, FLOATS, MATRIX, FLOATS, types.float64, types.boolean),
    ),
    "uniforms": (fill_uniforms, types.void(FLOATS, types.uint64, NAMES)),
    "noise": (
        philox.fill_normals.py_func,
        types.void(MATRIX, types.uint64, NAMES, NAMES, types.int64, types.int64),
    ),
    "looking the domain up": (polygon.locate_polygon, signatures.DOMAIN),
    "attempted swap": (
        exchange.attempt_pair.py_func,
        types.void(STATE, NUMBERS, FLOATS, named(exchange.Pair, *(types.int64,) * 3), types.int64, types.int64),
    ),
    "exchange": (exchange.exchange.py_func, types.void(*(FLOATS,) * 3)),
    "flattening": (
        contour_tempering.contour_multiplier.py_func,
        types.void(
            FLOATS,
            FLOATS,
            named(contour_tempering.Levels, *(FLOATS,) * 7),
            contour_tempering.CONTOUR_STATE,
            FLOATS,
            types.int64,
            types.int64,
        ),
    ),
    "coupling": (
        continuous.temper_continuously.py_func,
        types.boolean(CONTINUOUS_STATE, MATRIX, FLOATS, FLOATS, FLOATS, MATRIX, FLOATS, types.int64),
    ),
    "Stein's gradients": (
        stein_particles.stein_gradients.py_func,
        types.void(
            named(stein_particles.Particles, MATRIX, MATRIX, FLOATS),
            named(stein_particles.Scratch, MATRIX, FLOATS, FLOATS, FLOATS),
            types.float64,
            types.int64,
            types.int64,
        ),
    ),
    "start of a trajectory": (
        metropolis.begin_trajectory.py_func,
        types.void(STATE, types.boolean, types.boolean, types.int64),
    ),
    "kick and drift": (metropolis.kick_and_drift.py_func, types.void(*(MATRIX,) * 3, FLOATS, FLOATS)),
    "end of a trajectory": (metropolis.end_trajectory.py_func, types.void(MATRIX, MATRIX, *(FLOATS,) * 4)),
    "Metropolis test": (metropolis.accept.py_func, types.void(STATE, types.uint64, types.int64, types.boolean)),
    "probe": (phases.set_probe.py_func, types.void(*(MATRIX,) * 3, FLOATS, FLOATS)),
    "curvature": (phases.divide_differences.py_func, types.void(*(MATRIX,) * 4)),
    "Langevin": (overdamped.move_langevin, signatures.DYNAMICS),
    "preconditioned Langevin": (preconditioned.move_preconditioned, signatures.DYNAMICS),
    "descent": (gradient_descent.move_descent, signatures.DYNAMICS),
    "underdamped Langevin": (underdamped.move_underdamped, signatures.DYNAMICS),
    "Nosé–Hoover": (thermostat.move_nose_hoover, signatures.DYNAMICS),
    "Nosé–Hoover by coordinate": (thermostat.move_nose_hoover_by_coordinate, signatures.DYNAMICS),
    "hold": (
        phases.restore_previous.py_func,
        types.void(MATRIX, MATRIX, FLOATS, signatures.INTEGERS, types.int64),
    ),
}


def scalar_exp(x, out):
    for i in range(x.size):
        out[i] = math.exp(x[i])


@pytest.mark.cases(8)
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86-64 assembly")
@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_is_compiled_to_vector_instructions(phase):
    packed, library = packed_instructions(*PHASES[phase])
    assert len(packed) >= {"exchange": 1, "uniforms": 1, "kick and drift": 2}.get(phase, 3)  # operations it has
    assert not library


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86-64 assembly")
def test_a_library_call_in_the_loop_is_not_vectorised():
    assert packed_instructions(scalar_exp, types.void(FLOATS, FLOATS)) == ([], {"exp"})


def test_the_maths_compiles_for_cuda(monkeypatch):
    """The same source goes through the CUDA compiler to PTX, with fused multiply-adds and no call to a library."""
    pytest.importorskip("numba_cuda", reason="needs the cuda extra")
    from numba import cuda

    # No GPU is needed to compile, only somebody who says which one it is for.
    monkeypatch.setattr(cuda.dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(9, 0)))

    def kernel(x, seed, out):
        i = cuda.grid(1)
        sine, cosine = elementary.sincos(x[i])
        normal, _ = philox.normal_pair(seed, np.uint64(i), seed, seed, seed, seed)
        out[i] = elementary.exp(x[i]) + elementary.log(x[i]) + elementary.power(x[i], sine) + cosine + normal
        out[i] += special.tanh(special.sinh(x[i])) + special.log1p(special.cosh(x[i]))
        out[i] += special.atan2(special.asin(x[i]), special.tan(special.asinh(x[i])))

    ptx, _ = cuda.compile_ptx(kernel, types.void(FLOATS, types.uint64, FLOATS), cc=(9, 0))
    assert "fma.rn.f64" in ptx
    assert not re.findall(r"\bcall\S*\s", ptx)


@pytest.mark.slow
def test_the_maths_uses_the_fitted_coefficients():
    source = "".join(Path(m.__file__).read_text(encoding="utf-8") for m in (elementary, special))
    for name, coefficients, error in fit_polynomials.fits():
        assert error < 4e-16, name
        for c in coefficients:
            assert repr(abs(float(c))) in source, (name, float(c))
