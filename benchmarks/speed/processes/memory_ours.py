"""One process of ours, as ``memory`` runs it: ``python -P memory_ours.py case chains`` says its peak size in bytes."""

import sys
import warnings
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak() -> int:
    """The largest resident size that this process has had, in bytes.

    Not ``ru_maxrss`` where there is another, as Linux lets a process begin with the peak of the one that started it.
    """
    if STATUS.exists():
        lines = dict(line.split(":", 1) for line in STATUS.read_text(encoding="utf-8").splitlines())
        return 1024 * int(lines["VmHWM"].split()[0])
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else 1024 * largest


def run(case: str, chains: int) -> None:
    """What the case says."""
    import numpy as np

    from targets import constrained, mixtures, shapes
    from toolkit import accumulators, sample, samplers, stream, tempering

    cosine, last = mixtures.cosine25(), {"n_steps": 100, "thin": 100, "seed": 0, "n_chains": chains}
    if case == "sgld":
        sample(cosine, samplers.sgld(1e-3), **last)
    elif case == "sgld, all draws":
        sample(cosine, samplers.sgld(1e-3), n_steps=1000, n_chains=chains, seed=0)
    elif case == "r2sgld":
        sample(constrained(cosine, shapes.flower()), samplers.r2sgld(energy_noise=0.05), **last)
    elif case == "icsgld":
        bins = tempering.Partition(-4.0, 0.016, 1000)
        sample(cosine, samplers.icsgld(1e-3, partition=bins), **last)
    elif case == "stream":
        for _ in stream(cosine, samplers.sgld(1e-3), n_steps=1_000_000, n_chains=chains, seed=0):
            pass
    elif case == "accumulators":
        edges = np.linspace(-2.5, 2.5, 101)
        gathered = {"moments": accumulators.moments(), "histogram": accumulators.histogram(edges, edges)}
        given = {"n_steps": 1000, "n_chains": chains, "seed": 0, "keep_draws": False}
        sample(cosine, samplers.sgld(1e-3), accumulators=gathered, **given)
    elif case == "identification":
        from sysid import identify, likelihoods, systems
        from sysid.data import simulate

        data = simulate(systems.lorenz(), np.arange(10_001) * 0.01, seed=0)
        problem = identify(data, systems.lorenz(), likelihood=likelihoods.derivative(noise="mean"))
        sample(problem, samplers.sgld(5e-6), init=problem.prepared.start, **last)
    elif case != "import":
        raise ValueError(case)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(sys.argv[1], int(sys.argv[2]))
    print(peak())
