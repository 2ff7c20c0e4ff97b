"""Make the references of the default data sets: ``python -m targets.posteriors.make_references``, three minutes."""

import numpy as np

from .. import datasets
from ..arrays import Array
from .logistic import logistic_regression
from .logistic_truth import STORE, LogisticTruth, measure_reference, reference_key


def main() -> None:
    """Store the references of the default data sets, and print what they are worth."""
    arrays: dict[str, Array] = {}
    for load in (datasets.australian, datasets.german, datasets.heart, datasets.breast_cancer):
        data = load()
        truth = logistic_regression(data.features, data.labels).truth
        assert isinstance(truth, LogisticTruth)
        found = measure_reference(truth.target, *truth.mode_and_hessian)
        name = reference_key(truth.signed, truth.prior)
        arrays |= {f"{name}.{field}": np.asarray(value) for field, value in found._asdict().items()}
        print(
            f"{data.name}: log Z {found.log_normaliser:.4f} ± {found.log_normaliser_error:.4f}, "
            f"R-hat {found.r_hat:.5f}, ESS ≥ {found.ess:.0f}, acceptance {found.acceptance:.3f}, exact draws accepted "
            f"{np.exp(found.log_normaliser - found.log_bound):.2g}, largest error of a mean "
            f"{(found.mean_error / np.sqrt(np.diag(found.covariance))).max():.2g} deviations, of a probability "
            f"{found.energies_error.max():.2g}",
            flush=True,
        )
    np.savez_compressed(STORE, **arrays)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
