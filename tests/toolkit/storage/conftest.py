"""Tests of saving need not wait for the disk."""

import pytest


@pytest.fixture
def unflushed(monkeypatch):
    """Leave it to the system when to write saved runs to the disk, which tests need not wait for."""
    monkeypatch.setattr("toolkit._output.storage.run_file.flush", lambda *_, **__: None)
