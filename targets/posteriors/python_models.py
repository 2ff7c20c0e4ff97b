"""Targets from models in PyTorch and JAX: flat weights in, energies and gradients out, without copies on the way."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toolkit import Spread, from_callable
from toolkit.errors import check_choice, check_count, check_scale, check_text, optional, shown
from toolkit.problem import Target

from ..arrays import Array, Integers
from .minibatch import check_batch

MOST_ROWS = 2**16  # of data, times points, that a model is given at a time


def from_torch(
    module: Any,
    loss: Callable[..., Any],
    data: Sequence[Any],
    *,
    prior: float | None = None,
    batch_size: int | None = None,
    device: str = "cpu",
    precision: str = "float64",
    name: str = "",
) -> Target:
    """Posterior of the parameters w of a PyTorch module: U(w) = Σ_i loss(module(x_i; w), y_i) + ‖w‖²/(2 prior²).

    module: a ``torch.nn.Module``; w (dim,) are its ``named_parameters()`` that require a gradient, one after another,
    each flattened. Others and its buffers are kept as they are now. data: (inputs, *labels), arrays or tensors whose
    first axis is the data; they are copied.
    loss: (outputs, *labels) → one loss for each datum, (data,), in nats, as ``cross_entropy(…, reduction="none")`` is.
    Computed for all lanes at once by ``torch.func.vmap``, so the module must allow that: no layer that draws random
    numbers or writes to its buffers, as dropout and batch normalisation do while training. device: where it is
    computed and where the data lie, as PyTorch names it ("cuda"); weights and gradients travel, the chains stay on the
    CPU. precision: of that computation, "float64" or "float32"; weights and gradients are float64 in any case.
    prior: standard deviation of N(0, prior² I); None: flat. batch_size: n ≥ 1; None: all data. Each replica draws n
    data anew at each step, with replacement; energy and gradient are N/n times their sum.
    Starts are uniform, in each of the module's tensors within ± its largest number now; or give as ``init`` the
    module's own, ``torch.nn.utils.parameters_to_vector(module.parameters()).detach()``.
    Needs the extra ``torch``. Raises TypeError or ValueError naming the argument, also where the module or the loss
    raises or returns another shape.
    """
    torch = optional("torch", "torch")
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {shown(module)} of type {type(module).__name__}")
    parts = [(key, part.shape, part.numel()) for key, part in module.named_parameters() if part.requires_grad]
    dim = check_count(
        "module's number of parameters that require a gradient", sum(size for _, _, size in parts), at_least=1
    )
    n_drawn, _ = check_batch(batch_size, None)
    place = torch_place(torch, device, precision)
    tensors = [place(tensor) for tensor in as_tensors(torch, data)]
    fixed = {key: part for key, part in module.named_parameters() if not part.requires_grad}
    fixed = {key: place(part.detach().clone()) for key, part in {**fixed, **dict(module.named_buffers())}.items()}
    sizes = [size for _, _, size in parts]

    def losses(weights: Any, *rows: Any) -> Any:
        named = {key: part.view(shape) for (key, shape, _), part in zip(parts, weights.split(sizes), strict=True)}
        return loss(torch.func.functional_call(module, {**named, **fixed}, (rows[0],)), *rows[1:])

    def total(weights: Any, *rows: Any) -> Any:
        return losses(weights, *rows).sum()

    of_lanes = torch.func.grad_and_value(total)
    on_all = torch.func.vmap(of_lanes, in_dims=(0, *(None,) * len(tensors)))
    on_batches = torch.func.vmap(of_lanes)

    def evaluate(points: Array, picks: Integers | None = None) -> tuple[Array, Array]:
        weights = place(torch.from_numpy(points))
        if picks is None:
            slopes, energies = on_all(weights, *tensors)
        else:
            index = torch.from_numpy(picks).to(device)
            slopes, energies = on_batches(weights, *(tensor[index] for tensor in tensors))
        return energies.to("cpu", torch.float64).numpy(), slopes.to("cpu", torch.float64).numpy()

    n_data = len(tensors[0])
    origin = place(torch.zeros((1, dim), dtype=torch.float64))
    per_lane = torch.func.vmap(losses, in_dims=(0, *(None,) * len(tensors)))

    def shape_at_origin() -> tuple[int, ...]:
        on_all(origin, *tensors)  # what cannot be differentiated raises here
        return tuple(per_lane(origin, *tensors).shape[1:])

    check_losses("loss", shape_at_origin, n_data)
    name = check_text("name", name) or f"{type(module).__name__}({n_data} data in {dim}-D)"
    largest = [float(p.detach().abs().max()) if p.numel() else 0.0 for p in module.parameters() if p.requires_grad]
    return replace(model_target(evaluate, dim, name, n_data, n_drawn, prior), spread=start_spread(largest, sizes))


def start_spread(largest: Sequence[float], sizes: Sequence[int]) -> Spread:
    """Starts within ± the largest number of each tensor; where that is 0, of the others the least, or 2."""
    least = min((value for value in largest if 0.0 < value < np.inf), default=2.0)
    return Spread(np.repeat([value if 0.0 < value < np.inf else least for value in largest], sizes))


def torch_place(torch: Any, device: Any, precision: Any) -> Callable[[Any], Any]:
    """What brings a tensor to ``device``, floats in ``precision``. Raises TypeError or ValueError."""
    check_text("device", device)
    kind = check_choice("precision", precision, ("float64", "float32"))
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(f"device must be one that PyTorch can use here, got {device!r}: {error}") from error
    real = getattr(torch, kind)

    def place(tensor: Any) -> Any:
        return tensor.to(device, real) if tensor.is_floating_point() else tensor.to(device)

    return place


def as_tensors(torch: Any, data: Any) -> list[Any]:
    """``data`` as tensors of as many rows, floats as float64. Raises TypeError or ValueError."""
    if not isinstance(data, list | tuple) or not data:
        raise TypeError(f"data must be (inputs, *labels), a tuple of arrays or tensors, got {shown(data)}")
    tensors = []
    for i, values in enumerate(data):
        try:
            tensors.append(as_double(torch.as_tensor(values).detach().clone()))
        except (TypeError, ValueError, RuntimeError) as error:
            raise TypeError(f"data[{i}] must be an array or a tensor, got {shown(values)}: {error}") from error
    check_rows([np.shape(tensor) for tensor in tensors])
    for i, tensor in enumerate(tensors):
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"data[{i}] must be finite, got nan or inf")
    return tensors


def as_double(tensor: Any) -> Any:
    """``tensor`` in float64 where it has floats."""
    return tensor.double() if tensor.is_floating_point() else tensor


def from_jax(
    function: Callable[..., Any],
    *,
    dim: int,
    data: Sequence[Any] | None = None,
    prior: float | None = None,
    batch_size: int | None = None,
    name: str = "",
) -> Target:
    """A target from a JAX function of one point x (dim,): its energy, in nats, or with data one loss for each datum.

    data: None, and U(x) = function(x) + ‖x‖²/(2 prior²), a scalar; or a tuple of arrays whose first axis is the data,
    and U(x) = Σ_i function(x, *data)_i + ‖x‖²/(2 prior²), where the function returns (data,). It is differentiated,
    compiled and run for all lanes at once by JAX, in float64 without a change of its global setting.
    prior: standard deviation of N(0, prior² I); None: flat. batch_size: n ≥ 1, with data; None: all data. Each replica
    draws n data anew at each step, with replacement; energy and gradient are N/n times their sum.
    JAX compiles once for each number of lanes, some seconds. Needs the extra ``jax``. Raises TypeError or ValueError
    naming the argument, also where the function raises or returns another shape.
    """
    jax = optional("jax", "jax")
    if not callable(function):
        raise TypeError(f"function must be a JAX function of a point, got {shown(function)}")
    dim = check_count("dim", dim, at_least=1)
    n_drawn, _ = check_batch(batch_size, None)
    if data is None and n_drawn:
        raise ValueError(f"batch_size needs data, got batch_size={n_drawn} and data=None")
    rows = JaxArrays(as_arrays(data))
    n_data = len(rows.arrays[0]) if rows.arrays else 0

    def total(x: Any, *batch: Any) -> Any:
        return function(x, *batch).sum() if n_data else function(x)

    with jax.enable_x64(True):
        of_lanes = jax.value_and_grad(total)
        shared = (None,) * len(rows.arrays)
        on_all = jax.jit(jax.vmap(of_lanes, in_axes=(0, *shared)))
        on_batches = jax.jit(
            jax.vmap(lambda x, pick, *all_rows: of_lanes(x, *(values[pick] for values in all_rows)), (0, 0, *shared))
        )

    def evaluate(points: Array, picks: Integers | None = None) -> tuple[Any, Any]:
        with jax.enable_x64(True):
            given = rows.in_jax()
            energies, slopes = on_all(points, *given) if picks is None else on_batches(points, picks, *given)
            return np.asarray(energies), np.asarray(slopes)

    def shape_at_origin() -> tuple[int, ...]:
        with jax.enable_x64(True):
            return tuple(np.shape(function(jax.numpy.zeros(dim), *rows.in_jax())))

    check_losses("function", shape_at_origin, n_data or None)
    own = getattr(function, "__name__", "jax")
    name = check_text("name", name) or (f"{own}({n_data} data in {dim}-D)" if n_data else own)
    return model_target(evaluate, dim, name, n_data, n_drawn, prior)


class JaxArrays:
    """NumPy's arrays, and JAX's of them in 64 bits, made in each process: JAX would read pickled ones in 32."""

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays
        self._made: list[Any] | None = None

    def __reduce__(self) -> Any:
        return JaxArrays, (self.arrays,)

    def in_jax(self) -> Any:
        """JAX's arrays."""
        if self._made is None:
            jax = optional("jax", "jax")
            with jax.enable_x64(True):
                self._made = [jax.numpy.asarray(array) for array in self.arrays]
        return self._made


def as_arrays(data: Any) -> list[Any]:
    """``data`` as arrays of as many rows, copied; none for None. Raises TypeError or ValueError."""
    if data is None:
        return []
    if not isinstance(data, list | tuple) or not data:
        raise TypeError(f"data must be None or a tuple of arrays, got {shown(data)}")
    rows = []
    for i, values in enumerate(data):
        array = np.array(values)
        if array.dtype.kind not in "iufb":
            raise TypeError(f"data[{i}] must be an array of real numbers, got {shown(values)}")
        if not np.isfinite(array).all():
            raise ValueError(f"data[{i}] must be finite, got nan or inf")
        rows.append(array)
    check_rows([row.shape for row in rows])
    return rows


def check_rows(shapes: list[Any]) -> None:
    """Raise ValueError where arrays of these shapes have not as many rows, or none."""
    lengths = [shape[0] if len(shape) else 0 for shape in shapes]
    if len(set(lengths)) > 1 or lengths[0] == 0:
        found = ", ".join(str(tuple(shape)) for shape in shapes)
        raise ValueError(f"data must have as many rows in every array, at least 1, got shapes {found}")


def check_losses(what: str, shape: Callable[[], Any], n_data: int | None) -> None:
    """Raise ValueError where a model does not give one loss for each of ``n_data``, or a scalar for None."""
    wanted = () if n_data is None else (n_data,)
    try:
        found = tuple(shape())
    except Exception as error:
        raise ValueError(f"{what} must be computable at the origin for all data, but it raises {error!r}") from error
    if found != wanted:
        kind = "a scalar energy" if n_data is None else f"one loss for each datum, shape {wanted}"
        raise ValueError(f"{what} must return {kind}, got shape {found}")


def model_target(
    evaluate: Callable[..., tuple[Any, Any]], dim: int, name: str, n_data: int, n_drawn: int, prior: float | None
) -> Target:
    """The target of a model's summed losses, scaled where they are of a minibatch, with a normal prior."""
    precision = 0.0 if prior is None else check_scale("prior", prior) ** -2

    def in_pieces(points: Array) -> tuple[Array, Array]:
        """All data at some points at a time, so that memory does not grow with points × data."""
        size = max(1, MOST_ROWS // max(1, n_data))
        pieces = [evaluate(points[first : first + size], None) for first in range(0, max(1, len(points)), size)]
        return np.concatenate([energies for energies, _ in pieces]), np.concatenate([slopes for _, slopes in pieces])

    def energy_gradient(points: Array, picks: Integers | None = None) -> tuple[Array, Array]:
        energies, slopes = in_pieces(points) if picks is None else evaluate(points, picks)
        scale = 1.0 if picks is None else n_data / n_drawn
        if scale == 1.0 and precision == 0.0:
            return energies, slopes
        return (
            scale * energies + 0.5 * precision * np.einsum("ij,ij->i", points, points),
            scale * slopes + precision * points,
        )

    sizes = (n_data, n_drawn) if n_drawn else (None, None)
    return from_callable(energy_gradient, dim=dim, name=name, n_data=sizes[0], batch_size=sizes[1])
