"""Kernels of the cases as text, and their operations: PTX always; SASS where ptxas and a disassembler are found."""

import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.device_engine import chain_ptx

from .cases import Case
from .measure import job_of
from .operations import Operations, count_operations


def tool(name: str) -> str | None:
    """Where a program of CUDA's is: on PATH, or beside NVIDIA's Python packages; None where it is not."""
    if found := shutil.which(name):
        return found
    parent = importlib.util.find_spec("nvidia")
    folders = parent.submodule_search_locations if parent else None
    for folder in folders or ():
        for path in sorted(Path(folder).glob(f"*/bin/{name}")):
            return str(path)
    return None


def sass_of(ptx: str, capability: tuple[int, int]) -> str | None:
    """``ptx`` assembled and disassembled; None where the programs for it are not there, or fail."""
    assembler, disassembler = tool("ptxas"), tool("nvdisasm")
    if assembler is None or disassembler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, code = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        commands = [
            [assembler, f"-arch=sm_{capability[0]}{capability[1]}", str(source), "-o", str(code)],
            [disassembler, "-c", str(code)],
        ]
        said = ""
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                return None
            said = done.stdout
    return said


def operations_of(case: Case, capability: tuple[int, int], real: Any = np.float64) -> Operations:
    """Operations of one step of a case's kernel, which is of all its replicas."""
    ptx = chain_ptx(job_of(case), capability, real)
    return count_operations(sass_of(ptx, capability) or ptx)
