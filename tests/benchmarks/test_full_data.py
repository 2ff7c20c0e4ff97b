"""The script for full data and a GPU, small and on the CPU; skipped where PyTorch is not installed."""

import numpy as np
import pytest

from figures.papers.csgmcmc import digits, table1_digits
from targets import datasets


def test_small_on_the_cpu(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch")
    from benchmarks.learning import full_data

    found = datasets.digits()
    pixels = np.round(255.0 * found.features[:90]).reshape(-1, 8, 8).astype(np.uint8)
    path = tmp_path / "digits.npz"
    np.savez(path, x_train=pixels, y_train=found.labels[:90], x_test=pixels, y_test=found.labels[:90])
    part = full_data.images(path, 80)
    assert part.features.shape == (80, 1, 8, 8)
    assert part.asked.max() == 1.0
    model = full_data.convolutional("cpu", "float64")
    target = model.target(part)
    said = model.predict(target, np.zeros((2, 3, target.dim)), part.asked)
    np.testing.assert_allclose(said, np.full((2, 3, 80, 10), 0.1))
    few = {name: digits.METHODS[name] for name in ("SGHMC", "SGD ×4")}
    monkeypatch.setattr(digits, "METHODS", few)
    monkeypatch.setattr(full_data, "METHODS", few)
    monkeypatch.setattr(table1_digits, "NAMES", tuple(few))
    full_data.main([str(path), "--device", "cpu", "--rows", "60", "--budget", "80", "--repeats", "2"])
    assert "SGD ×4" in capsys.readouterr().out
    np.savez(path, x_train=pixels)
    with pytest.raises(ValueError, match=r"it lacks \['x_test', 'y_test', 'y_train'\]"):
        full_data.images(path, None)
