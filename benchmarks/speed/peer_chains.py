"""Peers' chains: whether their draws have the right law, and the fastest of those that have, ready to be timed."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import draw_law
from benchmarks.peers.host import Peer, PeerError, PeerRun
from benchmarks.runner.rounds import steps_for

from .chain_cases import PEERS, TARGETS, PeerCase

Array = NDArray[np.float64]
GENERATORS = ("threefry2x32", "rbg")  # of ``jax_runs``
BIAS = 0.06  # share of a moment that the step size may cost
SPACING = {"cosine25": 1.0, "gaussian_grid25": 2.0}  # of the modes
MOST_STEPS = 2**30
NOT_CHECKED = ("cyclical_sgld", "svgd")  # draws of steps that shrink, and points that are no draws


class Best(NamedTuple):
    """The fastest right peer of a row, and what was seen of all of them."""

    name: str
    timed: "Timed"
    seen: str
    remark: str


def statistics_of(target: str, points: Array) -> Array:
    """Squares, and squared distances to the nearest mode, of points (…, 2)."""
    space = SPACING[target]
    nearest = space * np.clip(np.round(points / space), -4.0 / space, 4.0 / space)
    return np.stack([(points**2).mean(-1), ((points - nearest) ** 2).mean(-1)], axis=-1)


@functools.cache
def exact_draws(target: str) -> Array:
    """Independent draws (n, 2) of the truth."""
    truth = TARGETS[target].truth
    assert truth is not None
    return np.asarray(truth.independent_draws(100_000, seed=7))


def deviation(target: str, points: Array, weights: Array) -> float:
    """``draw_law.deviation`` of points (look, chain, 2) with weights (look, chain); right below 1."""
    exact = statistics_of(target, exact_draws(target))
    return draw_law.deviation(statistics_of(target, points), weights, exact, BIAS)


class Timed(NamedTuple):
    """A run ready to be timed, and its steps."""

    run: PeerRun
    n_steps: int

    def seconds(self) -> float:
        """Processor seconds of one run more."""
        self.run.seconds()
        return self.run.processor_seconds

    @property
    def rate(self) -> float:
        """Steps per processor second of the last run."""
        return self.n_steps / self.run.processor_seconds


def sized(make: Callable[[int], PeerRun], seconds: float, unit: int) -> Timed:
    """A run of about ``seconds``, timed once; a multiple of ``unit`` steps."""
    made: dict[int, Timed] = {}

    def took(n_steps: int) -> float:
        made[n_steps] = Timed(make(n_steps), n_steps)  # which runs it once and may compile
        return made[n_steps].seconds()

    return made[steps_for(took, seconds, MOST_STEPS, unit, unit)]


class PeerChains:
    """The peers' processes on one core, begun when asked for; what fails is told in ``remarks`` and is out."""

    def __init__(self, core: int, seconds: float, is_small: bool) -> None:
        self._core, self._seconds, self._is_small = core, seconds, is_small
        self._processes: dict[str, Peer] = {}
        self._gone: dict[str, str] = {}
        self._laws: dict[tuple[str, str, str], float] = {}
        self._generators: dict[int, str] = {}

    def close(self) -> None:
        """End all of them."""
        for process in self._processes.values():
            process.close()

    def process(self, module: str) -> Peer:
        """The process that knows ``module``; one that has ended is begun once more."""
        if module not in self._processes:
            self._processes[module] = Peer(module, self._core)
        return self._processes[module]

    def make(self, peer: PeerCase, target: str, n_chains: int, n_steps: int, **more: Any) -> PeerRun:
        """The peer's run. Raises PeerError."""
        if peer.module in self._gone:
            raise PeerError(self._gone[peer.module])
        try:
            process = self.process(peer.module)
            return process.make(
                peer.case, target=target, n_chains=n_chains, n_steps=n_steps, **peer.numbers, **more
            )  # fmt: skip
        except PeerError as error:
            if "ended" in str(error) or "no peers" in str(error):
                self._gone[peer.module] = str(error)
            raise

    def generator(self, peer: PeerCase, n_chains: int) -> dict[str, str]:
        """The argument that JAX's cases take besides: the generator that is faster for SGLD on cosine25."""
        if peer.module != "jax_runs":
            return {}
        if n_chains not in self._generators:
            sgld, some = PEERS["sgld"][0], GENERATORS[: 1 if self._is_small else None]
            rates = {name: self._sized(sgld, "cosine25", n_chains, generator=name).rate for name in some}
            self._generators[n_chains] = max(rates, key=lambda name: rates[name])
        return {"generator": self._generators[n_chains]}

    def law(self, peer: PeerCase, target: str) -> float:
        """``deviation`` of its chains on cosine25, and, on another target, of its package's SGLD there if larger."""
        deviates = self._law(peer, "cosine25")
        if target != "cosine25":
            same = [one for one in PEERS["sgld"] if one.module == peer.module]
            deviates = max([deviates, *(self._law(one, target) for one in same)])
        return deviates

    def _law(self, peer: PeerCase, target: str) -> float:
        """``deviation`` of its chains, which begin at modes of exact draws and are looked at as they go on."""
        name = (peer.module, peer.case + str(peer.numbers), target)
        if peer.case in NOT_CHECKED:
            return 0.0
        if name not in self._laws:
            learns = peer.case == "contour"
            n_chains = 64 if self._is_small or learns else 1000
            looks = 2 if peer.case == "hmc" else 16
            replicas = len(peer.numbers["h"]) if peer.case == "resgld" else peer.numbers.get("replicas", 1)
            space = SPACING[target]
            starts = space * np.round(exact_draws(target)[: n_chains * replicas] / space)
            run = self.make(
                peer, target, n_chains, 1024 if learns else 128, starts=starts.tolist(), looks=looks,
                **self.generator(peer, n_chains),
            )  # fmt: skip
            points, weights = (np.array(one) for one in zip(*run.value, strict=True))
            late = slice(looks // 2, None)
            chains = points.reshape(looks, n_chains, -1, 2)[late].swapaxes(1, 2).reshape(-1, n_chains, 2)
            shares = weights.reshape(looks, n_chains, -1)[late].swapaxes(1, 2).reshape(-1, n_chains)
            self._laws[name] = deviation(target, chains, shares)
        return self._laws[name]

    def best(self, name: str, target: str, n_chains: int) -> Best | str:
        """The fastest right peer of sampler ``name``, or why there is none."""
        found: list[tuple[float, str, Timed]] = []
        seen, remarks = [], []
        for peer in candidates(name, target, n_chains):
            try:
                deviates = self.law(peer, target)
                timed = self._sized(peer, target, n_chains)
                rate = n_chains * replicas_of(peer) * timed.rate
            except PeerError as error:
                remarks.append(f"{peer.package}: {error}")
                continue
            seen.append(f"{peer.package} {rate / 1e6:.3g}")
            if deviates < 1.0:
                found.append((rate, peer.package, timed))
            else:
                remarks.append(f"{peer.package}: wrong draws, {deviates:.2g} of the allowed deviation; not compared")
        if not found:
            return "; ".join(remarks + seen) or "no peer has it"
        _, package, timed = max(found, key=lambda one: one[0])
        return Best(package, timed, ", ".join(seen), "; ".join(remarks))

    def _sized(self, peer: PeerCase, target: str, n_chains: int, **more: Any) -> Timed:
        """A run of about ``seconds``."""
        arguments = more or self.generator(peer, n_chains)
        return sized(
            lambda n_steps: self.make(peer, target, n_chains, n_steps, **arguments), self._seconds,
            peer.unit_of(n_chains),
        )  # fmt: skip


def candidates(name: str, target: str, n_chains: int) -> list[PeerCase]:
    """Who is timed; TFP, which compiles for long and is the slowest, on one target and two sizes only."""
    costly = target != "cosine25" or n_chains not in (64, 1000)
    too_many = name.startswith("svgd") and n_chains > 64
    return [] if too_many else [one for one in PEERS.get(name, []) if one.package != "TFP" or not costly]


def replicas_of(peer: PeerCase) -> int:
    """Replicas of a chain."""
    sizes = peer.numbers.get("h")
    return len(sizes) if isinstance(sizes, tuple) else int(peer.numbers.get("replicas", 1))
