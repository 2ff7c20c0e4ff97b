"""Faults in the engine on a device."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "device: products fused with sums",
        "toolkit/_engine/cuda/compiling.py",
        '"fma": False}',
        '"fma": True}',
        "tests/cuda/test_ptx.py -k kept_apart",
    ),
    Mutant(
        "device: literals in constant memory take each other's places",
        "toolkit/_engine/cuda/compiling.py",
        "{8 * places.setdefault(literal, len(places))}",
        "{8 * places.setdefault(literal, len(places) // 2 * 2)}",
        "tests/cuda/test_ptx.py -k literals",
    ),
    Mutant(
        "device: kernels compiled with literals in their instructions",
        "toolkit/_engine/cuda/compiling.py",
        "[with_constant_bank(ptx) for ptx in get_texts(cc)]",
        "get_texts(cc)",
        "tests/cuda/test_ptx.py -k literals",
    ),
    Mutant(
        "device: optimised again when it is linked",
        "toolkit/_engine/cuda/compiling.py",
        "cuda.jit(function, lto=False, ",
        "cuda.jit(function, ",
        "tests/cuda/test_refusals.py -k what_was_read",
    ),
    Mutant(
        "device: a NumPy that numba-cuda does not know is not told",
        "toolkit/_engine/cuda/device.py",
        "    check_numpy()\n",
        "",
        "tests/cuda/test_refusals.py -k left_behind",
    ),
    Mutant(
        "device: as many registers as the compiler takes, for few replicas too",
        "toolkit/_engine/cuda/kernel.py",
        "MOST_REGISTERS if shape.replicas <= FEW_REPLICAS else None",
        "None",
        "tests/cuda/test_compiling.py -k few_replicas",
    ),
    Mutant(
        "device: replicas of a chain with one stream of random numbers",
        "toolkit/_engine/cuda/kernel.py",
        "replica[r] = r",
        "replica[r] = 0",
        "tests/cuda/test_simulator.py -k resgld",
    ),
    Mutant(
        "device: a kernel on disk known by its sizes alone",
        "toolkit/_engine/cuda/kernel.py",
        "repr((valid_stamps, made_for))",
        "repr(made_for)",
        "tests/cuda/test_compiling.py -k stamp",
    ),
    Mutant(
        "device: the last piece's draws taken for the first's",
        "toolkit/_engine/cuda/engine.py",
        "draws, moments = slice(piece.draw, piece.draw + n)",
        "draws, moments = slice(0, n)",
        "tests/cuda/test_simulator.py -k pieces",
    ),
    Mutant(
        "accumulators on a device: every temperature taken for the target's",
        "toolkit/_engine/cuda/accumulators.py",
        "kept // targets",
        "1",
        "tests/cuda/test_accumulators.py -k coldest",
    ),
    Mutant(
        "accumulators on a device: looked at before they are home",
        "toolkit/_engine/cuda/accumulators.py",
        "            if reads_state:\n                self.fetch(stream)\n",
        "",
        "tests/cuda/test_accumulators.py -k hosts",
    ),
]
