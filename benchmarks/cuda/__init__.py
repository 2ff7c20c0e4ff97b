"""CUDA: chain-steps per second on a device, beside the CPU, JAX on the same device, and the floor.

Nothing is measured where there is no device. ``python -m benchmarks.cuda --help`` says how to run single stages, each
below ten minutes, and where results go. A chain-step is one step of one replica: one gradient evaluation.
"""

import sys


def main() -> None:
    """Run all stages; with ``--small``, small ones."""
    from .__main__ import main as run

    run(["--small"] if "--small" in sys.argv else [])
