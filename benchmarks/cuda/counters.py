"""Stage counters: instructions executed for each chain-step as the device itself counts them, where ncu may look."""

import csv
import subprocess
import sys

from benchmarks.runner.tables import Table

from .cases import MAKERS, case_of
from .disassembly import tools
from .measure import Plan

N_CHAINS, N_STEPS = 8192, 256
METRICS = {
    "float64 fma": "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
    "float64 multiplications": "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
    "float64 additions": "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
    "all instructions": "smsp__thread_inst_executed.sum",
}
CALL = (
    "from benchmarks.cuda.measure import run; from benchmarks.cuda.cases import case_of; "
    "run(case_of({name!r}), 'cuda', {chains}, {steps})"
)


def summed(text: str) -> dict[str, float]:
    """Metric → its sum over kernels, of what ncu prints as CSV."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if '"Metric Name"' in line), len(lines))
    sums: dict[str, float] = {}
    for record in csv.DictReader(lines[begin:]):
        name, value = record.get("Metric Name"), record.get("Metric Value")
        if name and value:
            sums[name] = sums.get(name, 0.0) + float(value.replace(",", ""))
    return sums


def main(plan: Plan) -> None:
    """Print the table, where ncu is found and counts."""
    found = tools("ncu")
    if not found or plan.is_dry:
        print("counters: nothing done, as this is a dry run" if found else "counters: ncu not found")
        return
    table = Table(
        plan.folder, "counters", "case", *(f"{what}, each chain-step" for what in METRICS), "float64 operations"
    )
    for name in (name for name in MAKERS if name in plan.names):
        if plan.is_late(name):
            continue
        call = CALL.format(name=name, chains=N_CHAINS, steps=N_STEPS)
        command = [found[0], "--csv", "--clock-control", "none", "--metrics", ",".join(METRICS.values())]
        done = subprocess.run([*command, sys.executable, "-c", call], capture_output=True, text=True, check=False)
        sums = summed(done.stdout)
        if not set(METRICS.values()) <= set(sums):
            print(f"counters: ncu counted nothing for {name}: {(done.stdout + done.stderr)[-300:]!r}")
            continue
        steps = N_CHAINS * N_STEPS * case_of(name).sampler.n_replicas
        counts = [sums[metric] / steps for metric in METRICS.values()]
        table.row(name, *counts, f"{2 * counts[0] + counts[1] + counts[2]:.4g}")
