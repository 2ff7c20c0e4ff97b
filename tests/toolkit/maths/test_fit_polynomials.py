"""The coefficients in ``toolkit.maths.elementary`` and ``toolkit.maths.special`` are those of the fit."""

from pathlib import Path

import pytest

from tests.toolkit.maths import fit_polynomials
from toolkit.maths import elementary, special


@pytest.mark.slow
def test_the_maths_uses_the_fitted_coefficients():
    source = "".join(Path(m.__file__).read_text(encoding="utf-8") for m in (elementary, special))
    for name, coefficients, error in fit_polynomials.fits():
        assert error < 4e-16, name
        for c in coefficients:
            assert repr(abs(float(c))) in source, (name, float(c))
