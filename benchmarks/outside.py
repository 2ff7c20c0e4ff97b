"""Outside: chain-steps of r2SGLD with `reflect` that end outside the flower, of 10⁸; by the flower's own formula.

r ≤ 2 (sin 5φ + 3) / 3.5, which knows nothing of polygons; points within 10⁻⁵ of the curve, where polygon and curve
may differ, are looked at by the polygon's signed distance.
"""

import numpy as np

from targets import constrained, mixtures, shapes
from toolkit import samplers, stream

from .markdown import head, row


def main() -> None:
    """Print the table."""
    shape = shapes.flower()
    problem = constrained(mixtures.cosine25(), shape)
    sampler = samplers.r2sgld(gradient_noise=0.05, energy_noise=0.05)
    seen, outside, near, reflections, fallbacks = 0, 0, 0, 0, 0
    for chunk in stream(problem, sampler, n_steps=25_000, n_chains=2_000, seed=5, init=[0.0, 0.0], keep_replicas=True):
        points = chunk.replica_draws.reshape(-1, 2)
        gap = 2.0 * (np.sin(5.0 * np.arctan2(points[:, 1], points[:, 0])) + 3.0) / 3.5 - np.hypot(*points.T)
        close = np.abs(gap) < 1e-5
        outside += int((gap[~close] < 0).sum()) + int((shape.distance(points[close]) < 0).sum())
        seen, near = seen + len(points), near + int(close.sum())
        reflections, fallbacks = int(chunk.reflections.sum()), int(chunk.reflection_fallbacks.sum())
    head("chain-steps", "outside", "within 10⁻⁵ of the edge", "reflections", "fallbacks")
    row(f"{seen:,}", outside, f"{near:,}", f"{reflections:,}", fallbacks)
