"""Libraries of terms and models linear in their parameters: values, names, ties, and what is refused."""

import numpy as np
import pytest

from sysid import libraries, model_of, systems
from sysid.likelihoods.path_fit import moves_of
from sysid.likelihoods.term_derivatives import COMPLEX_STEP, term_jacobian
from sysid.model import all_free, as_model, model_of_system

STATES = ("x", "y", "z")
POINTS = np.random.default_rng(1).normal(size=(50, 3))


def test_a_polynomial_library_has_every_monomial_once():
    library = libraries.polynomial(STATES, 2)
    assert library.names == ("1", "x", "y", "z", "xx", "xy", "xz", "yy", "yz", "zz")
    x, y, z = POINTS.T
    expected = np.stack([np.ones(50), x, y, z, x * x, x * y, x * z, y * y, y * z, z * z], axis=1)
    np.testing.assert_allclose(library.evaluate(POINTS), expected, rtol=1e-14)
    assert len(libraries.polynomial(STATES, 5)) == 56  # (3 + 5 over 5)
    assert libraries.polynomial(("hare", "lynx"), 2).names[-2:] == ("hare lynx", "lynx lynx")
    assert "1" not in libraries.polynomial(STATES, 2, constant=False).names


def test_monomials_together_keep_the_bits_of_each_monomial_by_itself():
    library = libraries.polynomial(STATES, 4)
    together = library.evaluate(POINTS)
    for k, term in enumerate(library.terms):
        alone = np.ones(50)
        for column, power in zip(POINTS.T, term.powers, strict=True):
            alone = alone * column**power if power else alone
        assert np.array_equal(together[:, k], alone)


def test_derivatives_are_those_of_each_monomial_by_itself():
    library = libraries.polynomial(STATES, 4, inputs=("u",))
    points = np.random.default_rng(2).normal(size=(50, 4))
    jacobian = term_jacobian(library, points)
    for d in range(3):
        columns = [points[:, e] + (1j * COMPLEX_STEP if e == d else 0.0) for e in range(4)]
        for k, term in enumerate(library.terms):
            alone = np.ones_like(columns[0])
            for column, power in zip(columns, term.powers, strict=True):
                alone = alone * column**power if power else alone
            assert np.array_equal(jacobian[:, k, d], np.imag(alone) / COMPLEX_STEP)


def test_moves_of_single_terms_are_the_sum_over_all_terms():
    library = libraries.polynomial(STATES, 2)
    single = model_of(library, free=["dx:xy", "dz:1"], tied={"a": {"dx:x": -1.0, "dy:y": 2.5}}, fixed={"dy:x": 3.0})
    several = model_of(library, tied={"a": {"dx:x": -1.0, "dx:y": 2.5}})
    assert several.single_terms is None
    places, factors = single.single_terms
    assert places.shape == factors.shape == (3, 3)
    terms = library.evaluate(POINTS)
    for model in (single, several, all_free(library)):
        assert np.array_equal(moves_of(terms, model), np.einsum("nt,kte->nek", terms, model.directions))


def test_fourier_and_own_terms():
    own = libraries.functions(STATES, {"bell": lambda x: np.exp(-x[0] * x[0]), "xyz": lambda x: x[0] * x[1] * x[2]})
    library = libraries.fourier(STATES, 2, frequency=0.5) + own + libraries.polynomial(STATES, 1)
    x = POINTS[:, 0]
    columns = dict(zip(library.names, library.evaluate(POINTS).T, strict=True))
    np.testing.assert_allclose(columns["sin(x)"], np.sin(x), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(columns["cos(0.5 y)"], np.cos(0.5 * POINTS[:, 1]), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(columns["bell"], np.exp(-x * x), rtol=1e-13)
    np.testing.assert_allclose(columns["xyz"], POINTS.prod(axis=1), rtol=1e-13, atol=1e-16)
    assert len(library) == 12 + 2 + 4
    assert len(library + library) == len(library)


@pytest.mark.parametrize("name", [name for name, system in systems.catalogue().items() if system.terms is not None])
def test_the_terms_of_a_system_are_its_right_hand_side(name):
    """Θ(x) Ξ of the terms, the function written out from them, and the system's own right-hand side are one."""
    system = systems.catalogue()[name]
    model = model_of_system(system) if name != "damped_pendulum" else None
    if model is None:
        pytest.skip("its terms are no monomials")
    states = np.random.default_rng(2).uniform(0.1, 2.0, size=(20, system.dim))
    expected = np.array([system.rhs(0.0, tuple(s), tuple(system.usual)) for s in states])
    coefficients = model.coefficients(system.usual)
    np.testing.assert_allclose(model.library.evaluate(states) @ coefficients, expected, rtol=1e-12, atol=1e-13)
    written = np.array([model.system.rhs(0.0, tuple(s), tuple(system.usual)) for s in states])
    np.testing.assert_allclose(written, expected, rtol=1e-12, atol=1e-13)
    moved = system.usual * 1.1
    assert np.abs(model.library.evaluate(states) @ model.coefficients(moved) - expected).max() > 1e-3


def test_free_fixed_and_tied_coefficients():
    library = libraries.polynomial(STATES, 2)
    model = model_of(
        library, free=["dy:x"], fixed={"dy:y": -1.0, "dy:xz": -1.0, "dz:xy": 1.0},
        tied={"sigma": {"dx:x": -1.0, "dx:y": 1.0}, "beta": {"dz:z": -1.0}},
    )  # fmt: skip
    assert model.parameters == ("sigma", "beta", "dy:x")
    lorenz = model_of_system(systems.lorenz(), library)
    np.testing.assert_array_equal(model.coefficients([10.0, 8 / 3, 28.0]), lorenz.coefficients([10.0, 28.0, 8 / 3]))
    assert "dx/dt = -10 x +10 y" in lorenz.equations([10.0, 28.0, 8 / 3])
    assert "dz/dt = -2.667 z +1 xy" in lorenz.equations([10.0, 28.0, 8 / 3])
    assert "dz/dt = -2.7 z +1 xy" in lorenz.equations([10.0, 28.0, 8 / 3], digits=2)
    assert len(all_free(library).parameters) == 30
    eleven = model_of(library, free=(), tied={"a": {"dx:x": 11.0, "dy:y": -1.0, "dz:z": -21.0}})
    assert eleven.system.rhs(0.0, (1.0, 2.0, 3.0), (0.5,)) == (5.5, -1.0, -31.5)
    rest = model_of(library, fixed={"dx:1": 0.0})
    assert len(rest.parameters) == 29


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda lib: model_of(lib, free=["dx:q"]), "free must name coefficients .*got 'dx:q'"),
        (lambda lib: model_of(lib, free=["dx:x"], fixed={"dx:x": 1.0}), "free must not hold what is fixed or tied"),
        (lambda lib: model_of(lib, free=[]), "free and tied must name a parameter"),
        (lambda lib: model_of(lib, fixed={"dx:x": np.nan}), r"fixed\['dx:x'\] must be finite"),
        (lambda lib: model_of(lib, tied={"a": {}}), "'a' stands at none"),
        (lambda lib: libraries.polynomial(STATES, 40), "degree must leave at most 2000 terms"),
        (lambda lib: libraries.polynomial(("x", "x"), 1), "states must be distinct"),
        (lambda lib: lib.evaluate(np.zeros((3, 2))), r"states must have shape \(n, 3\), got \(3, 2\)"),
        (lambda lib: lib.subset(["x", "w"]), "names must be of the library's terms"),
        (lambda lib: lib + libraries.polynomial(("a",), 1), "must have the same states"),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call(libraries.polynomial(STATES, 2))


def test_what_is_no_model_or_function():
    with pytest.raises(TypeError, match="model must be a System, Library or Model"):
        as_model("lorenz")
    with pytest.raises(TypeError, match="must give a number at a state of ones"):
        libraries.functions(STATES, {"bad": lambda x: "a"})
    with pytest.raises(TypeError, match="must be a function of a state"):
        libraries.functions(STATES, {"bad": 3})
