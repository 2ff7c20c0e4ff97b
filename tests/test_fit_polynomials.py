"""The coefficients in ``toolkit.maths`` and ``toolkit.trigonometry`` are those of the fit."""

from pathlib import Path

import fit_polynomials
import pytest

from toolkit import maths, trigonometry


@pytest.mark.slow
def test_the_maths_uses_the_fitted_coefficients():
    source = "".join(Path(m.__file__).read_text(encoding="utf-8") for m in (maths, trigonometry))
    for name, coefficients, error in fit_polynomials.fits():
        assert error < 4e-16, name
        for c in coefficients:
            assert repr(abs(float(c))) in source, (name, float(c))
