"""Faults in reports."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "R-hat that is infinite printed as the largest number",
        "toolkit/_output/report/warnings.py",
        "if worst == np.inf:",
        "if worst < 0.0:",
        "tests/toolkit/report/test_text.py -k stand_still",
    ),
    Mutant(
        "coordinates: weights forgotten",
        "toolkit/_output/report/table.py",
        "loads = np.ones(points.shape[:2]) if given is None else given",
        "loads = np.ones(points.shape[:2])",
        "tests/toolkit/report/test_text.py -k weighted",
    ),
    Mutant(
        "advice: rare swaps pass",
        "toolkit/_output/report/warnings.py",
        "if rates[least] < RARE:",
        "if rates[least] < 0.0:",
        "tests/toolkit/report/test_text.py -k fires",
    ),
    Mutant(
        "advice: chains from one point pass",
        "toolkit/_output/report/warnings.py",
        "not all_found and share_one_place(run.init)",
        "not all_found and False",
        "tests/toolkit/engine/test_starts.py -k one_point",
    ),
    Mutant(
        "advice: modes that no draw is in pass",
        "toolkit/_output/report/warnings.py",
        "lost = ~found & (weights * len(points) >= EXPECTED)",
        "lost = np.zeros_like(found)",
        "tests/toolkit/engine/test_starts.py -k 25",
    ),
    Mutant(
        "coordinates: chains left out of a long run",
        "toolkit/_output/report/table.py",
        "    whole = chains[(run.counts.status[chains] == 0).all(axis=1)]",
        "    whole = chains[(run.counts.status[chains] == 0).all(axis=1)][:3]",
        "tests/toolkit/engine/test_starts.py -k left_out",
    ),
]
