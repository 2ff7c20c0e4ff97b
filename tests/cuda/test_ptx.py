"""What is compiled for CUDA, without a GPU: nothing fused but on purpose, nothing called, nothing spilled; refusals.

Bits are a CPU's only where no assembler may fuse a product and a sum, and no function is CUDA's own. Each check has a
wrong code beside it, in which it finds what is wrong.
"""

import importlib.util
import inspect
import math
import re
import textwrap
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numba import config, types

from targets import from_sympy, mixtures, shapes
from targets.posteriors import user_likelihood
from toolkit import CudaWarning, Problem, boundaries, dynamics, samplers, target
from toolkit._compiler import signatures as s

if importlib.util.find_spec("numba_cuda") is None or config.ENABLE_CUDASIM:
    pytest.skip("needs numba-cuda, and not its simulator", allow_module_level=True)

from benchmarks.cuda import kernel_cases as kernels
from benchmarks.cuda import ptx
from toolkit._engine.cuda import compiling, device, inspection, refusals

ASSEMBLES = importlib.util.find_spec("cuda") is not None and importlib.util.find_spec("cuda.bindings") is not None


def code_of(part, signature):
    """The code of a part by itself."""
    return compiling.codes_of(part, signature.args, ((9, 0),))[0]


def faults(code):
    """What is wrong with code that is to give a CPU's bits."""
    calls = compiling.CALLED.findall(code.ptx)
    return [*(["fused"] if compiling.contracts(code.ptx) else []), *calls, *code.functions]


def test_code_is_read():
    assert compiling.contracts("add.f64 %fd1, %fd2, %fd3;")
    assert compiling.contracts("mul.f32 %f1, %f2, %f3;")
    assert not compiling.contracts("add.rn.f64 %fd1, %fd2, %fd3; fma.rn.f64 %fd1; add.s64 %rd1; mul.wide.u32 %rd2;")
    assert compiling.CALLED.findall("call.uni (retval0), \n__internal_x, \n(param0);") == ["__internal_x"]
    assert compiling.CALLED.findall("call foo, (x);\n// .globl callable") == ["foo"]
    ir = """
    define i32 @part(double %1) {
      call double @__nv_sqrt(double %1)
      call double @"__nv_erf"(double %1)
    }
    declare double @__nv_exp(double)
    """
    assert compiling.functions_called(textwrap.dedent(ir)) == ("erf",)
    of_integers = 'define i32 @"int_power_impl"(double %1) {\n call double @__nv_pow(double %1)\n}\n'
    assert compiling.functions_called(of_integers) == ()
    assert compiling.functions_called(of_integers.replace("int_power_impl", "other")) == ("pow",)


def test_products_and_sums_are_kept_apart_but_by_our_own_fma(monkeypatch):
    block = mixtures.cosine25().energy_gradient
    kept = code_of(block, s.TARGET)
    assert not faults(kept)
    assert "fma.rn.f64" in kept.ptx
    nvvm = device.cuda.cudadrv.nvvm
    compile_ir = nvvm.compile_ir
    monkeypatch.setattr(nvvm, "compile_ir", lambda ir, **options: compile_ir(ir, **{**options, "fma": True}))
    assert faults(code_of(block, s.TARGET)) == ["fused"]


READ = re.compile(r"\t\{\n(?:\t\.reg \.f64 %literal\d;\n\tld\.const[^\n]*\n)+([^\n]*)\n\t\}")
LOADED = re.compile(r"ld\.const\.f64 (%literal\d), \[literals\+(\d+)\];")


def with_literals_back(ptx):
    """``ptx`` as before ``with_constant_bank``, by the table that it holds."""
    table = re.search(r"\.const \.align 8 \.f64 literals\[(\d+)\] = \{(.*)\};\n", ptx)
    values = table[2].split(", ")
    assert len(set(values)) == len(values) == int(table[1])

    def original(read):
        operation = read[1]
        for name, place in LOADED.findall(read[0]):
            operation = operation.replace(name, values[int(place) // 8])
        return operation

    return READ.sub(original, ptx.replace(table[0], ""))


def ptx_of_sgld():
    """The kernel of SGLD on cosine25."""
    job = kernels.Case("test", "", mixtures.cosine25(), samplers.sgld(1e-3)).job()
    return inspection.chain_codes(job, ((9, 0),))[0].ptx


@pytest.fixture(scope="module")
def code_of_sgld():
    """The kernel as it is compiled."""
    return ptx_of_sgld()


def test_long_literals_are_read_from_constant_memory(monkeypatch, code_of_sgld):
    """Each that needs both of its words, once in the table, with its value; nothing else changes."""
    rewritten = compiling.with_constant_bank
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "with_constant_bank", lambda ptx: ptx)
        before = ptx_of_sgld()
    code = rewritten(before)
    assert with_literals_back(code) == before != code
    assert rewritten("add.rn.f64 %fd1, %fd2, 0d3FF0000000000000;") == "add.rn.f64 %fd1, %fd2, 0d3FF0000000000000;"
    left = [line for line in code.splitlines() if compiling.WITH_LITERAL.match(line)]
    assert left  # 0.5, 1.0 and such
    assert not any(compiling.LONG_LITERAL.search(line) for line in left)
    assert len(LOADED.findall(code_of_sgld)) == len(LOADED.findall(code)) > 40


def test_philox_multiplies_words(code_of_sgld):
    """Ten rounds of two products of 32 bits by 32, and none by 64."""
    assert len(re.findall(r"mul\.wide\.u32\s", code_of_sgld)) >= 19  # the first product may be of what is known
    assert not re.findall(r"mul\.lo\.s64[^\n]*\b(?:3528531795|3449720151)", code_of_sgld)


def by_erf(x):
    return math.erf(x[0]) + math.gamma(2.0 + x[0] * x[0]), (abs(x[0]) ** 2.5,)


def by_ours(x):
    slope = math.floor(x[0]) + math.atan2(x[0], 2.0) % 3.0
    return math.exp(x[0]) + math.sqrt(abs(x[0])) + x[0] ** 2 - x[0] ** -3, (slope,)


def test_functions_that_are_cudas_own_are_found():
    assert not faults(code_of(target(dim=1)(by_ours).energy_gradient, s.TARGET))
    code = code_of(target(dim=1)(by_erf).energy_gradient, s.TARGET)
    assert code.functions == ("erf", "pow", "tgamma")
    assert "__internal_accurate_pow" in faults(code)


def test_a_function_with_parameters_calls_nothing():
    def stretched(x, p):
        return 0.5 * p[1, 0] * x[0] * x[0] + p[0, 2] * x[1], (p[1, 0] * x[0], p[0, 2])

    part = target(dim=2, parameters=np.arange(6.0).reshape(2, 3))(stretched)
    assert not faults(code_of(part.energy_gradient, s.TARGET))


def datum(x, row):
    return 0.5 * (x[0] - row[0]) * (x[0] - row[0]), (x[0] - row[0],)


def test_parts_that_were_refused_once_are_clean():
    assert not faults(code_of(user_likelihood.posterior(datum, np.arange(3.0), 1).energy_gradient, s.TARGET))
    assert not faults(code_of(kernels.made(dynamics.nose_hoover).move, s.DYNAMICS))


def as_on_a_device(signature):
    """The types of a part's arguments where a chain's numbers lie apart from each other."""
    return [kind.copy(layout="A") if isinstance(kind, types.Array) else kind for kind in signature.args]


def reshapes(position, energy, gradient, parameters, scratch):
    flat = gradient.reshape(gradient.size)
    for lane in range(energy.size):
        energy[lane] = 0.5 * position[0, lane] * position[0, lane]
        flat[lane] = position[0, lane]


@pytest.mark.slow_cases("independent")
@pytest.mark.parametrize("kind", [pytest.param("trajectory", marks=pytest.mark.slow), "independent", "windows"])
def test_identification_calls_nothing_where_numbers_lie_apart(kind):
    """Reshaping calls a function that no device has."""
    from sysid import identify, likelihoods, systems

    chosen = (
        likelihoods.trajectory(step=0.1, method="rk4") if kind == "trajectory"
        else likelihoods.derivative(velocities="spline", batch_size=8, batches=kind)
    )  # fmt: skip
    part = identify(kernels.growth_series(), systems.lotka_volterra(), likelihood=chosen).target.energy_gradient
    assert not faults(compiling.codes_of(part, as_on_a_device(s.TARGET), ((9, 0),))[0])
    assert faults(code_of(reshapes, s.TARGET)) == ["numba_attempt_nocopy_reshape"]


@pytest.mark.slow
@pytest.mark.parametrize("errors", ["student", "poisson", "negative_binomial"])
@pytest.mark.parametrize("n_experiments", [1, 2])
def test_trajectories_of_all_laws_of_error_and_of_experiments_are_clean(errors, n_experiments):
    """Sums over experiments and logarithms of gamma functions call nothing that no device has."""
    from sysid import identify, likelihoods, systems

    series = kernels.growth_series()
    counts = replace(series, values=np.round(series.values + 1.0), velocities=None)
    chosen = likelihoods.trajectory(step=0.1, errors=errors, own=["alpha"] if n_experiments > 1 else ())
    given = [replace(counts, name=f"run {k}") for k in range(n_experiments)]
    problem = identify(
        given if n_experiments > 1 else counts, systems.lotka_volterra(), likelihood=chosen, n_searches=0
    )
    part = problem.target.energy_gradient
    assert not faults(compiling.codes_of(part, as_on_a_device(s.TARGET), ((9, 0),))[0])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk4", "sdirk4"])
def test_trajectories_with_inputs_doses_and_functions_of_states_are_clean(method):
    """Inputs, jumps of states, functions of them as data, and implicit steps call nothing that a device has not."""
    from sysid import Inputs, data, identify, likelihoods, systems

    def growth(t, x, p, u):
        return (p[0] * x[0] * (1.0 - x[0]) + u[0],)

    system = systems.own(growth, states=["n"], parameters=["r", "scale"], usual=[1.0, 2.0], start=[0.2], inputs=["u"])
    times = np.linspace(0.0, 4.0, 9)
    given = Inputs({"u": (times, 0.1 * np.sin(times))}, doses={"n": ([1.0], [0.1])})
    series = data.simulate(system, times, inputs=given, noise=0.01, seed=0)
    series = replace(series, values=2.0 * series.values, states=("y",), velocities=None)
    chosen = likelihoods.trajectory(step=0.25, method=method, start=[0.2], observe={"y": lambda t, x, p: p[1] * x[0]})
    part = identify(series, system, likelihood=chosen, n_searches=0).target.energy_gradient
    assert not faults(compiling.codes_of(part, as_on_a_device(s.TARGET), ((9, 0),))[0])


@pytest.mark.slow
def test_parts_by_themselves_are_clean():
    """Walls that are functions call CUDA's own, for their complex step."""
    import sympy

    walls = code_of(identified().domain.locate.py_func, s.DOMAIN)
    assert set(walls.functions) <= {"cos", "exp", "sin"}
    assert not compiling.contracts(walls.ptx)
    x, y = sympy.symbols("x y")
    formula = from_sympy(sympy.log(sympy.cosh(x)) + y**4, (x, y))
    for part in (mixtures.five_spots().energy_gradient, formula.energy_gradient, identified().target.energy_gradient):
        assert not faults(code_of(part, s.TARGET)), part
    assert not faults(code_of(shapes.flower().domain.locate.py_func, s.DOMAIN))
    for name in dynamics.__all__:
        if name.islower():
            assert not faults(code_of(kernels.made(getattr(dynamics, name)).move, s.DYNAMICS)), name


def identified():
    """Lotka–Volterra within two walls that are functions."""
    from sysid import identify, likelihoods, systems

    chosen = likelihoods.derivative(velocities="spline")
    within = [lambda theta: theta[0] * theta[0] + 1.0, lambda theta: 40.0 - theta[0]]
    return identify(kernels.growth_series(), systems.lotka_volterra(), likelihood=chosen, constraints=within, log=[])


def makes_arrays(x):
    a = np.zeros(2)
    a[0] = x[0]
    return 0.5 * a[0] * a[0], (a[0],)


def run_of(problem, sampler):
    """A run, checked."""
    return kernels.Case("test", "", problem, sampler, {"init": np.zeros(problem.dim)}).job()


def line_of(function, text):
    """The number of the line of ``function`` that holds ``text``."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def without_room(position, mirror_point, outside, float_table, int_table):
    places = [position[0, 0], 1.0]
    outside[:] = places[0] - places[0]


def test_what_cuda_lacks_is_told_with_its_line(monkeypatch):
    """Before anything runs: the part by name, the user's own line, and the feature."""

    def refuses(*given):  # as the whole kernel does, some seconds later
        raise TypeError("No implementation of function Function(<function lacking>) found for signature:")

    monkeypatch.setattr("toolkit._engine.cuda.kernel.compile_kernel", refuses)
    line = line_of(makes_arrays, "np.zeros")
    job = run_of(target(dim=1)(makes_arrays), samplers.sgld(0.1))
    kernel = inspection.kernel_of(job)
    with pytest.raises(TypeError, match=rf"'cpu' for target 'makes_arrays'.*zeros.*line {line} of test_ptx.py"):
        refusals.chain_kernel_of(job, *kernel)
    region = shapes.flower().domain
    problem = Problem(mixtures.cosine25(), region)
    object.__setattr__(problem, "domain", region._replace(name="cramped"))
    job = kernels.Case("test", "", problem, samplers.sgld(0.1, boundary=boundaries.reflect())).job()
    parts, shape, *_ = inspection.kernel_of(job)
    line = line_of(without_room, "places =")
    told = refusals.explanation(job, parts._replace(locate=without_room), shape, TypeError("whole"))
    assert "domain 'cramped', of which CUDA lacks something: arrays, lists" in told
    assert told.endswith(f"in line {line} of test_ptx.py")
    assert "by 'sgld', whose kernel CUDA refuses: whole" in refusals.explanation(job, parts, shape, TypeError("whole"))


def test_bits_that_may_differ_are_told(monkeypatch):
    """With every run, though its kernel is compiled once; and not where there is nothing to tell."""
    problem = target(dim=1)(by_erf)
    job = run_of(problem, samplers.sgld(0.1))
    code = code_of(problem.energy_gradient, s.TARGET)
    monkeypatch.setattr("toolkit._engine.cuda.kernel.compile_kernel", lambda *given: code)
    monkeypatch.setattr(compiling, "code_of", lambda kernel, kinds: kernel)
    for _ in range(2):
        with pytest.warns(CudaWarning, match="'by_erf' by 'sgld'.*calls erf, gamma, pow .*which CUDA has of its own"):
            refusals.chain_kernel_of(job, *inspection.kernel_of(job))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refusals.warn_of_bits(job, code._replace(functions=()))
    with pytest.warns(CudaWarning, match="fused"):
        refusals.warn_of_bits(job, compiling.Code(code.ptx.replace("add.rn.f64", "add.f64"), ()))


@pytest.mark.skipif(not ASSEMBLES, reason="needs nvJitLink, which numba-cuda[cu13] brings")
def test_sgld_keeps_its_state_in_registers():
    """And one with more numbers than there are registers does not: the assembler would say so."""
    code = inspection.chain_codes(kernels.Case("test", "", mixtures.cosine25(), samplers.sgld(1e-3)).job(), ((8, 0),))[
        0
    ]
    found = ptx.assembled(code.ptx, (8, 0))
    assert not faults(code)
    assert (found.stack, found.spill_stores, found.spill_loads) == (0, 0, 0)
    assert found.registers < 128
    cramped = ptx.assembled(code.ptx, (8, 0), most_registers=24)
    assert cramped.spill_stores > 0


REDUCTION = "__internal_trig_reduction_slowpathd"  # of large angles, which CUDA's sine and cosine call
COMMON = ("sgld", "sgld, flower", "r2sgld, flower", "psgld", "sghmc", "tact_hmc", "csgld", "resgld", "mala", "hmc")


@pytest.mark.slow
@pytest.mark.parametrize("group", kernels.GROUPS, ids=lambda group: group.__name__)
def test_every_kernel_is_clean(group):
    """All of the catalogue, for both architectures; the common ones without a spill."""
    for case, job in ptx.unlike(group()):
        codes = inspection.chain_codes(job, ptx.CAPABILITIES)
        for capability, code in zip(ptx.CAPABILITIES, codes, strict=True):
            allowed = set(kernels.OWN_FUNCTIONS.get(case.name, ()))
            allowed |= {REDUCTION} if allowed & {"sin", "cos"} else set()
            assert set(faults(code)) <= allowed, (case.name, set(faults(code)))
            if case.group == "sampler" and case.name in COMMON and ASSEMBLES:
                assert ptx.assembled(code.ptx, capability).spill_stores == 0, case.name
