"""Operations of one step, counted from the kernel: its SASS where a disassembler is there, else its PTX.

The step loop is the one that spans most. Counted is the cheapest way through it from head to head, in float64 and then
in all instructions: what no step can do without, and so what a floor may be made of. Loops within it count once, as the
compiler enters them by a test at their end; calls, which are the rare cases of division and root, count as one.
"""

import heapq
import re
from collections import Counter
from typing import NamedTuple

LABEL = re.compile(r"^\s*(\$?[.\w]+):\s*$")
PTX_LINE = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.:]*)\s*(.*);\s*(?://.*)?$")
SASS_LINE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
PTX_TARGET, SASS_TARGET = re.compile(r"(\$\w+)\s*$"), re.compile(r"\((\.L\w+)\)\s*$")

# One float64 division or root without its rare cases, as ptxas writes it for sm_90: fma, multiplication, reciprocal.
PTX_SEQUENCES = {
    "div.rn.f64": {"fma64": 7, "multiply64": 1, "special": 1},
    "sqrt.rn.f64": {"fma64": 5, "multiply64": 3, "special": 1},
}
PTX_KINDS = (
    (r"fma\.\w+\.f64", "fma64"),
    (r"mul\.\w+\.f64", "multiply64"),
    (r"(add|sub)\.\w+\.f64", "add64"),
    (r"(setp\.\w+|min|max)\.f64", "compare64"),
    (r"fma\.\w+\.f32", "fma32"),
    (r"mul\.\w+\.f32", "multiply32"),
    (r"(add|sub)\.\w+\.f32", "add32"),
    (r"(setp\.\w+|min|max)\.f32", "compare32"),
    (r"(div|sqrt|rcp|rsqrt)\..*f(32|64)", "special"),
    (r"cvt\..*", "convert"),
    (r"(mul|mad)\.(wide\..*|lo\.[su]64|hi\..*)", "wide multiply"),
    (r"(mul|mad)\..*", "multiply"),
    (r"(ld|st|atom)\.(?!param|const).*", "memory"),
    (r"(mov|selp|neg|abs)\..*|ld\.(param|const).*|bra.*|call.*|ret.*", "move"),
)
SASS_KINDS = (
    (r"DFMA.*", "fma64"),
    (r"DMUL.*", "multiply64"),
    (r"DADD.*", "add64"),
    (r"(DSETP|DMNMX).*", "compare64"),
    (r"FFMA.*", "fma32"),
    (r"FMUL.*", "multiply32"),
    (r"FADD.*", "add32"),
    (r"(FSETP|FMNMX).*", "compare32"),
    (r"MUFU.*", "special"),
    (r"(F2[FI]|I2F|FRND).*", "convert"),
    (r"U?IMAD\.(WIDE|HI).*", "wide multiply"),
    (r"IMAD\.(MOV|U32|SHL|X|IADD).*|(U?MOV|F?SEL|USEL|ULDC|LDC|BRA|BSSY|BSYNC|CALL|NOP|CS2R|S2R|R2UR).*", "move"),
    (r"U?IMAD.*", "multiply"),
    (r"(LD|ST|LDG|STG|LDL|STL|ATOM|ATOMG|RED)(\..*)?", "memory"),
)
FLOAT64 = ("fma64", "multiply64", "add64", "compare64")
FLOAT32 = ("fma32", "multiply32", "add32", "compare32")


class Instruction(NamedTuple):
    """What it does, where it may jump to, and whether the next one may follow."""

    name: str
    target: str | None
    continues: bool


class Operations(NamedTuple):
    """Instructions of one step by kind; float operations with an fma as two; and where they were read."""

    kinds: Counter[str]
    source: str

    @property
    def flops(self) -> int:
        """Float64 (or float32) operations, an fma being two; comparisons are none."""
        return sum(2 * self.kinds[f"fma{n}"] + self.kinds[f"multiply{n}"] + self.kinds[f"add{n}"] for n in (64, 32))

    def count(self, kinds: tuple[str, ...]) -> int:
        """Instructions of these kinds."""
        return sum(self.kinds[kind] for kind in kinds)


def parse(text: str) -> tuple[list[Instruction], dict[str, int]]:
    """Instructions of PTX or SASS in their order, and the places of labels."""
    is_ptx = ".entry" in text
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    for line in text.splitlines():
        if label := LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif is_ptx and (found := PTX_LINE.match(line)):
            name, rest = found[1], found[2]
            jump = PTX_TARGET.search(rest) if name.startswith("bra") else None
            leaves = name.startswith(("ret", "exit")) or (jump is not None and "@" not in line)
            instructions.append(Instruction(name, jump[1] if jump else None, "@" in line or not leaves))
        elif not is_ptx and (found := SASS_LINE.match(line)):
            guard, name, rest = found.groups()
            jump = SASS_TARGET.search(rest) if name.startswith("BRA") else None
            conditional = guard is not None or (jump is not None and not rest.startswith("`"))
            leaves = name.startswith(("EXIT", "RET", "BRA"))
            instructions.append(Instruction(name, jump[1] if jump else None, conditional or not leaves))
    return instructions, labels


def step_loop(instructions: list[Instruction], labels: dict[str, int]) -> tuple[int, int]:
    """First instruction of the loop that spans most, and the jump back to it. Raises ValueError where none is."""
    loops = [
        (labels[jump.target], place)
        for place, jump in enumerate(instructions)
        if jump.target in labels and labels[jump.target] < place
    ]
    if not loops:
        raise ValueError("the kernel has no loop")
    return max(loops, key=lambda loop: loop[1] - loop[0])


def kinds_of(name: str, is_ptx: bool) -> dict[str, int]:
    """The instructions that one of this name stands for."""
    if is_ptx and name in PTX_SEQUENCES:
        return PTX_SEQUENCES[name]
    for pattern, kind in PTX_KINDS if is_ptx else SASS_KINDS:
        if re.fullmatch(pattern, name):
            return {kind: 1}
    return {"integer": 1}


def count_operations(text: str) -> Operations:
    """Operations of one step of the kernel in ``text``, PTX or SASS, along the cheapest way through the step loop."""
    instructions, labels = parse(text)
    is_ptx = any(jump.target is not None and jump.target.startswith("$") for jump in instructions)
    first, last = step_loop(instructions, labels)
    own = [kinds_of(one.name, is_ptx) for one in instructions]
    costs = [(sum(kinds.get(kind, 0) for kind in FLOAT64), sum(kinds.values())) for kinds in own]
    least = {first: costs[first]}
    before: dict[int, int] = {}
    queue = [(costs[first], first)]
    while queue:
        cost, place = heapq.heappop(queue)
        if place == last:
            break
        if cost > least[place]:
            continue
        one = instructions[place]
        following = [place + 1] * one.continues + ([labels[one.target]] if one.target in labels else [])
        for after in following:
            if after < len(costs):
                total = (cost[0] + costs[after][0], cost[1] + costs[after][1])
                if after not in least or total < least[after]:
                    least[after], before[after] = total, place
                    heapq.heappush(queue, (total, after))
    if last not in least:
        raise ValueError("the step loop does not come back to its head")
    kinds: Counter[str] = Counter(own[last])
    while last != first:
        last = before[last]
        kinds.update(own[last])
    return Operations(kinds, "PTX" if is_ptx else "SASS")
