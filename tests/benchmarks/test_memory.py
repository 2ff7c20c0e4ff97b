"""The table of memory: its slopes and ratios, and that a run which is not ours may be missing."""

import subprocess
import sys

from benchmarks.runner.plan import Plan
from benchmarks.speed.memory import OURS, main


def of(who, case, chains):
    if who == "blackjax":
        return None
    return 100 * 2**20 + (50 if who == "ours" else 100) * chains


def test_slopes_and_ratios(capsys):
    main(Plan(1, 0.02, None, False), of)
    told = capsys.readouterr().out
    assert "| import alone | – | 1 | 100 | – | 100 |" in told
    assert "| sgld | – | 2 | 50 | – | 100 |" in told


def test_a_peak_is_a_process_s_own_and_never_falls():
    """It holds 64 MiB for a moment, and is started by a process that holds 128 MiB."""
    held = b"1" * 2**27
    lines = f"import runpy; m = runpy.run_path({str(OURS)!r}); held = b'1' * 2**26; del held; print(m['peak']())"
    said = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True).stdout
    assert 2**26 < int(said) < len(held)
