"""What all temperings share: no tempering, and the gradient scaled lane by lane."""

from .._compiler.decorators import inlined


def no_tempering(state, numbers, parameters, step, samples, changes):
    """No tempering."""


@inlined
def scale_gradients(state, factor):
    """Multiply gradient and curvature by ``factor`` (lane)."""
    for d in range(state.gradient.shape[0]):
        for lane in range(factor.size):
            state.gradient[d, lane] *= factor[lane]
    for d in range(state.curvature.shape[0]):
        for lane in range(factor.size):
            state.curvature[d, lane] *= factor[lane]
