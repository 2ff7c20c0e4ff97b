"""Run every figure script, one line each; exit status 1 where one fails. QUICK=1 in the environment: small versions."""

import importlib
import sys
import time
import traceback
from pathlib import Path

from .output import run_script

failed = []
for path in [*sorted(Path(__file__).parent.glob("*_fig*.py")), *sorted(Path(__file__).parent.glob("gallery_*.py"))]:
    print(f"{path.stem} … ", end="", flush=True)
    started = time.perf_counter()
    try:
        written = run_script(importlib.import_module(f"figures.{path.stem}").draw)
    except Exception:
        failed.append(path.stem)
        print("failed", flush=True)
        traceback.print_exc()
        continue
    kinds = ",".join(file.suffix[1:] for file in written)
    place = written[0].with_suffix("")
    print(f"{time.perf_counter() - started:.1f} s → {place}.{{{kinds}}}", flush=True)
if failed:
    sys.exit(f"failed: {', '.join(failed)}")
