"""Kernels of the cases as text, and their operations: PTX always; SASS where ptxas and a disassembler are found."""

import importlib.util
import itertools
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from toolkit._engine.cuda.inspection import chain_ptx

from .cases import Case
from .measure import job_of
from .operations import Operations, count_operations

LINKING = ((), ("-c",))  # whole, or to be linked with what Numba has in other files


def tools(name: str) -> list[str]:
    """Where a program of CUDA's is: beside NVIDIA's Python packages, which are the compiler's age, and on PATH."""
    parent = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in (parent.submodule_search_locations if parent else None) or ()]
    found = [str(path) for folder in folders for path in sorted(folder.glob(f"*/bin/{name}"))]
    on_path = shutil.which(name)
    return [*found, on_path] if on_path else found


def sass_of(ptx: str, capability: tuple[int, int]) -> str | None:
    """``ptx`` assembled and disassembled; None where the programs for it are not there, or too old for it."""
    with tempfile.TemporaryDirectory() as folder:
        source, code = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        for options, assembler, disassembler in itertools.product(LINKING, tools("ptxas"), tools("nvdisasm")):
            assemble = [assembler, *options, f"-arch=sm_{capability[0]}{capability[1]}", str(source), "-o", str(code)]
            done = subprocess.run(assemble, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                done = subprocess.run([disassembler, "-c", str(code)], capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    return done.stdout
    return None


def operations_of(case: Case, capability: tuple[int, int], real: Any = np.float64) -> Operations:
    """Operations of one step of a case's kernel, which is of all its replicas."""
    ptx = chain_ptx(job_of(case), capability, real)
    return count_operations(sass_of(ptx, capability) or ptx)
