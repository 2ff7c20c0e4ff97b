"""Bits: r2SGLD in the flower, hashed, however it is laid out; each row must show one hash per chain count.

1,000 chains in blocks of 13 or 27, one or two threads, chunks of 1, 7 or 1,000 steps; and 1, 7 and 64 of the chains.
"""

import hashlib

from targets import constrained, mixtures, shapes
from toolkit import Layout, sample, samplers

from .markdown import head, row


def main() -> None:
    """Print the table."""
    head("chains", "layouts tried", "different results", "hash")
    problem = constrained(mixtures.cosine25(), shapes.flower())
    sampler = samplers.r2sgld(gradient_noise=0.05, energy_noise=0.05)
    arguments = {"n_steps": 400, "burn_in": 50, "thin": 5, "seed": 2**64 - 1, "keep_replicas": True, "init": [0.0, 0.0]}
    layouts = [
        (threads, Layout(lanes, chunk))
        for threads in (1, 2)
        for lanes, chunk in ((128, None), (26, None), (54, 7), (2, 400), (128, 1), (10**6, 1000))
    ]
    reference = None
    for n_chains in (1000, 64, 7, 1):
        hashes = set()
        for threads, layout in layouts:
            run = sample(problem, sampler, n_chains=n_chains, threads=threads, layout=layout, **arguments)
            parts = (run.replica_draws, run.swaps, run.reflections)
            hashes.add(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:16])
            reference = run.replica_draws if reference is None else reference
            assert (run.replica_draws == reference[:n_chains]).all(), "a chain depends on the others"
        row(n_chains, len(layouts), len(hashes), *hashes)
