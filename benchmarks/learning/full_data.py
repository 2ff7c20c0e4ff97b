"""Not run: thirteen ways to train a convolutional network on the papers' full data, with PyTorch on a GPU.

The methods, scores and bootstrap of figures/papers/csgmcmc/table1_digits.py, on a file of image data and the network of
ICSGLD (2022), D.1: two convolutions of 32 and 64 maps, each pooled by 2 × 2, and two layers of 50 units. Needs PyTorch,
an NVIDIA GPU, and a file .npz with x_train, y_train, x_test and y_test, images (n, height, width) or (n, height, width,
channels) of 0 to 255, as MNIST and CIFAR-10 are often distributed. What was seen: the same commands on the CPU with
`--rows 500 --budget 80 --repeats 2`, which show that it works and nothing else. No number of it is published.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.runner.tables import Table
from figures import Study
from figures.arrays import Array, Integers
from figures.papers.csgmcmc import digits
from figures.papers.csgmcmc.digits import BATCH, METHODS, PRIOR, Model, Split
from figures.papers.csgmcmc.table1_digits import row_of, scored
from targets import posteriors
from toolkit import Target
from toolkit.errors import optional

MAPS, UNITS, KERNEL = (32, 64), 50, 3
AT_A_TIME = 2_000  # images whose classes are predicted at a time


def images(path: Path, rows: int | None) -> Split:
    """The file's images (n, channel, height, width) from 0 to 1, and their classes; at most ``rows`` to train on."""

    def pixels(values: Any) -> Array:
        values = np.asarray(values[:, :, :, None] if values.ndim == 3 else values, np.float64)
        return np.ascontiguousarray(values.transpose(0, 3, 1, 2)) / 255.0

    def labels(values: Any) -> Integers:
        return np.asarray(values, np.int64).ravel()

    with np.load(path, allow_pickle=False) as file:
        missing = {"x_train", "y_train", "x_test", "y_test"} - set(file.files)
        if missing:
            raise ValueError(f"{path} must have x_train, y_train, x_test and y_test; it lacks {sorted(missing)}")
        return Split(
            pixels(file["x_train"][:rows]), labels(file["y_train"][:rows]),
            pixels(file["x_test"][:rows]), labels(file["y_test"][:rows]),
        )  # fmt: skip


def convolutional(device: str, precision: str) -> Model:
    """The network in PyTorch; weights of the layers one after another, as ``posteriors.from_torch`` has them."""
    torch = optional("torch", "torch")
    nn = torch.nn

    def module(shape: tuple[int, ...], n_classes: int) -> Any:
        channels, height, width = shape
        inner = MAPS[1] * (height // 4) * (width // 4)
        return nn.Sequential(
            nn.Conv2d(channels, MAPS[0], KERNEL, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(MAPS[0], MAPS[1], KERNEL, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(inner, UNITS), nn.ReLU(), nn.Linear(UNITS, UNITS), nn.ReLU(), nn.Linear(UNITS, n_classes),
        )  # fmt: skip

    def loss(outputs: Any, labels: Any) -> Any:
        return nn.functional.cross_entropy(outputs, labels, reduction="none")

    def target(part: Split) -> Target:
        net = module(part.features.shape[1:], int(part.labels.max()) + 1)
        return posteriors.from_torch(
            net, loss, (part.features, part.labels), prior=PRIOR, batch_size=BATCH, device=device, precision=precision
        )

    def predict(target: Target, positions: Array, asked: Array) -> Array:
        real = getattr(torch, precision)
        less, more = (sum(p.numel() for p in module(asked.shape[1:], n).parameters()) for n in (1, 2))
        net = module(asked.shape[1:], 1 + (target.dim - less) // (more - less)).to(device, real)
        said = []
        with torch.no_grad():
            rows = torch.from_numpy(asked).to(device, real)
            for weights in positions.reshape(-1, target.dim):
                nn.utils.vector_to_parameters(torch.from_numpy(weights).to(device, real), net.parameters())
                pieces = [net(piece).softmax(dim=1) for piece in rows.split(AT_A_TIME)]
                said.append(torch.cat(pieces).to("cpu", torch.float64).numpy())
        return np.array(said).reshape(*positions.shape[:-1], len(asked), -1)

    return Model(target, predict)


def main(arguments: list[str]) -> None:
    """Choose the steps, measure all methods, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks learning full_data", description=__doc__)
    parser.add_argument("data", type=Path, help="a file .npz")
    parser.add_argument("--device", default="cuda", help="as PyTorch names it")
    parser.add_argument("--precision", default="float32", choices=["float32", "float64"])
    parser.add_argument("--budget", type=int, default=40_000, help="gradients of each method and repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, help="the first rows alone, to train on and to ask")
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--out", type=Path, help="a folder for the table")
    given = parser.parse_args(arguments)
    model, part, study = (
        convolutional(given.device, given.precision),
        images(given.data, given.rows),
        Study(seed=given.seed),
    )
    name = given.data.stem
    steps = digits.best_steps(study, name, part, given.budget, model)
    scores, notes = digits.measure_scores(study, name, part, steps, given.budget, given.repeats, model)
    data = {"budget": given.budget, **scored(name, steps, scores, notes, 1_000, given.seed)}
    rows = [row_of(data, name, i, method) for i, method in enumerate(METHODS)]
    table = Table(given.out, "full_data", *rows[0])
    for row in rows:
        table.row(*row.values())
