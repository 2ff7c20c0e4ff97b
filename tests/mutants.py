"""Faults of the kind that peers ship, put into a copy one by one; the tests must fail for every one.

``make mutants`` runs all (some 20 s each: the engine compiles anew), ``python tests/mutants.py NAME …`` those whose
names contain a NAME. Exits with 1 where a mutant lives. ``tests/test_mutants.py`` sees that each still applies.
"""

import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 600  # seconds; a mutant that hangs is dead


class Mutant(NamedTuple):
    """A fault: in ``file``, ``old`` becomes ``new``; ``tests`` are the pytest arguments that must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTANTS = [
    Mutant(
        "langevin: noise halved",
        "toolkit/overdamped.py",
        "math.sqrt(2.0 * h * temperature[lane])",
        "math.sqrt(h * temperature[lane])",
        "tests/test_dynamics.py",
    ),
    Mutant(
        "langevin: temperature forgotten",
        "toolkit/overdamped.py",
        "math.sqrt(2.0 * h * temperature[lane])",
        "math.sqrt(2.0 * h)",
        "tests/test_dynamics.py",
    ),
    Mutant(
        "langevin: drift doubled",
        "toolkit/overdamped.py",
        "fma(-h, gradient[d, lane], fma(kick",
        "fma(-2.0 * h, gradient[d, lane], fma(kick",
        "tests/test_dynamics.py",
    ),
    Mutant(
        "noise shared between coordinates",
        "toolkit/philox.py",
        "step, purpose, uint64(pair))",
        "step, purpose, uint64(0))",
        "tests/test_dynamics.py tests/test_philox.py",
    ),
    Mutant(
        "noise shared within a pair",
        "toolkit/philox.py",
        "radius * cosine, radius * sine",
        "radius * cosine, radius * cosine",
        "tests/test_dynamics.py tests/test_philox.py",
    ),
    Mutant(
        "replicas share their noise",
        "toolkit/philox.py",
        "(replica | (index << HALF_WORD)) & LOW",
        "(index << HALF_WORD) & LOW",
        "tests/test_philox.py tests/test_engine.py",
    ),
    Mutant(
        "gradient noise is the move's noise",
        "toolkit/engine.py",
        "step, GRADIENT_NOISE)",
        "step, MOVE)",
        "tests/test_engine.py tests/test_dynamics.py",
    ),
    Mutant(
        "gradient noise left out",
        "toolkit/engine.py",
        "fma(numbers.gradient_noise, noise[d, lane], gradient[d, lane])",
        "gradient[d, lane]",
        "tests/test_dynamics.py",
    ),
    Mutant(
        "swap: sign turned round",
        "toolkit/swapping.py",
        "cold_energy[c] - hot_energy[c]",
        "hot_energy[c] - cold_energy[c]",
        "tests/test_tempering.py",
    ),
    Mutant(
        "swap: correction left out",
        "toolkit/swapping.py",
        "slope * (difference[c] - slope * correction[c])",
        "slope * difference[c]",
        "tests/test_tempering.py",
    ),
    Mutant(
        "swap: correction doubled",
        "toolkit/exchange.py",
        "return float(energy_noise) ** 2 if",
        "return 2.0 * float(energy_noise) ** 2 if",
        "tests/test_tempering.py",
    ),
    Mutant(
        "swap: half of the energy noise",
        "toolkit/swapping.py",
        "noise * (a - b)",
        "noise * a",
        "tests/test_tempering.py tests/test_engine.py",
    ),
    Mutant(
        "swap: no random number",
        "toolkit/swapping.py",
        "select(threshold > 0.0, threshold, u)",
        "select(threshold > 0.0, threshold, 0.5)",
        "tests/test_tempering.py",
    ),
    Mutant(
        "swap: even pairs alone",
        "toolkit/swapping.py",
        "cold % 2 == (attempt // window) % 2",
        "cold % 2 == 0",
        "tests/test_tempering.py tests/test_exchange_laws.py",
    ),
    Mutant(
        "swap: window ignored",
        "toolkit/swapping.py",
        "(attempt // window) % 2",
        "attempt % 2",
        "tests/test_exchange_laws.py",
    ),
    Mutant(
        "swap: momenta keep their size",
        "toolkit/swapping.py",
        "heat = math.sqrt(hot_heat[c] / cold_heat[c])",
        "heat = 1.0",
        "tests/test_tempering.py",
    ),
    Mutant(
        "swap: momenta at their own time",
        "toolkit/swapping.py",
        "0.5 * math.sqrt(cold_size[c]), 0.5 * math.sqrt(hot_size[c])",
        "0.0 * math.sqrt(cold_size[c]), 0.0 * math.sqrt(hot_size[c])",
        "tests/test_tempering.py tests/test_equivalences.py",
    ),
    Mutant(
        "swap: gradients stay",
        "toolkit/swapping.py",
        "exchange(gradient[d, cold], gradient[d, hot], swapped)",
        "pass",
        "tests/test_tempering.py tests/test_engine.py",
    ),
    Mutant(
        "swap: both sets of pairs at once",
        "toolkit/swapping.py",
        "select((coin < 0.5) == (cold % 2 == 0), 1.0, 0.0)",
        "1.0",
        "tests/test_exchange_laws.py",
    ),
    Mutant(
        "round trips: any meeting counts",
        "toolkit/swapping.py",
        "int(cold[c] == 2)",
        "int(cold[c] > 0)",
        "tests/test_exchange_laws.py",
    ),
    Mutant(
        "round trips: hot end without the cold",
        "toolkit/swapping.py",
        "hot[c] = 2 if hot[c] == 1 else hot[c]",
        "hot[c] = 2",
        "tests/test_exchange_laws.py tests/test_trace.py",
    ),
    Mutant(
        "estimated correction: biased variance",
        "toolkit/swapping.py",
        "total * total / count) / (count - 1)",
        "total * total / count) / count",
        "tests/test_corrections.py",
    ),
    Mutant(
        "adapted correction: away from the target",
        "toolkit/swapping.py",
        "(swapped[c] - parameters[TARGET_RATE])",
        "(parameters[TARGET_RATE] - swapped[c])",
        "tests/test_corrections.py",
    ),
    Mutant(
        "boundary: clamped in place of reflected",
        "toolkit/boundaries.py",
        "position[d, lane] = fma(2.0, foot[d, lane], -position[d, lane])",
        "position[d, lane] = foot[d, lane]",
        "tests/test_boundaries.py",
    ),
    Mutant(
        "boundary: momentum not reflected",
        "toolkit/boundaries.py",
        "fma(-2.0 * along / squared, normal",
        "fma(-1.0 * along / squared, normal",
        "tests/test_boundaries.py tests/test_equivalences.py",
    ),
    Mutant(
        "boundary: momentum goes on after a rejection",
        "toolkit/boundaries.py",
        "outside[lane] != 0.0, -momentum[d, lane], momentum[d, lane]",
        "outside[lane] != 0.0, momentum[d, lane], momentum[d, lane]",
        "tests/test_boundaries.py tests/test_equivalences.py tests/test_product.py",
    ),
    Mutant(
        "penalty pushes outwards",
        "toolkit/boundaries.py",
        "pull = coefficient *",
        "pull = -coefficient *",
        "tests/test_boundaries.py tests/test_engine.py",
    ),
    Mutant(
        "underdamped: noise halved",
        "toolkit/underdamped.py",
        "fma(2.0 * friction, temperature[lane], -h * variance)",
        "fma(friction, temperature[lane], -h * variance)",
        "tests/test_underdamped.py",
    ),
    Mutant(
        "underdamped: noise estimate added",
        "toolkit/underdamped.py",
        "fma(2.0 * friction, temperature[lane], -h * variance)",
        "fma(2.0 * friction, temperature[lane], h * variance)",
        "tests/test_underdamped.py",
    ),
    Mutant(
        "underdamped: time step squared",
        "toolkit/underdamped.py",
        "position[d, lane] = fma(root[lane], momentum",
        "position[d, lane] = fma(root[lane] * root[lane], momentum",
        "tests/test_underdamped.py",
    ),
    Mutant(
        "thermostat: sign turned round",
        "toolkit/underdamped.py",
        "excess = (1.0 - 0.5 * square * thermostat[lane])",
        "excess = -(1.0 - 0.5 * square * thermostat[lane])",
        "tests/test_underdamped.py",
    ),
    Mutant(
        "thermostat: as printed",
        "toolkit/underdamped.py",
        "excess = (1.0 - 0.5 * square * thermostat[lane])",
        "excess = 1.0",
        "tests/test_underdamped.py",
    ),
    Mutant(
        "thermostat: dimensions not averaged",
        "toolkit/underdamped.py",
        "* total[lane] / dim - temperature[lane]",
        "* total[lane] - temperature[lane]",
        "tests/test_underdamped.py",
    ),
    Mutant(
        "thermostat: temperature forgotten",
        "toolkit/underdamped.py",
        "* total[lane] / dim - temperature[lane]",
        "* total[lane] / dim - 1.0",
        "tests/test_underdamped.py",
    ),
    Mutant(
        "preconditioner: Γ's sign",
        "toolkit/preconditioned.py",
        "gamma = -0.5",
        "gamma = 0.5",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "preconditioner: Γ as printed",
        "toolkit/preconditioned.py",
        "tangent[lane] *= decay *",
        "tangent[lane] *= 0.0 *",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "preconditioner: noise not preconditioned",
        "toolkit/preconditioned.py",
        "math.sqrt(2.0 * h * temperature[lane] * scale[lane])",
        "math.sqrt(2.0 * h * temperature[lane])",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "curvature: step length forgotten",
        "toolkit/evaluation.py",
        "/ (probe[d, lane] - position[d, lane])",
        "/ abs(probe[d, lane] - position[d, lane])",
        "tests/test_preconditioned.py",
    ),
    Mutant(
        "Metropolis: everything accepted",
        "toolkit/metropolis.py",
        "select(odds > u, 1.0, 0.0)",
        "select(odds > 0.0, 1.0, 0.0)",
        "tests/test_metropolis.py",
    ),
    Mutant(
        "Metropolis: temperature forgotten",
        "toolkit/metropolis.py",
        "/ select(cold, 1.0, temperature[lane])",
        "/ 1.0",
        "tests/test_metropolis.py",
    ),
    Mutant(
        "Metropolis: kinetic energy forgotten",
        "toolkit/metropolis.py",
        "kept[lane] = fma(0.5 * momentum[d, lane], momentum[d, lane], kept[lane])",
        "kept[lane] += 0.0",
        "tests/test_metropolis.py",
    ),
    Mutant(
        "MALA: step size taken for a length",
        "toolkit/metropolis.py",
        "math.sqrt(2.0 * step_size[lane]) if is_mala",
        "step_size[lane] if is_mala",
        "tests/test_metropolis.py tests/test_equivalences.py",
    ),
    Mutant(
        "contour: multiplier's sign",
        "toolkit/contour.py",
        "1.0 + zeta * temperature[lane]",
        "1.0 - zeta * temperature[lane]",
        "tests/test_contour.py tests/test_contour_laws.py",
    ),
    Mutant(
        "contour: temperature forgotten",
        "toolkit/contour.py",
        "zeta * temperature[lane] * rise / width",
        "zeta * rise / width",
        "tests/test_contour.py tests/test_contour_laws.py",
    ),
    Mutant(
        "contour: a bin unvisited keeps a tiny θ",
        "toolkit/contour.py",
        "state.table[c, 2 * j] = state.table[c, 2 * nearest]",
        "state.table[c, 2 * j] = 1e-6 * state.table[c, 2 * nearest]",
        "tests/test_contour.py tests/test_contour_laws.py",
    ),
    Mutant(
        "contour: the tail teaches the last bin",
        "toolkit/contour.py",
        "share[lane] = select(inside & learns, share[lane], 0.0)",
        "share[lane] = select(learns, share[lane], 0.0)",
        "tests/test_contour.py tests/test_contour_laws.py",
    ),
    Mutant(
        "contour: replicas learn P times too fast",
        "toolkit/contour.py",
        "omega = min(omega, parameters[OMEGA_CAP]) / n_replicas",
        "omega = min(omega, parameters[OMEGA_CAP])",
        "tests/test_contour.py tests/test_contour_laws.py",
    ),
    Mutant(
        "contour: field of 2022 with Ψ θ",
        "toolkit/contour.py",
        "else 1.0 - self.zeta",
        "else 1.0",
        "tests/test_contour.py tests/test_contour_laws.py",
    ),
    Mutant(
        "contour: weights without ζ",
        "toolkit/engine.py",
        "exp(tempering_parameters[ZETA] * log_weight[lane])",
        "exp(log_weight[lane])",
        "tests/test_contour_laws.py",
    ),
    Mutant(
        "contour: weights from the bin's upper edge",
        "toolkit/contour.py",
        "log_top - (bins[lane] + 1.0 - place[lane]) * rise",
        "log_top",
        "tests/test_contour.py tests/test_contour_laws.py",
    ),
    Mutant(
        "coupling: force's sign",
        "toolkit/continuous.py",
        "force[lane] = side * bias[here, lane]",
        "force[lane] = -side * bias[here, lane]",
        "tests/test_continuous_kernel.py",
    ),
    Mutant(
        "coupling: every draw counts",
        "toolkit/continuous.py",
        "select(abs(xi[lane]) <= plateau, 1.0, 0.0)",
        "1.0",
        "tests/test_continuous_kernel.py tests/test_tact_hmc.py",
    ),
    Mutant(
        "coupling: thermostat's sign",
        "toolkit/continuous.py",
        "rate * rate * heat / inertia",
        "-rate * rate * heat / inertia",
        "tests/test_continuous_kernel.py",
    ),
    Mutant(
        "coupling: gradient not scaled",
        "toolkit/tempers.py",
        "scale_gradients(state, rows[LAMBDA])",
        "pass",
        "tests/test_tact_hmc.py tests/test_product.py",
    ),
    Mutant(
        "coupling: ξ passes the wall",
        "toolkit/continuous.py",
        "momentum[lane] = select(inside, momentum[lane], -momentum[lane])",
        "momentum[lane] = 1.0 * momentum[lane]",
        "tests/test_continuous_kernel.py",
    ),
    Mutant(
        "Stein: bandwidth without the logarithm",
        "toolkit/stein.py",
        "log(n_replicas + 1.0)",
        "1.0",
        "tests/test_stein_kernel.py",
    ),
    Mutant(
        "cycles: the cut normal taken for a whole one",
        "toolkit/cycles.py",
        "+ np.log(chdtr(dim, limit))",
        "",
        "tests/test_cycles.py",
    ),
    Mutant(
        "ladder: acceptance taken for rejection",
        "toolkit/ladders.py",
        "1.0 - swaps / tries",
        "swaps / tries",
        "tests/test_ladders.py",
    ),
    Mutant(
        "stepping stones: sign",
        "toolkit/exchange_diagnostics.py",
        "logsumexp(-drop * energy",
        "logsumexp(drop * energy",
        "tests/test_ladders.py",
    ),
    Mutant(
        "resampling: not random",
        "toolkit/weighting.py",
        "* size + rng.random())",
        "* size + 0.5)",
        "tests/test_weighting.py",
    ),
    Mutant(
        "schedule: decay from the wrong step",
        "toolkit/schedules.py",
        "steps - start + 1",
        "steps - start + 2",
        "tests/test_schedules.py",
    ),
    Mutant(
        "minibatch: not scaled up to all data",
        "targets/regression.py",
        "parameters[NOISE_PRECISION] * n_data / parameters[N_DRAWN]",
        "parameters[NOISE_PRECISION]",
        "tests/test_regression.py",
    ),
    Mutant(
        "weights of draws one step late",
        "toolkit/engine.py",
        "        slot = slots[k]\n        if slot >= 0:\n            record(",
        "        slot = slots[max(k - 1, 0)]\n        if slot >= 0:\n            record(",
        "tests/test_sampling.py",
    ),
    Mutant(
        "correlated mixture: rows of L confused",
        "targets/correlated.py",
        "numbers[1 + dim + i * (i + 1) // 2 + j], white[j]",
        "numbers[1 + dim + j * (j + 1) // 2 + j], white[j]",
        "tests/test_mixtures.py -k gradient",
    ),
    Mutant(
        "draws: envelope below the density",
        "targets/window.py",
        "np.minimum(rise, 2.0) - energy",
        "0.0 * rise - 1.0 - energy",
        "tests/test_line.py tests/test_plane.py -k draws",
    ),
    Mutant(
        "energy quantiles off by a power",
        "targets/window.py",
        "np.cumsum(weights) - 0.5 * weights",
        "np.cumsum(weights) ** 1.01",
        "tests/test_line.py -k level",
    ),
    Mutant(
        "cosine9: pull beyond the circle",
        "targets/cosines.py",
        "pull = select(beyond, 2.6666666666666665",
        "pull = select(beyond, 2.4",
        "tests/test_catalogue.py -k cosine9",
    ),
    Mutant(
        "pinched: slope turned round",
        "targets/pinched.py",
        "-share * share * inverse * widening",
        "share * share * inverse * widening",
        "tests/test_curved.py -k formula",
    ),
    Mutant(
        "gaussian draws: root transposed",
        "targets/gaussian_truth.py",
        "normals @ self._root.T",
        "normals @ self._root",
        "tests/test_gaussians.py -k draws",
    ),
    Mutant(
        "student mixture: shares unweighted",
        "targets/students.py",
        "np.log(self.weights[k]) + power",
        "power",
        "tests/test_students.py -k draws",
    ),
    Mutant(
        "product energies: of two coordinates only",
        "targets/products.py",
        ") ** self.dim, BINS)",
        ") ** 2, BINS)",
        "tests/test_wells.py -k double_well",
    ),
    Mutant(
        "Müller–Brown: overflows far out",
        "targets/wells.py",
        "height * exp(exponent - beyond)",
        "height * exp(exponent)",
        "tests/test_wells.py -k tangent",
    ),
    Mutant(
        "shares of a sum off by two",
        "toolkit/maths.py",
        "scale = from_bits((exponent + np.uint64(1023)) << np.uint64(52))",
        "scale = from_bits((exponent + np.uint64(1022)) << np.uint64(52))",
        "tests/test_maths.py -k shares",
    ),
    Mutant(
        "logistic: minibatch not scaled up",
        "targets/logistic.py",
        "    scale = parameters[N_DATA] / parameters[N_DRAWN]",
        "    scale = 1.0",
        "tests/test_logistic.py",
    ),
    Mutant(
        "minibatch: one datum never drawn",
        "targets/minibatch.py",
        "math.floor(u * n_data), math.floor(v * n_data)",
        "math.floor(u * (n_data - 1)), math.floor(v * (n_data - 1))",
        "tests/test_posterior.py",
    ),
    Mutant(
        "logistic: product overflows",
        "targets/logistic.py",
        "if waiting > FACTORS - TILE or first + count == n_data:",
        "if first + count == n_data:",
        "tests/test_logistic.py -k formula",
    ),
    Mutant(
        "posterior: gradient at the anchor kept",
        "targets/per_datum.py",
        "gradient[d, lane] += scale * (slope[d] - slope_before[d])",
        "gradient[d, lane] += scale * slope[d]",
        "tests/test_posterior.py",
    ),
    Mutant(
        "logistic truth: all of the envelope's draws kept",
        "targets/logistic_truth.py",
        "points[np.log(rng.random(batch)) < log_keep]",
        "points[np.log(rng.random(batch)) < 0.0 * log_keep]",
        "tests/test_logistic.py",
    ),
    Mutant(
        "rows may overlap",
        "toolkit/lanes.py",
        'instruction.set_metadata("noalias", ',
        'instruction.set_metadata("other", ',
        "tests/test_pointwise.py -k vectorises",
    ),
    Mutant(
        "a user's math not replaced",
        "toolkit/rebinding.py",
        "return replacements()[id(value)]",
        "return value",
        "tests/test_pointwise.py -k vectorises",
    ),
    Mutant(
        "gradient check: no difference of orders",
        "toolkit/differences.py",
        "error = np.abs(sixth - fourth) + (noise + quantum) / np.abs(step) + floor",
        "error = (noise + quantum) / np.abs(step) + floor",
        "tests/test_gradient_check.py -k right_gradients",
    ),
    Mutant(
        "callables: overflown points shown",
        "toolkit/callables.py",
        "if finite.all():",
        "if True:",
        "tests/test_callables.py -k overflows",
    ),
    Mutant(
        "callables on the main thread",
        "toolkit/driver.py",
        "is_threaded = self._threads > 1 or job.calls_python",
        "is_threaded = self._threads > 1",
        "tests/test_callables.py -k one_thread",
    ),
    Mutant(
        "sympy: log of exponentials taken as written",
        "targets/lowering.py",
        "not e.args[0].is_Add",
        "e.args[0].is_Add",
        "tests/test_symbolic.py -k underflows",
    ),
    Mutant(
        "sympy: hoisted minus sign lost",
        "targets/lowering.py",
        "return sympy.Mul(-1, self.lower(-e))",
        "return self.lower(-e)",
        "tests/test_symbolic.py -k parameters_alone",
    ),
    Mutant(
        "sympy: at most taken as less",
        "targets/printing.py",
        '"at_most": "<="',
        '"at_most": "<"',
        "tests/test_symbolic.py -k kinks",
    ),
    Mutant(
        "log1p: lost bits forgotten",
        "toolkit/hyperbolic.py",
        "select(abs(lost) < 1.0, lost, 0.0)",
        "0.0 * lost",
        "tests/test_maths.py -k stated_error",
    ),
    Mutant(
        "tanh by the wrong ratio",
        "toolkit/hyperbolic.py",
        "abs(e) / (2.0 + e)",
        "abs(e) / (2.0 - e)",
        "tests/test_maths.py -k stated_error",
    ),
    Mutant(
        "walls: the last, not the worst",
        "toolkit/walls.py",
        "select(excess > worst, number, face)",
        "select(excess > 0.0, number, face)",
        "tests/test_domains.py",
    ),
    Mutant(
        "walls: a linear one clamps",
        "toolkit/walls.py",
        "fma(-excess, real[2 * sides + rows + n], position[axis, lane])",
        "fma(-0.5 * excess, real[2 * sides + rows + n], position[axis, lane])",
        "tests/test_domains.py -k sorts",
    ),
    Mutant(
        "walls: ball's foot at its excess",
        "toolkit/walls.py",
        "share = real[start + dim] / (real[start + dim] + excess)",
        "share = excess / (real[start + dim] + excess)",
        "tests/test_domains.py -k clamped",
    ),
    Mutant(
        "projection: all walls hold",
        "targets/projecting.py",
        "np.linalg.lstsq(holding, excess[multipliers > 0.0], rcond=None)",
        "np.linalg.lstsq(normals, excess, rcond=None)",
        "tests/test_domains.py -k nearest",
    ),
    Mutant(
        "window: narrow mode missed",
        "targets/panels.py",
        "high = (lowest > tip + 1.0)",
        "high = (lowest > tip + 1e9)",
        "tests/test_plane.py tests/test_line.py -k narrow",
    ),
    Mutant(
        "window: corners not looked at",
        "targets/panels.py",
        "seen = np.hstack([labels, at_corners.reshape(len(lows), -1)])",
        "seen = labels",
        "tests/test_plane.py -k slanted",
    ),
    Mutant(
        "strips not refined",
        "targets/strips.py",
        "off = np.abs(halves[0] + halves[1] - wholes).max(axis=1) > tolerance",
        "off = np.zeros(len(lows), np.bool_)",
        "tests/test_curved.py -k banana",
    ),
    Mutant(
        "pinched: short bulb missed",
        "targets/pinched.py",
        "for far in (-6.0, -2.0, 0.0, 2.0, 6.0)",
        "for far in ()",
        "tests/test_curved.py -k bulb",
    ),
    Mutant(
        "mixture energies: radius of another dimension",
        "targets/mixture_truth.py",
        "gammaincinv(0.5 * self.target.dim, shares)))",
        "gammaincinv(0.5 * (self.target.dim + 1), shares)))",
        "tests/test_mixtures.py -k energy_law",
    ),
    Mutant(
        "crossings: edges apart in x not compared",
        "targets/rings.py",
        "if max(ax, bx) < min(cx, dx):",
        "if max(ax, bx) < max(cx, dx):",
        "tests/test_shapes.py",
    ),
    Mutant(
        "pilot ends outside the domain",
        "toolkit/partitions.py",
        "np.where(problem.contains(ends)[:, None], ends, start)",
        "ends",
        "tests/test_boundaries.py -k pilot",
    ),
    Mutant(
        "interior: never looked for again",
        "targets/interiors.py",
        "while len(sizes) < 2 or sizes[-1] < 0.1 * sizes[-2]:",
        "while len(sizes) < 1:",
        "tests/test_domains.py -k origin",
    ),
    Mutant(
        "gradient check: rounding unseen",
        "toolkit/differences.py",
        "(noise + quantum) / np.abs(step)",
        "noise / np.abs(step)",
        "tests/test_gradient_check.py -k right_gradients",
    ),
    Mutant(
        "sympy: sum of one term",
        "targets/lowering.py",
        "sympy.Add.make_args(sympy.Add(*terms))",
        "sympy.Add(*terms).args",
        "tests/test_symbolic.py -k cancels",
    ),
    Mutant(
        "sympy: both slopes of a maximum",
        "targets/choosing.py",
        "first if argindex == 1 else 1 - first",
        "first",
        "tests/test_symbolic.py -k max_of_many",
    ),
    Mutant(
        "callables: no lock",
        "toolkit/callables.py",
        "with self._lock:\n            returned = self",
        "if True:\n            returned = self",
        "tests/test_callables.py -k one_thread",
    ),
    Mutant(
        "diagnostics: ESS: sequence not made to decrease",
        "toolkit/autocorrelations.py",
        "falling = np.minimum.accumulate(pairs[:end])",
        "falling = pairs[:end]",
        "tests/test_autocorrelations.py",
    ),
    Mutant(
        "diagnostics: weighted ESS: autocorrelation of the values, not of their weighted parts",
        "toolkit/autocorrelations.py",
        "correlation_time(parts, within, between)",
        "correlation_time(values, *chain_variances(values))",
        "tests/test_autocorrelations.py",
    ),
    Mutant(
        "diagnostics: R-hat: no folding",
        "toolkit/convergence.py",
        "for v in (values, folded)",
        "for v in (values, values)",
        "tests/test_autocorrelations.py",
    ),
    Mutant(
        "diagnostics: KL: bias of all draws, whatever they are worth",
        "toolkit/grid_kl.py",
        "return GridKL(kl, number, expected, scaled - expected)",
        "return GridKL(kl, number, expected, kl - expected_kl(masses, n, pseudo_count=pseudo_count))",
        "tests/test_grid_kl.py",
    ),
    Mutant(
        "diagnostics: MMD: a point's pair with itself counts",
        "toolkit/distances.py",
        "within = (within - [v_squares, w_squares])",
        "within = within",
        "tests/test_distances.py",
    ),
    Mutant(
        "diagnostics: KSD: trace of the kernel's second derivatives without its second half",
        "toolkit/stein_discrepancy.py",
        "(along - dim - 2.0 * (beta - 1.0) * square / base)",
        "(along - dim)",
        "tests/test_distances.py",
    ),
    Mutant(
        "diagnostics: modes: covered from the threshold on",
        "toolkit/mode_diagnostics.py",
        "covered = counts > threshold",
        "covered = counts >= threshold",
        "tests/test_mode_diagnostics.py",
    ),
    Mutant(
        "diagnostics: batch means: as if draws were independent",
        "toolkit/batches.py",
        "return shares, np.asarray((away**2).sum(axis=0) / total**2 * (len(sums) / (len(sums) - 1.0)))",
        "return shares, np.asarray(shares * (1.0 - shares) / total)",
        "tests/test_grid_kl.py tests/test_mode_diagnostics.py",
    ),
    Mutant(
        "diagnostics: theta: the power forgotten",
        "toolkit/energy_diagnostics.py",
        'power = tempering.zeta if tempering.field == "theta" else 1.0',
        "power = 1.0",
        "tests/test_energy_diagnostics.py",
    ),
    Mutant(
        "moments: weights forgotten in the plane",
        "toolkit/moments.py",
        "share = w / total",
        "share = 1.0 / n",
        "tests/test_accumulators.py -k moments",
    ),
    Mutant(
        "moments: spread between chains forgotten in what is pooled",
        "toolkit/moments.py",
        "covariance = covariances.mean(axis=0) + away.T @ away / chains",
        "covariance = covariances.mean(axis=0)",
        "tests/test_accumulators.py -k pooled",
    ),
    Mutant(
        "histogram: last cell open",
        "toolkit/grids.py",
        "value <= edges[last]",
        "value < edges[last]",
        "tests/test_accumulators.py -k numpys",
    ),
    Mutant(
        "histogram: cell by arithmetic alone",
        "toolkit/grids.py",
        "if edges[guess] <= value and value < edges[above]:",
        "if place < last:",
        "tests/test_accumulators.py -k numpys",
    ),
    Mutant(
        "histogram: a result that goes on changing",
        "toolkit/grids.py",
        'state["counts"].reshape(-1, *self.shape).copy()',
        'state["counts"].reshape(-1, *self.shape)',
        "tests/test_accumulators.py -k stays_as_it_was",
    ),
    Mutant(
        "kl: one step late",
        "toolkit/kl_so_far.py",
        "np.searchsorted(steps, self.at[i])",
        "np.searchsorted(steps, self.at[i] + 1)",
        "tests/test_accumulators.py -k kl_is_that",
    ),
    Mutant(
        "best_point: the last of equal ones",
        "toolkit/energies_so_far.py",
        "energies[c, t] < energy[c]",
        "energies[c, t] <= energy[c]",
        "tests/test_accumulators.py -k best_point",
    ),
    Mutant(
        "batch_means: half a batch lost in joining",
        "toolkit/batch_means.py",
        "loads[i] = loads[2 * i] + loads[2 * i + 1]",
        "loads[i] = loads[2 * i]",
        "tests/test_accumulators.py -k batch",
    ),
    Mutant(
        "accumulators: all steps kept though no draw is",
        "toolkit/sampling.py",
        "next(job.kept_pieces())[:0].copy()",
        "job.kept_steps()[:0]",
        "tests/test_accumulators.py -k memory",
    ),
    Mutant(
        "summary: weights forgotten",
        "toolkit/summary.py",
        "loads = np.ones(points.shape[:2]) if given is None else given",
        "loads = np.ones(points.shape[:2])",
        "tests/test_reporting.py -k weighted",
    ),
    Mutant(
        "advice: rare swaps pass",
        "toolkit/advice.py",
        "elif swaps < RARE * tries:",
        "elif swaps < 0.0:",
        "tests/test_reporting.py -k fires",
    ),
    Mutant(
        "checkpoint: no state before is kept",
        "toolkit/state_file.py",
        "if keeps_last and os.path.exists(paths.state):",
        "if not keeps_last:",
        "tests/test_checkpoint_files.py -k previous",
    ),
    Mutant(
        "checkpoint: a damaged state becomes the previous one",
        "toolkit/checkpoint.py",
        "self._keeps_last = False\n",
        "self._keeps_last = True\n",
        "tests/test_checkpoint_files.py -k never_takes_the_place",
    ),
    Mutant(
        "checkpoint: checksums are not looked at",
        "toolkit/records.py",
        "if file.read(DIGEST) != digest.digest():",
        "if len(file.read(DIGEST)) != DIGEST:",
        "tests/test_records.py",
    ),
    Mutant(
        "checkpoint: a torn end is written over and not cut off",
        "toolkit/journal.py",
        "        self.cut()\n        self._file.seek",
        "        self._file.seek",
        "tests/test_journal.py -k beyond",
    ),
    Mutant(
        "checkpoint: the dynamics' memory is left out",
        "toolkit/snapshots.py",
        '"position", "momentum", "memory", "bounces"',
        '"position", "momentum", "bounces"',
        "tests/test_checkpoint.py -k psgld",
    ),
    Mutant(
        "checkpoint: another seed is taken for the same run",
        "toolkit/comparing.py",
        '"seed": job.seed,',
        '"seed": 0,',
        "tests/test_checkpoint.py -k seed",
    ),
    Mutant(
        "checkpoint: cycles are extended as they are",
        "toolkit/comparing.py",
        "if not all(np.array_equal(a, b)",
        "if not any(np.array_equal(a, b)",
        "tests/test_checkpoint.py -k each_factor",
    ),
    Mutant(
        "checkpoint: two runs at a time",
        "toolkit/journal.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        "tests/test_journal.py -k holds",
    ),
    Mutant(
        "checkpoint: a chunk counts as taken when it is made",
        "toolkit/sampling.py",
        "            yield run\n            saved.after_chunk(driver, nothing)",
        "            saved.after_chunk(driver, nothing)\n            yield run",
        "tests/test_checkpoint.py -k chunks_taken",
    ),
    Mutant(
        "checkpoint: a chunk broken off is saved",
        "toolkit/checkpoint.py",
        "if self._journal is None or (not driver.is_whole and self._noted is None):",
        "if self._journal is None:",
        "tests/test_checkpoint.py -k broken_off",
    ),
    Mutant(
        "describing: closures forgotten",
        "toolkit/digests.py",
        "reads |= {key: cell.cell_contents for key, cell in cells if is_filled(cell)}",
        "reads |= {}",
        "tests/test_describing.py -k closures",
    ),
    Mutant(
        "describing: a difference within a list passes",
        "toolkit/description_differences.py",
        'yield from compare(f"{path}[{i}]", a, b, portable)',
        "yield from ()",
        "tests/test_describing.py -k words",
    ),
    Mutant(
        "saving: the checksum is not compared",
        "toolkit/saving.py",
        "if contents.checksum != checksum:",
        "if False:",
        "tests/test_saving.py -k edited",
    ),
    Mutant(
        "saving: the checksum is of the header alone",
        "toolkit/contents.py",
        "for part in pieces(array):",
        "for part in ():",
        "tests/test_saving.py -k edited",
    ),
    Mutant(
        "saving: other people's folders replaced",
        "toolkit/saving.py",
        'if suffix == ".zarr" and not (place / "run" / "checksum").is_dir():',
        "if False:",
        "tests/test_saving.py -k other_peoples",
    ),
    Mutant(
        "saving: a folder is removed before the new one is in place",
        "toolkit/saving.py",
        "            os.rename(aside / place.name, place)\n",
        "            pass\n",
        "tests/test_saving.py -k write_that_fails",
    ),
    Mutant(
        "loading: replicas and draws exchanged",
        "toolkit/formats.py",
        "values.reshape(len(values), values.shape[1] // replicas, replicas, *values.shape[2:])",
        "values.reshape(len(values), replicas, values.shape[1] // replicas, *values.shape[2:]).swapaxes(1, 2)",
        "tests/test_saving.py -k icsgld",
    ),
    Mutant(
        "zarr: chunks of −0 written as 0",
        "toolkit/formats.py",
        "write_empty_chunks=True",
        "write_empty_chunks=False",
        "tests/test_saving.py -k every_bit",
    ),
    Mutant(
        "datatree: draws of a weighted run not resampled",
        "toolkit/tree_groups.py",
        "taken = np.take_along_axis(run.draws, picked[:, :, None], axis=1)",
        "taken = run.draws",
        "tests/test_datatree.py -k resampled",
    ),
    Mutant(
        "datatree: every draw a swap",
        "toolkit/sample_statistics.py",
        "(swaps > before,",
        "(swaps >= before,",
        "tests/test_datatree.py -k statistics",
    ),
    Mutant(
        "hostile: nan alone is finite",
        "toolkit/checks.py",
        "if bad.any():",
        "if bad.ndim and bad.any():",
        "tests/test_found_inputs.py",
    ),
    Mutant(
        "hostile: bytes are sequences of numbers",
        "toolkit/checks.py",
        "and not isinstance(values, str | bytes | bytearray | memoryview)",
        "and not isinstance(values, str)",
        "tests/test_found_inputs.py",
    ),
    Mutant(
        "hostile: any truth is true",
        "toolkit/problem.py",
        '    if missing:\n        raise TypeError(f"truth must',
        '    if missing and truth:\n        raise TypeError(f"truth must',
        "tests/test_found_inputs.py",
    ),
    Mutant(
        "hostile: memory without an end",
        "toolkit/memory.py",
        "if n_bytes > available:",
        "if n_bytes > 2**80:",
        "tests/test_found_inputs.py",
    ),
    Mutant(
        "hostile: figures saved anywhere",
        "figures/output.py",
        "Path(name).name != name",
        "False",
        "tests/test_found_inputs.py",
    ),
    Mutant(
        "hostile: every schedule keeps all",
        "toolkit/footprint.py",
        "return most * float(np.mean(kept))",
        "return float(most)",
        "tests/test_footprint.py -k share",
    ),
    Mutant(
        "hostile: looks in step with a schedule",
        "toolkit/footprint.py",
        "np.arange(LOOKS) * GOLDEN % 1.0",
        "np.arange(LOOKS) / LOOKS",
        "tests/test_footprint.py -k share",
    ),
]


def run(mutant: Mutant) -> tuple[Mutant, str, float]:
    """'killed', 'LIVES' or 'does not apply', and the seconds it took."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "out", "*.egg-info"))
        path = copy / mutant.file
        source = path.read_text(encoding="utf-8")
        if source.count(mutant.old) != 1:
            return mutant, "does not apply", 0.0
        path.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "cache"), "PYTHONPATH": str(copy)}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            *mutant.tests.split(),
        ]
        try:
            result = subprocess.run(
                command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
            )
            verdict = {0: "LIVES", 1: "killed"}.get(result.returncode, f"pytest exits with {result.returncode}")
        except subprocess.TimeoutExpired:
            verdict = "killed"
    return mutant, verdict, time.perf_counter() - started


def main(wanted: list[str]) -> int:
    """Run the mutants, two at a time, and print what became of each."""
    chosen = [mutant for mutant in MUTANTS if not wanted or any(word in mutant.name for word in wanted)]
    tests = " ".join(sorted({name for mutant in chosen for name in mutant.tests.split() if "tests/" in name}))
    line = chosen[0].old if chosen else ""
    _, verdict, seconds = run(Mutant("no fault", chosen[0].file, line, line, tests)) if chosen else (None, "LIVES", 0.0)
    print(f"{verdict:15s} {seconds:5.0f} s  no fault at all, which must live")
    if verdict != "LIVES":
        return 1
    alive = 0
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for mutant, verdict, seconds in pool.map(run, chosen):
            alive += verdict != "killed"
            print(f"{verdict:15s} {seconds:5.0f} s  {mutant.name}  ({mutant.file})", flush=True)
    print(f"{len(chosen) - alive} of {len(chosen)} killed")
    return int(alive > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
