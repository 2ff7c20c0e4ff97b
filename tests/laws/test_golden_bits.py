"""Short runs of every constructor keep their bits as long as ``function_digest.BITS`` is what it is."""

from pathlib import Path

from benchmarks.evidence.golden import cases, hash_of
from toolkit._compiler.function_digest import BITS

STORED = Path(__file__).resolve().parents[1] / "data" / "golden_bits.txt"
HOW = (
    "a bit of a run has changed. If it was meant to, raise BITS in toolkit/_compiler/function_digest.py, "
    "or checkpoints go on with other "
    "bits than they began with, and write the lines of `python -m benchmarks evidence golden` into "
    "tests/data/golden_bits.txt"
)


def test_no_bit_changes_while_bits_is_the_same():
    """As ``python -m benchmarks evidence golden --compare`` has it, of 7 chains and the general engine."""
    number, *lines = STORED.read_text().splitlines()
    before = {name: value for value, name in (line.split("  ", 1) for line in lines)}
    assert number == f"bits {BITS}", "the hashes are of another number of BITS: write them anew"
    names = {f"{name}, 7 chains, general": (problem, sampler) for name, problem, sampler in cases()}
    found = {name: hash_of(*names[name], 7, fused=False) for name in before}
    assert len(found) == 40
    assert {name: value for name, value in found.items() if before[name] != value} == {}, HOW
