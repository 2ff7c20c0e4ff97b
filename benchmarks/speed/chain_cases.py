"""What the tables of speed run: samplers by name, ours, as a plain scalar loop, and as other packages have them."""

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.runner.rounds import processor_seconds
from targets import mixtures
from toolkit import ContourWarning, Layout, Sampler, boundaries, sample, samplers, tempering

from .scalar_loops import scalar_run

TARGETS = {"cosine25": mixtures.cosine25(), "gaussian_grid25": mixtures.gaussian_grid25()}
H = 1e-3
PARTITION = tempering.Partition(-4.0, 0.5, 32)
LADDER = {"step_sizes": (H,) * 5, "temperatures": (1.0, 2.0, 3.0, 4.0, 5.0)}
FREE = boundaries.ignore()
EVERY_SAMPLER: dict[str, Sampler] = {
    "sgld": samplers.sgld(H),
    "psgld": samplers.psgld(H, floor=1.0),
    "psgld, no Γ": samplers.psgld(H, floor=1.0, drift_correction=False),
    "sghmc": samplers.sghmc(H),
    "sgnht": samplers.sgnht(H),
    "sgnht by coordinate": samplers.sgnht(H, by_coordinate=True),
    "cyclical_sgld": samplers.cyclical_sgld(H),
    "cyclical_sghmc": samplers.cyclical_sghmc(H),
    "csgld": samplers.csgld(H, partition=PARTITION),
    "icsgld × 5": samplers.icsgld(H, partition=PARTITION),
    "icsghmc × 5": samplers.icsghmc(H, partition=PARTITION),
    "resgld × 2": samplers.resgld((H, 2 * H), temperatures=(1.0, 3.0)),
    "resgld × 5": samplers.resgld(**LADDER),
    "resgld × 5, seo": samplers.resgld(**LADDER, scheme="seo"),
    "resgld × 5, adjacent": samplers.resgld(**LADDER, scheme="adjacent"),
    "resgld × 5, all pairs": samplers.resgld(**LADDER, scheme="all_pairs"),
    "r2sgld without a domain": samplers.r2sgld(boundary=FREE),
    "r2sghmc without a domain": samplers.r2sghmc(boundary=FREE),
    "tact_hmc": samplers.tact_hmc(H),
    "mala": samplers.mala(H),
    "hmc, 10 leapfrogs": samplers.hmc(0.03, random_length=False),
    "pt_mala × 4": samplers.pt_mala((H,) * 4),
    "pt_hmc × 4": samplers.pt_hmc((0.03,) * 4),
    "pt_baoab × 4": samplers.pt_baoab((H,) * 4),
    **{f"svgd × {n}": samplers.svgd(n_replicas=n) for n in (10, 40, 160)},
}
VARIANTS = (  # which tests run, and no table
    "psgld, no Γ", "sgnht by coordinate", "resgld × 5, seo", "resgld × 5, adjacent", "resgld × 5, all pairs",
    "svgd × 40", "pt_mala × 4", "pt_hmc × 4", "pt_baoab × 4",
)  # fmt: skip
SAMPLERS = {name: sampler for name, sampler in EVERY_SAMPLER.items() if name not in VARIANTS}

BINS = {"u_min": PARTITION.u_min, "width": PARTITION.width, "bins": PARTITION.n_bins}
TWO = {"h": (H, 2 * H), "temperatures": (1.0, 3.0)}
FIVE = {"h": LADDER["step_sizes"], "temperatures": LADDER["temperatures"]}
DOMAINLESS = {"h": (5e-4, 1.5e-3), "temperatures": (1.0, 10.0)}


class PeerCase(NamedTuple):
    """A peer's case: the module of runs, the case, its numbers, and how many steps a run's must be a multiple of."""

    module: str
    case: str
    numbers: dict[str, Any]
    unit: int = 1

    def unit_of(self, n_chains: int) -> int:
        """What the steps of so many chains must be a multiple of: of many, JAX draws fewer at once."""
        return 4 if self.module == "jax_runs" and n_chains > 1000 else self.unit

    @property
    def package(self) -> str:
        """The package's name, as a table has it."""
        return {"jax_runs": "JAX by hand", "blackjax_runs": "BlackJAX", "tfp_runs": "TFP"}[self.module]


def by_hand(case: str, **numbers: Any) -> PeerCase:
    """The case in JAX by hand."""
    return PeerCase("jax_runs", case, numbers, 64)


def blackjax(case: str, unit: int = 1, **numbers: Any) -> PeerCase:
    """BlackJAX's."""
    return PeerCase("blackjax_runs", case, numbers, unit)


PEERS: dict[str, list[PeerCase]] = {
    "sgld": [by_hand("sgld", h=H), blackjax("sgld", h=H)],
    "cyclical_sgld": [by_hand("cyclical_sgld", h=H, cycles=30)],
    "sghmc": [by_hand("sghmc", h=H, friction=0.5), blackjax("sghmc", 64, h=H, friction=0.5)],
    "sgnht": [by_hand("sgnht", h=H, friction=0.05), blackjax("sgnht", h=H, friction=0.05)],
    "csgld": [by_hand("contour", h=H, replicas=1, rest=0.0, **BINS), blackjax("contour", h=H, **BINS)],
    "icsgld × 5": [by_hand("contour", h=H, replicas=5, rest=0.25, **BINS)],
    "resgld × 2": [by_hand("resgld", **TWO), PeerCase("tfp_runs", "resgld", TWO)],
    "resgld × 5": [by_hand("resgld", **FIVE)],
    "r2sgld without a domain": [by_hand("resgld", **DOMAINLESS)],
    "mala": [blackjax("mala", h=H)],
    "hmc, 10 leapfrogs": [blackjax("hmc", h=0.03, leapfrogs=10)],
    "svgd × 10": [blackjax("svgd", h=3e-3, replicas=10)],
}
SCALAR: dict[str, tuple[Any, ...]] = {
    "sgld": ("sgld", H),
    "cyclical_sgld": ("cyclical_sgld", H, 30),
    "sghmc": ("sghmc", H, 0.5),
    "sgnht": ("sgnht", H, 0.05),
    "csgld": ("contour", H, 1, *BINS.values()),
    "icsgld × 5": ("contour", H, 5, *BINS.values()),
    "resgld × 2": ("resgld", *TWO.values()),
    "resgld × 5": ("resgld", *FIVE.values()),
    "r2sgld without a domain": ("resgld", *DOMAINLESS.values()),
    "mala": ("hmc", math.sqrt(2.0 * H), 1),
    "hmc, 10 leapfrogs": ("hmc", 0.03, 10),
}


def our_seconds(
    target: str, sampler: Sampler, n_chains: int, n_steps: int, keeps: bool = False, layout: Layout | None = None
) -> float:
    """Processor time of one call of ``sample`` from the origin (particles: spread out), threads=1."""
    init = np.zeros(TARGETS[target].dim)
    if sampler.name == "svgd":
        init = np.random.default_rng(1).uniform(-2.0, 2.0, (n_chains, sampler.n_replicas, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContourWarning)
        return processor_seconds(
            lambda: sample(
                TARGETS[target], sampler, n_steps=n_steps, thin=1 if keeps else n_steps, n_chains=n_chains,
                init=init, seed=1, threads=1, layout=layout or Layout(fused=False),
            )
        )  # fmt: skip


def scalar_seconds(name: str, target: str) -> Callable[..., float] | None:
    """(chains, steps, keeps=False) → seconds of the plain scalar loop, where there is one."""
    if name not in SCALAR:
        return None
    loop, *numbers = SCALAR[name]
    return scalar_run(loop, target, *numbers)
