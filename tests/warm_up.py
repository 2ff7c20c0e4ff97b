"""What most test files need compiled, and the files themselves: shared among pytest's workers before they collect.

Otherwise every worker would compile all of it, at the same time, as long as none of it is on disk.
"""

import contextlib
import importlib
import time
from functools import partial
from pathlib import Path

import pytest

PATIENCE = 300.0  # seconds for another worker to end


def engine():
    """The general engine."""
    from toolkit._compiler.decorators import compile_part
    from toolkit._engine.loop import advance
    from toolkit._engine.state import ADVANCE

    compile_part(advance, ADVANCE)


def phases(*names):
    """Phases of the loop."""
    from toolkit._compiler.decorators import compile_part
    from toolkit._engine import metropolis_step, phases
    from toolkit._engine.state import CALLING_PHASE, PHASE

    for name in names:
        function = getattr(metropolis_step if name.startswith("propose") else phases, name)
        signature = CALLING_PHASE if "callees" in function.__code__.co_varnames else PHASE
        compile_part(function, signature, packed=True, from_python=False)


def adaptive_solver():
    """The solver whose steps adapt, and a system."""
    from sysid import simulate, systems

    system = systems.lotka_volterra()
    simulate(system.usual, [0.0, 0.1], problem=system)


def polygons():
    """The look-up of a shape, its table, and the search for edges that cross."""
    from targets import shapes

    assert shapes.star().domain


def identification():
    """The energy of what is linear in its coefficients."""
    import numpy as np

    from sysid import Series, identify, libraries

    times = np.linspace(0.0, 1.0, 20)
    states = np.exp(-times)[:, None]
    data = Series(times, states, ("x",), velocities=-states)
    identify(data, libraries.polynomial(("x",), 1)).target.compiled()


def trajectories():
    """What the likelihoods of trajectories of all systems share."""
    from sysid.block_function import USE_LIKELIHOOD
    from sysid.likelihoods.trajectory_kernel import SHOOT

    for code in (SHOOT, USE_LIKELIHOOD):
        code.provide()


def sampler(name):
    """Dynamics and tempering of a sampler with its default arguments."""
    from toolkit import samplers
    from toolkit._compiler.binding import bound
    from toolkit._compiler.decorators import compile_part
    from toolkit._engine.state import TEMPER

    made = getattr(samplers, name)()
    made.dynamics.compiled()
    if made.tempering is not None:
        compile_part(bound(made.tempering.step), TEMPER, packed=True, from_python=False)


def walls():
    """The look-up of convex domains, and that of their nearest points."""
    from targets import domains
    from toolkit.boundaries.convex import FIND_NEAREST

    assert domains.box([0.0], [1.0]).domain
    FIND_NEAREST.provide()


def sparse_fits():
    """The moves of the Gibbs sampler, and what steps along paths are computed by."""
    import numpy as np

    from sysid.libraries import polynomial
    from sysid.likelihoods.conditions import compiled_band
    from sysid.sparsity import compiled_exchange, compiled_sweep, compiled_update

    compiled_update(), compiled_exchange(), compiled_sweep(updates=True), compiled_band()
    polynomial(("x", "y"), 2).evaluate(np.ones((3, 2)))


def targets_of_many():
    """Targets that most test files have."""
    from targets import classics, mixtures

    made = (classics.egg_box, classics.muller_brown, classics.himmelblau, mixtures.cosine25)
    for target in (mixtures.gaussian_mixture([[0.0] * 3], 1.0), *(constructor() for constructor in made)):
        target.compiled()


def exact_targets():
    """Those of the catalogue, whose files come first: several workers would be at them at the same time."""
    from targets import catalogue
    from toolkit.problem.definition import as_problem

    for problem in catalogue():
        as_problem(problem).target.compiled()


PARTS = {  # the longest first
    "catalogue": exact_targets,
    "engine": engine,
    "exact moves": partial(phases, "propose"),
    "exact moves with a contour": partial(phases, "propose_by_contour"),
    "trajectories": trajectories,
    "adaptive solver": adaptive_solver,
    "replica exchange": partial(sampler, "resgld"),
    "polygons": polygons,
    "walls": walls,
    "sparse fits": sparse_fits,
    "targets": targets_of_many,
    **{name: partial(sampler, name) for name in ("svgd", "csgld", "tact_hmc", "mala", "sgnht", "psgld", "sghmc")},
    "identification": identification,
    "phases of most runs": partial(
        phases, "provide_noise", "freeze_diverged", "read_energies", "record_draw_statistics", "confine",
        "confine_and_record"
    ),
    "other phases": partial(
        phases, "start_momenta", "use_trajectory_end", "record_traces", "add_gradient_noise",
        "penalise", "estimate_curvature",
    ),
}  # fmt: skip


def is_mine(folder: Path, name: str) -> bool:
    """Whether no other worker has begun what has this name. folder: the workers' own."""
    try:
        (folder / f"{name} begun").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def compile_in_turn(folder: Path) -> None:
    """Compile the parts that no other worker has begun; return when all are compiled. folder: the workers' own."""
    for name, part in PARTS.items():
        if is_mine(folder, name):
            try:
                part()
            finally:
                (folder / f"{name} done").touch()
    started = time.monotonic()
    while time.monotonic() - started < PATIENCE:
        if all((folder / f"{name} done").exists() for name in PARTS):
            return
        time.sleep(0.05)


def import_in_turn(folder: Path, asked: list[Path]) -> None:
    """Import the test files that no other worker has begun: what Python and Numba make of them is then on disk.

    asked: the files and folders that are tested. What one raises, collecting it will raise again.
    """
    tests = Path(__file__).parent
    for path in sorted(tests.rglob("test_*.py")):
        if not any(path.is_relative_to(one) for one in asked):
            continue
        name = ".".join(path.relative_to(tests.parent).with_suffix("").parts)
        if is_mine(folder, name):
            with contextlib.suppress(Exception, pytest.skip.Exception):
                importlib.import_module(name)
