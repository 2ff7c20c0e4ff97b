"""All targets of the zoo, with their usual numbers."""

from toolkit.problem import Target

from . import classics, datasets, mixtures, posteriors


def catalogue() -> tuple[Target, ...]:
    """One or more of every target, each with its truth; those with data use the Heart data.

    The papers' own first, then hard classics, then posteriors.
    """
    heart = datasets.heart()
    return (
        mixtures.cosine25(),
        mixtures.cosine9(),
        mixtures.gaussian_grid25(),
        mixtures.unequal_pair(),
        mixtures.three_on_a_line(),
        mixtures.five_spots(),
        mixtures.six_petals(),
        classics.ring(),
        classics.banana(),
        classics.banana(dim=8),
        classics.funnel(dim=2),
        classics.funnel(dim=10),
        classics.egg_box(),
        classics.double_well(),
        classics.double_well(dim=2),
        classics.double_well(dim=10),
        classics.muller_brown(),
        classics.himmelblau(),
        classics.pinched(),
        classics.correlated_gaussian(),
        classics.correlated_gaussian(dim=16),
        classics.badly_scaled_gaussian(),
        classics.student_mixture([[-4.0, 0.0], [4.0, 0.0]], 1.0, 3.0, [0.3, 0.7]),
        posteriors.linear_regression(
            heart.features, heart.labels, noise=0.5, prior=1.0, name=f"linear_regression, {heart.name}"
        ),
        posteriors.logistic_regression(heart.features, heart.labels, name=f"logistic_regression, {heart.name}"),
    )
