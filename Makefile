# Every target makes its own .venv, re-uses it, and re-installs into it when pyproject.toml changes. `figures` installs
# the core alone; `test` adds what tests need; what needs CUDA's compiler has an environment of its own.
# Needs only make and a python3 of version 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
# Where it is set, as in many containers, each process that tests start would compile all Python sources again.
unexport PYTHONDONTWRITEBYTECODE

# One more than there are processors: tests of processes, files and clusters wait.
WORKERS = $(shell $(PYTHON) -c 'import os; print(1 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1))')
DEVICE_TESTS := tests/cuda tests/benchmarks/test_cuda.py tests/toolkit/maths/test_elementary.py

.PHONY: figures test test-slow test-device test-cuda test-lowest mutants bench bench-compare bench-all bench-cuda docs lint clean

figures: .venv/core
	$(BIN)/python -m figures

test: .venv/installed
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile

test-slow: .venv/installed test-device
	$(BIN)/python -m pytest -m slow
	.venv-device/bin/python -m pytest -m slow $(DEVICE_TESTS)

# What is compiled for a GPU, and its simulator, without a GPU: the files that `make test` skips without CUDA's compiler.
test-device: .venv-device/installed
	.venv-device/bin/python -m pytest --numprocesses auto --dist loadfile $(DEVICE_TESTS)

test-cuda: .venv-device/installed
	.venv-device/bin/python -m pytest -m cuda tests/cuda

# Files, hostile and good, with the lowest version of every package that pyproject.toml allows.
test-lowest: .venv-lowest/installed
	.venv-lowest/bin/python -m tests.hostile.files
	.venv-lowest/bin/python -m pytest tests/toolkit/storage tests/hostile/test_hostile_files.py

mutants: .venv/installed
	$(BIN)/python -m tests.mutants

bench: .venv/installed .venv-peers/installed
	$(BIN)/python -m benchmarks bench --out benchmarks/out/bench

bench-compare: .venv/installed
	$(BIN)/python -m benchmarks compare

bench-all: .venv/installed
	$(BIN)/python -m benchmarks others

bench-cuda: test-cuda
	.venv-device/bin/python -m benchmarks cuda --out benchmarks/out/cuda --minutes 120

# The site, in docs/build; a warning is an error.
docs: .venv-docs/installed
	.venv-docs/bin/python -m sphinx --fail-on-warning --keep-going --quiet docs docs/build
	@echo "the site is docs/build/index.html"

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.venv/core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, and this is " + sys.version)'
	$(PYTHON) -m venv .venv
	@echo "installing the packages of pyproject.toml into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable .
	@touch $@

.venv/installed: .venv/core
	@echo "installing what tests need into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[test,lint]'
	@touch $@

.venv-device/installed: pyproject.toml
	$(PYTHON) -m venv .venv-device
	.venv-device/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[test,cuda]'
	@touch $@

.venv-lowest/installed: pyproject.toml
	$(PYTHON) -m venv --clear .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check \
		$$($(PYTHON) -m tests.support.lowest_versions io symbolic shapes data test)
	@touch $@

.venv-docs/installed: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[docs]'
	@touch $@

# Other packages, pinned, that the tables of `make bench` compare with; one that does not install is listed as such.
.venv-peers/installed: benchmarks/peers/pins.txt
	$(PYTHON) -m benchmarks.peers.install
	@touch $@

clean:
	rm -rf .venv .venv-device .venv-docs .venv-peers .venv-lowest docs/build docs/reference docs/gallery docs/jupyter_execute figures/out build *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
