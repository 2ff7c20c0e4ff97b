"""The GPU's benchmark: operations counted on kernels written by hand, the floor's arithmetic, tables, what it says."""

import csv
from collections import Counter

import numpy as np
import pytest

from benchmarks.cuda.counters import METRICS, summed
from benchmarks.cuda.floors import H200, Card, floor_of
from benchmarks.cuda.operations import FLOAT64, Operations, count_operations, parse, step_loop
from benchmarks.cuda.stages import STAGES, main, parsed, plan_of
from benchmarks.runner.tables import Table, rate_cell, ratio_cells
from toolkit._engine.cuda import device

# A loop of one step, with an inner loop, a rare way and a shorter one, between a prologue and an epilogue.
PTX = """
.visible .entry kernel(.param .u64 a)
{
	ld.param.u64 	%rd1, [a];
	div.rn.f64 	%fd9, %fd1, %fd2;
	@%p9 bra 	$L__BB0_9;

$L__BB0_1:
	fma.rn.f64 	%fd1, %fd1, %fd2, %fd3;
	mul.rn.f64 	%fd1, %fd1, %fd2;
	@%p1 bra 	$L__BB0_3;
	add.rn.f64 	%fd1, %fd1, %fd2;
	add.rn.f64 	%fd1, %fd1, %fd2;
	bra.uni 	$L__BB0_4;

$L__BB0_3:
	sub.rn.f64 	%fd1, %fd1, %fd2;

$L__BB0_4:
	setp.lt.f64 	%p2, %fd1, %fd2;
	sqrt.rn.f64 	%fd1, %fd1;
	mul.lo.s64 	%rd2, %rd3, %rd4;
	mul.lo.s32 	%r2, %r3, %r4;
	neg.f64 	%fd1, %fd1;
	st.global.f64 	[%rd1], %fd1;
$L__BB0_5:
	fma.rn.f64 	%fd1, %fd1, %fd2, %fd3;
	@%p3 bra 	$L__BB0_5;
	add.s64 	%rd5, %rd5, 1;
	@%p4 bra 	$L__BB0_1;

$L__BB0_9:
	fma.rn.f64 	%fd1, %fd1, %fd2, %fd3;
	ret;
}
"""
SASS = """
	.target	sm_90
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 EXIT ;
.L_x_1:
        /*0020*/                   DFMA R4, R4, R6, R8 ;
        /*0030*/                   IMAD.WIDE.U32 R4, R4, R6, R8 ;
        /*0040*/                   IMAD.MOV.U32 R4, RZ, RZ, R8 ;
        /*0050*/                   MUFU.RSQ64H R5, R9 ;
        /*0060*/              @P1 BRA P2, `(.L_x_2) ;
        /*0070*/                   DMUL R4, R4, R6 ;
        /*0080*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_rn_f64_full) ;
.L_x_2:
        /*0090*/                   DADD R4, R4, R6 ;
        /*00a0*/                   BRA `(.L_x_3) ;
        /*00b0*/                   DADD R4, R4, R6 ;
.L_x_3:
        /*00c0*/              @!P0 BRA `(.L_x_1) ;
        /*00d0*/                   EXIT ;
.L_x_9:
        /*00e0*/                   BRA `(.L_x_9);
"""


def test_operations_of_ptx_are_those_of_the_cheapest_way_through_the_step_loop():
    counted = count_operations(PTX)
    # fma, mul, sub (not the two additions), compare, a root of 5 fma and 3 mul, the inner loop's fma once
    assert counted.source == "PTX"
    assert counted.kinds == Counter(
        {"fma64": 1 + 5 + 1, "multiply64": 1 + 3, "add64": 1, "compare64": 1, "special": 1, "wide multiply": 1,
         "multiply": 1, "memory": 1, "integer": 1, "move": 4}
    )  # fmt: skip
    assert counted.count(FLOAT64) == 13
    assert counted.flops == 2 * 7 + 4 + 1
    # What is counted moves with the loop: without the root, eight fewer, and with a costlier short way, the other one.
    assert count_operations(PTX.replace("sqrt.rn.f64", "mov.f64")).count(FLOAT64) == 5
    longer = PTX.replace("\tsub.rn.f64 \t%fd1, %fd1, %fd2;\n", "\tsub.rn.f64 \t%fd1, %fd1, %fd2;\n" * 3)
    assert count_operations(longer).kinds["add64"] == 2


def test_operations_of_sass():
    counted = count_operations(SASS)
    assert counted.source == "SASS"
    assert counted.kinds == Counter(
        {"fma64": 1, "wide multiply": 1, "special": 1, "add64": 1, "move": 1 + 1 + 1 + 1}
    )  # the branch that is taken, the one that goes on, the one back, and IMAD.MOV
    assert counted.flops == 3


@pytest.mark.slow
def test_two_replicas_that_move_alike_cost_twice_the_float64_of_one():
    pytest.importorskip("numba_cuda")
    from benchmarks.cuda.cases import case_of
    from benchmarks.cuda.measure import job_of
    from toolkit._engine.cuda.inspection import chain_ptx

    one, two = (count_operations(chain_ptx(job_of(case_of(name)), (9, 0))) for name in ("sgld", "r2sgld"))
    assert one.source == two.source == "PTX"
    assert 100 < one.count(FLOAT64) < 200
    assert two.count(FLOAT64) == pytest.approx(2 * one.count(FLOAT64), rel=0.02)
    assert one.kinds["wide multiply"] >= 17  # ten rounds of Philox, two products each, less those of constants


def test_the_step_loop_is_the_longest_and_must_be_there():
    instructions, labels = parse(PTX)
    first, last = step_loop(instructions, labels)
    assert (first, instructions[last].target) == (labels["$L__BB0_1"], "$L__BB0_1")
    with pytest.raises(ValueError, match="no loop"):
        count_operations(PTX.replace("bra", "mov"))


def test_floor_is_the_slowest_pipe_and_the_bytes():
    card = Card("card", (9, 0), processors=10, clock=1e9, float64=64, float32=128, multiply=64, bandwidth=1e12)
    assert card.flops64 == 2 * 10 * 1e9 * 64
    operations = Operations(Counter({"fma64": 64, "add64": 64, "integer": 256, "wide multiply": 32}), "PTX")
    floor = floor_of(operations, card)
    assert floor.flops == pytest.approx((2 * 64 + 64) / card.flops64)
    assert floor.pipes["float64"] == pytest.approx(2e-10)  # 128 results at 64 a clock on 10 processors of 1 GHz
    assert floor.pipes["integer multiply"] == pytest.approx(0.5e-10)
    assert floor.pipes["issue"] == pytest.approx(416 / 128 * 1e-10)
    assert (floor.limit, floor.seconds) == ("issue", floor.pipes["issue"])
    assert floor_of(operations, card, 1e6).limit == "memory"
    assert floor_of(operations, card, 1e6).seconds == pytest.approx(1e-6)
    assert floor_of(Operations(Counter({"fma64": 640, "special": 1}), "PTX"), card).limit == "float64"
    # The sheet of the H200: 34 TFLOP/s
    assert H200.flops64 == pytest.approx(34e12)
    assert H200.flops32 == pytest.approx(68e12)


def test_a_float32_kernel_is_held_to_the_float32_rate():
    operations = Operations(Counter({"fma32": 128}), "PTX")
    assert floor_of(operations, H200).flops == pytest.approx(2 * 128 / H200.flops32)
    assert floor_of(operations, H200).limit == "float32"


def test_tables_go_to_the_screen_and_to_files(tmp_path, capsys):
    table = Table(tmp_path / "out", "speed", "case", "ratio")
    table.row("sgld", 2.0 / 3.0)
    assert capsys.readouterr().out == "| case | ratio |\n| --- | --- |\n| sgld | 0.6667 |\n"
    assert (tmp_path / "out" / "speed.md").read_text() == "| case | ratio |\n| --- | --- |\n| sgld | 0.6667 |\n"
    with open(tmp_path / "out" / "speed.csv", newline="") as file:
        assert list(csv.reader(file)) == [["case", "ratio"], ["sgld", str(2.0 / 3.0)]]


def test_ratios_are_medians_of_rounds_not_ratios_of_medians():
    ours, others = [1.0, 8.0, 9.0], [1.0, 2.0, 100.0]
    assert ratio_cells(ours, others) == ("1", "0.09 – 4")
    assert np.median(ours) / np.median(others) == 4.0
    assert ratio_cells(ours, []) == ("–", "–")
    assert rate_cell([1e6, 3e9, 2e6]) == "2"


def test_counters_are_summed_over_kernels():
    names = list(METRICS.values())
    said = "==PROF== Connected\n" + '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    said += f'"0","kernel","{names[0]}","inst","1,000"\n"1","kernel","{names[0]}","inst","24"\n'
    said += f'"1","kernel","{names[1]}","inst","7"\n'
    assert summed(said) == {names[0]: 1024.0, names[1]: 7.0}
    assert summed("==ERROR== no permission\n") == {}


def test_without_a_device_it_says_so_in_one_line_and_measures_nothing(capsys, monkeypatch):
    def nothing_there():
        raise device.CudaError("no GPU")

    monkeypatch.setattr(device, "check_available", nothing_there)
    main(["speed", "jax"])
    assert capsys.readouterr().out == "nothing measured: no GPU\n"
    with pytest.raises(SystemExit):
        main(["sped"])
    assert "got ['sped']" in capsys.readouterr().err


def test_plans():
    full, small = plan_of(parsed([])), plan_of(parsed(["--small", "--cases", "sgld"]))
    assert full.sizes == (10**3, 10**4, 10**5, 10**6, 10**7)
    assert (full.rounds, full.is_dry, small.names) == (5, False, ("sgld",))
    assert small.sizes == full.sizes[:3]
    assert plan_of(parsed(["--dry"])).is_dry
    assert plan_of(parsed(["--minutes", "0"])).is_late("all")
    assert not full.is_late("nothing")
    assert parsed(["equality", "speed"]).stages == list(STAGES)[1:3]
