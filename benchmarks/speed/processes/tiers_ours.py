"""One run of one chain in a process of its own, as ``tiers`` runs it: ``tiers_ours.py case steps fused``.

It prints seconds of the call of ``sample`` and the engine of the run, as a line of JSON. The general engine and the
parts have been compiled or loaded before, as all but the first run ever find them.
"""

import json
import sys
import time

from targets import mixtures
from toolkit import Layout, sample, samplers

SAMPLERS = {"sgld": samplers.sgld(1e-3), "hmc": samplers.hmc(0.05, n_leapfrogs=10)}
FUSED = {"None": None, "True": True, "False": False}

if __name__ == "__main__":
    case, steps, fused = sys.argv[1:]
    problem, n_steps = mixtures.gaussian_grid25(), int(steps)

    def run(n: int, layout: Layout) -> object:
        """The run of ``n`` steps, of which a thousand draws are kept."""
        return sample(problem, SAMPLERS[case], n_steps=n, thin=max(1, n // 1000), seed=1, threads=1, layout=layout)

    run(1000, Layout(fused=False))
    began = time.perf_counter()
    made = run(n_steps, Layout(fused=FUSED[fused]))
    print(json.dumps([time.perf_counter() - began, made.made_with["engine"]]))  # type: ignore[attr-defined]
