"""The constructor with continuous tempering, TACT-HMC, and its two ablations."""

from .. import dynamics as moves
from .. import tempering as temper
from ..boundaries.rules import Boundary, ignore
from ..errors import check_deviation, check_flag
from ..problem.call_text import recorded
from ..schedules import Schedule, constant
from .sampler import Number, Sampler, shared


@recorded("samplers")
def tact_hmc(
    step_size: Number = 1.5e-3,
    *,
    top_temperature: float = 6.0,
    friction: float = 0.05,
    inertia: float = 1.0,
    bias: str = "abf",
    resample_every: int = 50,
    thermostat: bool = True,
    tempers: bool = True,
    temperature: Number = 1.0,
    schedule: Schedule = constant(),
    boundary: Boundary = ignore(),
    gradient_noise: float = 0.0,
    energy_noise: float = 0.0,
) -> Sampler:
    """Thermostat-assisted continuously tempered HMC: Nosé–Hoover × continuous tempering.

    step_size, friction and inertia serve position and ξ alike (η, c, γ); give ``tempering.continuous_tempering`` to
    ``Sampler`` to set them apart. A draw counts where ``run.weights`` is 1, which is where λ = 1.
    The force on ξ is λ'(ξ) U, so that ξ diverges at steps which the position would bear: on ``cosine25`` and on a
    Gaussian in 8 dimensions at step_size h = 0.02, which with 0.01 for ξ is well. Small steps make it slow: at the
    defaults ξ comes back to λ = 1 once in 2.5/√h steps (measured for h = 1e-4 to 1e-2).
    thermostat=False and tempers=False are the paper's two ablations: friction c that does not adapt, for position
    and ξ; and Nosé–Hoover dynamics alone, which look at no energy and ignore energy_noise. Law, bias and
    numbers: ``dynamics.nose_hoover``, ``tempering.continuous_tempering``.
    Source: TACT-HMC (2018), algorithm 1; its η, c, γ and K for the synthetic targets are not printed, and the defaults
    are those of its networks, the step size that of the EMNIST one.
    """
    # What an ablation leaves out is made too, and so checked; ξ's limit of friction is for ξ alone.
    adaptive = moves.nose_hoover(friction=friction, inertia=inertia)
    frictional = moves.underdamped_langevin(friction=friction)
    tempering = temper.continuous_tempering(
        top_temperature=top_temperature,
        friction=friction if check_flag("tempers", tempers) else 0.0,
        inertia=inertia,
        bias=bias,
        thermostat=thermostat,
        resample_every=resample_every,
    )
    check_deviation("energy_noise", energy_noise)
    return Sampler(
        "tact_hmc",
        shared("step_size", step_size),
        shared("temperature", temperature),
        dynamics=adaptive if thermostat else frictional,
        schedule=schedule,
        tempering=tempering if tempers else None,
        boundary=boundary,
        gradient_noise=gradient_noise,
        energy_noise=energy_noise if tempers else 0.0,
    )
