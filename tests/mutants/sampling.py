"""Faults in samplers, schedules, weights, ladders and `sample`."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "binding: dynamics of one's own are not bound",
        "toolkit/samplers/sampler.py",
        "move = bound(self.dynamics.move)",
        "move = self.dynamics.move",
        "tests/toolkit/compiler/test_binding.py -k dynamics",
    ),
    Mutant(
        "ladder: acceptance taken for rejection",
        "toolkit/ladders.py",
        "1.0 - swaps / tries",
        "swaps / tries",
        "tests/toolkit/test_ladders.py",
    ),
    Mutant(
        "resampling: not random",
        "toolkit/weighting.py",
        "* size + rng.random())",
        "* size + 0.5)",
        "tests/toolkit/test_weighting.py",
    ),
    Mutant(
        "schedule: decay from the wrong step",
        "toolkit/schedules.py",
        "steps - start + 1",
        "steps - start + 2",
        "tests/toolkit/test_schedules.py",
    ),
    Mutant(
        "diagnostics: batch means: as if draws were independent",
        "toolkit/weighting.py",
        "return shares, np.asarray((deviations**2).sum(axis=0) / total**2 * (len(sums) / (len(sums) - 1.0)))",
        "return shares, np.asarray(shares * (1.0 - shares) / total)",
        "tests/toolkit/accumulators/test_grid_kl.py tests/toolkit/diagnostics/test_modes.py",
    ),
    Mutant(
        "checkpoint: a chunk counts as taken when it is made",
        "toolkit/_output/execution.py",
        "                yield run\n                saved.after_chunk(driver, nothing)",
        "                saved.after_chunk(driver, nothing)\n                yield run",
        "tests/toolkit/storage/test_checkpoint.py -k chunks_taken",
    ),
    Mutant(
        "hostile: nan alone is finite",
        "toolkit/errors.py",
        "if not np.isfinite(array).all():",
        "if array.ndim and not np.isfinite(array).all():",
        "tests/hostile/test_found_inputs.py",
    ),
    Mutant(
        "masks: dropped",
        "toolkit/errors.py",
        "        if isinstance(part, np.ma.MaskedArray):",
        "        if False:",
        "tests/hostile/test_masked_input.py -k refused_by_name",
    ),
    Mutant(
        "masks: what is hidden in a series is used",
        "toolkit/errors.py",
        "np.where(np.ma.getmaskarray(values), np.nan, check",
        "np.where(False, np.nan, check",
        "tests/hostile/test_masked_input.py -k series",
    ),
    Mutant(
        "hostile: bytes are sequences of numbers",
        "toolkit/errors.py",
        "and not is_a(values, str | bytes | bytearray | memoryview)",
        "and not is_a(values, str)",
        "tests/hostile/test_found_inputs.py",
    ),
    Mutant(
        "hostile: times are counts",
        "toolkit/errors.py",
        "not is_a(value, bool | np.bool_ | np.timedelta64)",
        "not is_a(value, bool | np.bool_)",
        "tests/hostile/test_hostile_objects.py -k times",
    ),
    Mutant(
        "hostile: memory without an end",
        "toolkit/errors.py",
        "if n_bytes > available:",
        "if n_bytes > 2**80:",
        "tests/hostile/test_found_inputs.py",
    ),
    Mutant(
        "verify's command never fails",
        "toolkit/__main__.py",
        "return 0 if report.passed else 1",
        "return 0",
        "tests/toolkit/verification/test_report.py -k command_runs",
    ),
    Mutant(
        "estimates: contour's chains pooled",
        "toolkit/weighting.py",
        "isinstance(run.sampler.tempering, Contour)",
        "False",
        "tests/sysid/test_forecasts.py tests/sysid/test_estimates.py tests/sysid/test_identification_runs.py -k factor",
    ),
]
