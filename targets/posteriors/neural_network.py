"""Posterior of the weights of a fully connected network, each lane by itself, with the products of matrices in BLAS.

The weights of a layer from n to m units lie in a position as n · m numbers, row by row, then m biases; layer by layer.
Data are taken in tiles of ``TILE`` rows, and a product of more than ``BLAS_THREADS_FROM`` multiplications is divided
along the inner units: OpenBLAS gives smaller ones to one thread, so that bits do not depend on its number of threads,
and the engine's own threads do not wait for each other (24 rows by 100 by 100: 31 GFlop/s on one core, and on two
cores at once; 512 rows: 36 by one thread, 1.1 by two callers with two threads each).
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit._compiler import COUNTER_ROWS, MODE, WideCompiler, kernel, njit_unwrapped
from toolkit.errors import (
    check_array,
    check_choice,
    check_count,
    check_flag,
    check_instance,
    check_real_array,
    check_scale,
    check_text,
    entries,
    shown,
)
from toolkit.maths.elementary import exp, fma, log, select
from toolkit.maths.philox import MAX_DIM
from toolkit.problem import Spread, Target, draw_pair

from ..arrays import Array
from .minibatch import CONSTANT, N_DATA, N_DRAWN, N_SHARED, PRIOR_PRECISION, check_batch, shared_numbers

CATEGORICAL, BERNOULLI, NORMAL = range(3)
LIKELIHOODS = ("categorical", "bernoulli", "normal")
RELU, TANH = range(2)
ACTIVATIONS = ("relu", "tanh")
# The numbers behind those of every posterior; then the units of every layer, the features and the labels, row by row.
LIKELIHOOD, ACTIVATION, NOISE_PRECISION, LABEL_COLUMNS, N_LAYERS, UNITS = range(N_SHARED, N_SHARED + 6)

TILE = 24  # rows of data at a time
BLAS_THREADS_FROM = 2**18  # multiplications in a product, from which OpenBLAS uses several threads
LARGEST_LABEL = 1e150
UNSEEN = 1.7e308  # in the place of a label that was not observed
GROUP = 8  # lanes whose weights are copied at a time


class Room(NamedTuple):
    """Arrays of a tile: every layer's inputs, the present layer's outputs or slopes, another such, and a product."""

    values: Any
    outputs: Any
    other: Any
    product: Any


# np.dot is compiled with reference counts on arrays alone, as are functions that create arrays.
allocating = njit_unwrapped(WideCompiler, error_model="numpy", _nrt=True)


def network_block(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """Energy and gradient of ``network``: from all data, or where the engine asks for it from a minibatch."""
    evaluate_network(position, energy, gradient, parameters, scratch, np.float64)


def network_block_in_singles(position: Any, energy: Any, gradient: Any, parameters: Any, scratch: Any) -> None:
    """The same with products of float32."""
    evaluate_network(position, energy, gradient, parameters, scratch, np.float32)


@allocating
def evaluate_network(position, energy, gradient, parameters, scratch, real):
    """Energy and gradient of every lane; real: the numbers in products."""
    dim, lanes = position.shape
    n_data, n_drawn, n_layers = int(parameters[N_DATA]), int(parameters[N_DRAWN]), int(parameters[N_LAYERS])
    units = parameters[UNITS : UNITS + n_layers + 1]
    n_in, n_labels = int(units[0]), int(parameters[LABEL_COLUMNS])
    first = UNITS + n_layers + 1
    features = parameters[first : first + n_data * n_in].reshape(n_data, n_in)
    first += n_data * n_in
    labels = parameters[first : first + n_data * n_labels].reshape(n_data, n_labels)

    draws = n_drawn > 0 and scratch[MODE, 0] != 0.0
    n_rows = n_drawn if draws else n_data
    picks = np.empty((n_rows + n_rows % 2 if draws else 0, lanes))
    if draws:
        for pair in range(picks.shape[0] // 2):
            draw_pair(picks[2 * pair : 2 * pair + 2], scratch, pair, n_data)

    most, total = 0, 0
    for unit in units:
        most, total = max(most, int(unit)), total + int(unit)
    weights, slopes = np.empty((min(lanes, GROUP), dim), real), np.empty((min(lanes, GROUP), dim), real)
    room = Room(
        np.empty(TILE * total, real), np.empty(TILE * most, real), np.empty(TILE * most, real),
        np.empty(max(TILE * most, largest(units)), real),
    )  # fmt: skip
    wanted = np.empty((TILE, n_labels))
    activation = int(parameters[ACTIVATION])
    scale, precision = n_data / n_rows, parameters[PRIOR_PRECISION]
    for first_lane in range(0, lanes, GROUP):
        count = min(GROUP, lanes - first_lane)
        copy_lanes(position, first_lane, count, weights)
        for g in range(count):
            lane, slope = first_lane + g, slopes[g]
            for d in range(dim):
                slope[d] = 0.0
            loss = 0.0
            for first_row in range(0, n_rows, TILE):
                rows = min(TILE, n_rows - first_row)
                for row in range(rows):
                    datum = int(picks[first_row + row, lane]) if draws else first_row + row
                    set_row(room.values, n_in, int(units[1]), row, rows, features[datum])
                    copy(wanted[row], labels[datum])
                run_forward(weights[g], units, room, rows, activation)
                loss += set_losses(room.outputs, wanted, rows, int(units[n_layers]), parameters)
                run_backward(weights[g], units, room, rows, activation, slope)
            energy[lane] = parameters[CONSTANT] + scale * loss
        set_gradients(position, energy, gradient, first_lane, count, slopes, scale, precision)


@kernel
def copy_lanes(position, first_lane, count, weights):
    """weights (group, dim) ← the positions of ``count`` lanes, some rows at a time, so that all stay in the cache."""
    dim = position.shape[0]
    for first in range(0, dim, 64):
        for g in range(count):
            for d in range(first, min(first + 64, dim)):
                weights[g, d] = position[d, first_lane + g]


@kernel
def set_gradients(position, energy, gradient, first_lane, count, slopes, scale, precision):
    """The gradient of ``count`` lanes ← scale · slopes (group, dim), and the prior's; its energy is added."""
    dim = gradient.shape[0]
    for first in range(0, dim, 64):
        for g in range(count):
            lane, square = first_lane + g, 0.0
            for d in range(first, min(first + 64, dim)):
                x = position[d, lane]
                gradient[d, lane] = fma(precision, x, scale * slopes[g, d])
                square = fma(x, x, square)
            energy[lane] += 0.5 * precision * square


# Products. The values before a layer of n units lie in blocks of ``chunk`` units, each (rows, chunk), row by row.


@kernel
def chunk_of(n_in, n_out):
    """Inner units of a product, all or a part, as equal as can be, so that BLAS uses one thread."""
    most = max(1, BLAS_THREADS_FROM // (TILE * n_out))
    pieces = (n_in + most - 1) // most
    return (n_in + pieces - 1) // pieces


@kernel
def largest(units):
    """The numbers of the largest piece of a layer's weights."""
    most = 0
    for i in range(units.size - 1):
        n_in, n_out = int(units[i]), int(units[i + 1])
        most = max(most, chunk_of(n_in, n_out) * n_out)
    return most


@kernel
def set_row(values, n_in, n_out, row, rows, source):
    """Write one row into the blocks of the first layer's values."""
    chunk = chunk_of(n_in, n_out)
    for first in range(0, n_in, chunk):
        count = min(chunk, n_in - first)
        at = rows * first + row * count
        copy(values[at : at + count], source[first : first + count])


@kernel
def copy(target, source):
    """target ← source."""
    for i in range(target.size):
        target[i] = source[i]


@allocating
def run_forward(weights, units, room, rows, activation):
    """All layers: the room's values ← those of every layer's inputs, its outputs ← those of the last layer."""
    values, out, product = room.values, room.outputs, room.product
    start, first_weight, n_layers = 0, 0, units.size - 1
    for layer in range(n_layers):
        n_in, n_out = int(units[layer]), int(units[layer + 1])
        last_weight = first_weight + n_in * n_out
        bias = weights[last_weight : last_weight + n_out]
        sums = out[: rows * n_out].reshape(rows, n_out)
        set_products(weights[first_weight:last_weight], values, start, sums, product, n_in)
        first_weight = last_weight + n_out
        start += TILE * n_in
        if layer == n_layers - 1:
            for row in range(rows):
                add(sums[row], bias)
            return
        chunk = chunk_of(n_out, int(units[layer + 2]))
        for row in range(rows):
            for first in range(0, n_out, chunk):
                count = min(chunk, n_out - first)
                at = start + rows * first + row * count
                last = first + count
                activate(values[at : at + count], sums[row, first:last], bias[first:last], activation)


@kernel
def add(total, values):
    """total += values."""
    for i in range(total.size):
        total[i] += values[i]


@kernel
def activate(out, sums, bias, activation):
    """out ← activation(sums + bias)."""
    if activation == RELU:
        for j in range(out.size):
            value = sums[j] + bias[j]
            out[j] = select(value > 0.0, value, 0.0)
    else:
        for j in range(out.size):
            out[j] = tanh(sums[j] + bias[j])


@kernel
def multiply_slopes(out, slopes, values, activation):
    """out ← slopes · activation′, by the ``values`` of the activation."""
    if activation == RELU:
        for j in range(out.size):
            out[j] = select(values[j] > 0.0, slopes[j], 0.0)
    else:
        for j in range(out.size):
            out[j] = slopes[j] * (1.0 - values[j] * values[j])


@allocating
def set_products(weights, values, start, sums, product, n_in):
    """sums (rows, out) ← values · weights (n_in, out)."""
    rows, n_out = sums.shape
    chunk = chunk_of(n_in, n_out)
    result = product[: rows * n_out].reshape(rows, n_out)
    for first in range(0, n_in, chunk):
        count = min(chunk, n_in - first)
        block = values[start + rows * first : start + rows * (first + count)].reshape(rows, count)
        piece = weights[first * n_out : (first + count) * n_out].reshape(count, n_out)
        if first == 0:
            np.dot(block, piece, sums)
        else:
            np.dot(block, piece, result)
            for row in range(rows):
                add(sums[row], result[row])


@allocating
def run_backward(weights, units, room, rows, activation, slope):
    """slope (dim,) += the gradient of this tile's losses, of which the room's outputs hold that by the outputs."""
    values, delta, other, product = room.values, room.outputs, room.other, room.product
    n_layers, start, end = units.size - 1, 0, 0
    for layer in range(n_layers):
        start += TILE * int(units[layer])
        end += (int(units[layer]) + 1) * int(units[layer + 1])
    for layer in range(n_layers - 1, -1, -1):
        n_in, n_out = int(units[layer]), int(units[layer + 1])
        start -= TILE * n_in
        end -= (n_in + 1) * n_out
        down, up = delta[: rows * n_out].reshape(rows, n_out), other[: rows * n_in].reshape(rows, n_in)
        chunk = chunk_of(n_in, n_out)
        for first in range(0, n_in, chunk):
            count = min(chunk, n_in - first)
            block = values[start + rows * first : start + rows * (first + count)].reshape(rows, count)
            begin, size = end + first * n_out, count * n_out
            np.dot(block.T, down, product[:size].reshape(count, n_out))
            add(slope[begin : begin + size], product[:size])
            if layer > 0:
                result = product[: rows * count].reshape(rows, count)
                np.dot(down, weights[begin : begin + size].reshape(count, n_out).T, result)
                for row in range(rows):
                    multiply_slopes(up[row, first : first + count], result[row], block[row], activation)
        bias = slope[end + n_in * n_out : end + (n_in + 1) * n_out]
        for row in range(rows):
            add(bias, down[row])
        delta, other = other, delta


@kernel
def tanh(x):
    """Hyperbolic tangent; nothing overflows."""
    power = exp(-2.0 * abs(x))
    value = (1.0 - power) / (1.0 + power)
    return select(x < 0.0, -value, value)


# Losses.


@kernel
def set_losses(out, wanted, rows, n_out, parameters):
    """The sum of −log p of the labels ``wanted``; out (rows, n_out) ← its derivative by the outputs."""
    likelihood, precision, total = int(parameters[LIKELIHOOD]), parameters[NOISE_PRECISION], 0.0
    for row in range(rows):
        outputs = out[row * n_out : (row + 1) * n_out]
        if likelihood == CATEGORICAL:
            total += categorical_loss(outputs, int(wanted[row, 0]))
        elif likelihood == BERNOULLI:
            for k in range(n_out):
                sign = 2.0 * wanted[row, k] - 1.0
                margin = sign * outputs[k]
                power = exp(-abs(margin))
                total += log(1.0 + power) - select(margin < 0.0, margin, 0.0)
                outputs[k] = -sign * select(margin < 0.0, 1.0, power) / (1.0 + power)
        else:
            for k in range(n_out):
                residual = select(wanted[row, k] != UNSEEN, outputs[k] - wanted[row, k], 0.0)
                total += 0.5 * precision * residual * residual
                outputs[k] = precision * residual
    return total


@kernel
def categorical_loss(outputs, label):
    """−log p of one label by its outputs, of which p are the softmax; outputs ← the derivative."""
    highest, total = -math.inf, 0.0
    for value in outputs:
        highest = max(highest, value)
    loss = highest - outputs[label]
    for k in range(outputs.size):
        outputs[k] = exp(outputs[k] - highest)
        total += outputs[k]
    for k in range(outputs.size):
        outputs[k] /= total
    outputs[label] -= 1.0
    return loss + log(total)


# The public face.

BLOCKS = {"float64": network_block, "float32": network_block_in_singles}


def network(
    features: Any,
    labels: Any,
    *,
    hidden: Sequence[int] = (100, 100),
    likelihood: str = "categorical",
    n_classes: int | None = None,
    noise: float = 1.0,
    activation: str = "relu",
    prior: float | None = 1.0,
    batch_size: int | None = None,
    precision: str = "float64",
    name: str = "",
    normalised: bool = True,
) -> Target:
    """Posterior of the weights w of a fully connected network f: U(w) = −Σ_i log p(y_i | f(x_i; w)) + ‖w‖²/(2 prior²).

    Parameters
    ----------
    features
        x, (data, inputs).
    labels
        y, as ``likelihood`` says.
    hidden
        Units of each hidden layer, none for a linear model.
    likelihood
        'categorical': y (data,), integers from 0 to n_classes − 1, p the softmax of outputs. 'bernoulli': y (data,) or
        (data, outputs), 0 or 1, each with P(1) = 1/(1 + e^−f). 'normal': y (data,) or (data, outputs), N(f, noise²)
        each; nan where it was not observed.
    n_classes
        Number of classes of 'categorical'; None: the largest label + 1.
    noise
        Standard deviation of 'normal'.
    activation
        'relu' or 'tanh', of hidden layers.
    prior
        Standard deviation of N(0, prior² I) on all weights and biases, 1/√(weight decay); None: a flat prior, under
        which there is no normalised posterior.
    batch_size
        n ≥ 1; None: all data. Each replica draws n data anew at each step, with replacement: energy and gradient are
        N/n times their sum, as in ``linear_regression``.
    precision
        'float32' multiplies matrices in 24 bits, 1.2 to 1.9 times as fast; gradients are off by some 10⁻⁶ of the
        largest, energies by 10⁻⁷ of themselves, too much for a Metropolis test with many data. All else stays in 53.
    name
        Of the target; "": one made from the sizes.
    normalised
        False leaves out the constant of 'normal', n log(noise √(2π)) for n observed numbers, as loss functions do;
        draws are the same. A minibatch has the constant of all data.

    Returns
    -------
    Target
        The posterior. exp(−U) integrates to the evidence p(y) times the prior's constant, (2π prior²)^(dim/2).

    Raises
    ------
    TypeError, ValueError
        Naming the argument where something is off.

    Notes
    -----
    A position holds the layers one after another, each its weights (inputs, outputs) row by row, then its biases;
    ``predict`` reads it. Starts are uniform within ±1/√(inputs of the layer), PyTorch's default for linear layers.

    It runs on the CPU, lane by lane, in BLAS; its bits are those of one BLAS library on one kind of processor.

    References
    ----------
    ICSGLD (2022), 5.3 and D.3: 22 inputs, two layers of 100, 'normal' with noise² = 1/2, prior 10.
    """
    table = check_array("features", features)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"features must have shape (data, inputs) and not be empty, got {table.shape}")
    layers = [
        check_count(f"hidden[{i}]", units, at_least=1, below=MAX_DIM)
        for i, units in enumerate(entries("hidden", hidden, "the units of each hidden layer"))
    ]
    kind = LIKELIHOODS.index(check_choice("likelihood", likelihood, LIKELIHOODS))
    marks, outputs = check_labels(labels, len(table), kind, n_classes)
    block = BLOCKS[check_choice("precision", precision, list(BLOCKS))]
    inverse_variance = check_scale("noise", noise) ** -2
    decay = 0.0 if prior is None else check_scale("prior", prior) ** -2
    n_drawn, _ = check_batch(batch_size, None)
    units = [table.shape[1], *layers, outputs]
    dim = sum((n_in + 1) * n_out for n_in, n_out in itertools.pairwise(units))
    if dim >= MAX_DIM:
        raise ValueError(
            f"hidden must give fewer than {MAX_DIM} weights in all, got {shown(hidden)}, which give {dim} with "
            f"{units[0]} inputs and the {outputs} outputs of these labels"
        )
    name = check_text("name", name) or f"network({len(table)} data, {'-'.join(map(str, units))})"
    constant = 0.0
    if check_flag("normalised", normalised) and kind == NORMAL:
        constant = float((marks != UNSEEN).sum() * (np.log(noise) + 0.5 * np.log(2.0 * np.pi)))
    numbers = [*shared_numbers(len(table), n_drawn, 0, decay, constant), kind,
               ACTIVATIONS.index(check_choice("activation", activation, ACTIVATIONS)), inverse_variance, marks.shape[1],
               len(units) - 1, *units]  # fmt: skip
    parameters = np.concatenate([np.array(numbers, np.float64), table.ravel(), marks.ravel()])
    return Target(
        name, dim, block, parameters, COUNTER_ROWS if n_drawn else 0, stochastic=n_drawn > 0,
        spread=start_spread(units), lane_by_lane=True,
    )  # fmt: skip


def check_labels(labels: Any, n_data: int, likelihood: int, n_classes: Any) -> tuple[Array, int]:
    """Labels (data, columns) as floats, and the number of outputs. Raises TypeError or ValueError naming labels."""
    marks = check_real_array("labels", labels)
    if marks.ndim not in (1, 2) or len(marks) != n_data or marks.size == 0:
        raise ValueError(f"labels must have one row for each of the {n_data} rows of features, got shape {marks.shape}")
    if likelihood != CATEGORICAL and n_classes is not None:
        raise ValueError(f"n_classes must be None for likelihood {LIKELIHOODS[likelihood]!r}, got {shown(n_classes)}")
    if likelihood == NORMAL:
        table = marks.reshape(n_data, -1)
        is_seen = ~np.isnan(table)
        if not is_seen.any() or not (np.abs(table[is_seen]) < LARGEST_LABEL).all():
            raise ValueError(
                f"labels must be finite and within ±{LARGEST_LABEL:g}, or nan where an output was not observed, and "
                "not all nan"
            )
        return np.where(is_seen, table, UNSEEN), table.shape[1]
    finite = check_array("labels", marks)
    if likelihood == BERNOULLI:
        if not np.isin(finite, (0.0, 1.0)).all():
            wrong = float(finite[~np.isin(finite, (0.0, 1.0))][0])
            raise ValueError(f"labels must be 0 or 1 for likelihood 'bernoulli', got {wrong:g}")
        table = finite.reshape(n_data, -1)
        return table, table.shape[1]
    if finite.ndim != 1:
        raise ValueError(
            f"labels must have shape (data,) = ({n_data},) for likelihood 'categorical', got {finite.shape}"
        )
    limit = 2 if n_classes is None else check_count("n_classes", n_classes, at_least=2, below=MAX_DIM)
    highest = float(finite.max())
    outputs = max(limit, int(highest) + 1) if n_classes is None and highest < MAX_DIM else limit
    if not ((finite >= 0.0) & (finite < outputs) & (finite == np.floor(finite))).all():
        wrong = finite[~((finite >= 0.0) & (finite < outputs) & (finite == np.floor(finite)))][0]
        raise ValueError(
            f"labels must be integers from 0 to {outputs - 1} for likelihood 'categorical', got {shown(float(wrong))}"
        )
    return finite[:, None], outputs


def start_spread(units: Sequence[int]) -> Spread:
    """The box in which weights start: within ±1/√(inputs of the layer)."""
    sizes = [(n_in + 1) * n_out for n_in, n_out in itertools.pairwise(units)]
    return Spread(np.repeat([n_in**-0.5 for n_in in units[:-1]], sizes))


def predict(target: Any, positions: Any, features: Any) -> Array:
    """What the networks at ``positions`` (…, dim) of ``target``, made by ``network``, predict.

    features: (data, inputs). Shape (…, data, outputs): probabilities of the classes for 'categorical', of 1 for
    'bernoulli', the mean for 'normal'. Their mean over draws, weighted where these have weights, is the posterior's.
    Raises TypeError or ValueError naming the argument where something is off.
    """
    from scipy.special import expit, softmax

    check_instance("target", target, Target)
    if getattr(target.energy_gradient, "__name__", "") not in {block.__name__ for block in BLOCKS.values()}:
        raise ValueError(
            f"target must be made by posteriors.network, got {target.name!r}; that of a loaded run is a name alone: "
            "give load the target, by problem="
        )
    numbers = target.parameters
    units = numbers[UNITS : UNITS + int(numbers[N_LAYERS]) + 1].astype(int)
    places, table = check_array("positions", positions, copies=False), check_array("features", features, copies=False)
    if places.ndim == 0 or places.shape[-1] != target.dim:
        raise ValueError(f"positions must have shape (…, {target.dim}), got {places.shape}")
    if table.ndim != 2 or table.shape[1] != units[0]:
        raise ValueError(f"features must have shape (data, {units[0]}), got {table.shape}")
    flat = places.reshape(-1, target.dim)
    predicted = np.empty((len(flat), len(table), units[-1]))
    for weights, found in zip(flat, predicted, strict=True):
        found[:] = outputs_of(weights, units, table, int(numbers[ACTIVATION]))
    if numbers[LIKELIHOOD] == CATEGORICAL:
        predicted = softmax(predicted, axis=-1)
    elif numbers[LIKELIHOOD] == BERNOULLI:
        predicted = expit(predicted)
    return predicted.reshape(*places.shape[:-1], *predicted.shape[1:])


def outputs_of(weights: Array, units: Any, features: Array, activation: int) -> Array:
    """Outputs (data, units[-1]) of the network with these weights (dim,)."""
    values, first = features, 0
    for layer, (n_in, n_out) in enumerate(itertools.pairwise(map(int, units))):
        last = first + n_in * n_out
        values = values @ weights[first:last].reshape(n_in, n_out) + weights[last : last + n_out]
        first = last + n_out
        if layer < len(units) - 2:
            values = np.maximum(values, 0.0) if activation == RELU else np.tanh(values)
    return values
