"""What data and kicks add to the energy of a solution over lanes, and the slopes of that in its states.

A datum is a state measured with normal or lognormal error; a kick is the like between the end of one segment of the
solution and the start of the next.
"""

from toolkit.compiling import kernel
from toolkit.maths import fma, log


@kernel
def measure(path, energy_squares, inverse, value, logarithmic):
    """Add the squared residual of one datum, in standard deviations."""
    if logarithmic:
        for lane in range(path.size):
            r = (log(path[lane]) - value) * inverse[lane]
            energy_squares[lane] = fma(r, r, energy_squares[lane])
    else:
        for lane in range(path.size):
            r = (path[lane] - value) * inverse[lane]
            energy_squares[lane] = fma(r, r, energy_squares[lane])


@kernel
def pull_datum(path, pull, inverse, value, logarithmic):
    """Add the slope of half that square in the state."""
    if logarithmic:
        for lane in range(path.size):
            r = (log(path[lane]) - value) * inverse[lane]
            pull[lane] += r * inverse[lane] / path[lane]
    else:
        for lane in range(path.size):
            r = (path[lane] - value) * inverse[lane]
            pull[lane] = fma(r, inverse[lane], pull[lane])


@kernel
def kick(end, start, energy, sd, logarithmic):
    """Add the energy of a kick from the end of one segment to the start of the next, but for constants."""
    if logarithmic:
        for lane in range(energy.size):
            begun = log(start[lane])
            r = (begun - log(end[lane])) / sd
            energy[lane] += fma(0.5 * r, r, begun)
    else:
        for lane in range(energy.size):
            r = (start[lane] - end[lane]) / sd
            energy[lane] = fma(0.5 * r, r, energy[lane])


@kernel
def pull_kick(end, start, pull, slope, sd, logarithmic):
    """Set ``pull`` to the slope of a kick's energy at the end, and add that at the start to ``slope``."""
    if logarithmic:
        for lane in range(pull.size):
            r = (log(start[lane]) - log(end[lane])) / (sd * sd)
            pull[lane] = -r / end[lane]
            slope[lane] += (r + 1.0) / start[lane]
    else:
        for lane in range(pull.size):
            r = (start[lane] - end[lane]) / (sd * sd)
            pull[lane] = -r
            slope[lane] += r
