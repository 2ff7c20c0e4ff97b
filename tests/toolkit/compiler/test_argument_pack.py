"""Parts called through a pointer to their arguments: the same as by value, and refused where they do not fit."""

import numpy as np
import pytest
from numba import njit, types
from numba.core.errors import TypingError

from toolkit._compiler.argument_pack import call_part, n_packed, pack_arguments, tuple_by_address, without_last
from toolkit._compiler.decorators import PartPointer, compile_part
from toolkit._compiler.signatures import FLOATS, INTEGERS, MATRIX
from toolkit._engine.cuda.compiling import BY_VALUE

PART = types.void(MATRIX, FLOATS, types.int64, types.boolean)


def add(matrix, row, times, negative):
    for d in range(matrix.shape[0]):
        for lane in range(row.size):
            matrix[d, lane] += (-times if negative else times) * row[lane]


def add_and_count(matrix, row, times, negative):
    """Moves where it writes by one lane, of arrays that are handed as parts of others."""
    for lane in range(row.size):
        row[lane] += 1.0
    add_lanes(matrix, row, times, negative)


add_lanes = njit(add)


def by_pointer(part, matrix, row, n):
    address = pack_arguments(part, (matrix[1:], row[:3]))
    for i in range(n):
        call_part(part, address, i, i == 2)


def too_few(part, matrix, row, n):
    call_part(part, pack_arguments(part, (matrix,)), n, False)


def no_numbers(part, matrix, row, n):
    call_part(part, pack_arguments(part, (matrix, row)))


def run(caller, part, n=4):
    """What a call of ``part`` by ``caller`` leaves of a matrix and a row."""
    matrix, row = np.arange(12.0).reshape(3, 4)[:, :3].copy(), np.array([1.0, 10.0, 100.0, 5.0])
    pointer = PartPointer(compile_part(part, PART, packed=True))
    caller_type = types.void(types.FunctionType(PART), MATRIX, FLOATS, types.int64)
    njit(caller_type, error_model="numpy", _nrt=False)(caller)(pointer, matrix, row, n)
    return matrix, row


@pytest.mark.parametrize("part", [add, add_and_count])
def test_a_part_by_pointer_does_what_it_does_by_value(part):
    matrix, row = run(by_pointer, part)
    expected, weights = np.arange(12.0).reshape(3, 4)[:, :3].copy(), np.array([1.0, 10.0, 100.0, 5.0])
    plain = compile_part(part, PART, packed=True)
    for i in range(4):
        plain(expected[1:], weights[:3], i, i == 2)
    np.testing.assert_array_equal(matrix, expected)
    np.testing.assert_array_equal(row, weights)
    assert not np.array_equal(matrix, np.arange(12.0).reshape(3, 4)[:, :3])


def compiled_with_its_part(matrix, row):
    address = pack_arguments(add_lanes, (matrix, row, matrix))
    call_part(add_lanes, without_last(address), 3, True)


def test_without_a_pointer_the_arguments_are_a_tuple():
    matrix, row = np.zeros((2, 3)), np.ones(3)
    njit(types.void(MATRIX, FLOATS), error_model="numpy")(compiled_with_its_part)(matrix, row)
    assert (matrix == -3.0).all()
    BY_VALUE[call_part](add, BY_VALUE[without_last](BY_VALUE[pack_arguments](add, (matrix, row, 0))), 2, False)
    assert (matrix == -1.0).all()


def test_parts_by_their_addresses_are_called_and_a_tuple_of_them_stays_one():
    kind = types.Tuple((types.int64, types.FunctionType(PART), types.int64, types.FunctionType(PART)))
    as_tuple = tuple_by_address(kind)

    def call_both(given, matrix, row):
        first, one, second, other = as_tuple(given)
        call_part(one, pack_arguments(one, (matrix, row)), first, False)
        call_part(other, pack_arguments(other, (matrix, row)), second, True)

    pointers = [PartPointer(compile_part(part, PART, packed=True)) for part in (add, add_and_count)]
    addresses = np.array([7, pointers[0].address, 3, pointers[1].address])
    matrix, row = np.zeros((2, 3)), np.ones(3)
    caller = njit(types.void(INTEGERS, MATRIX, FLOATS), error_model="numpy", _nrt=False)(call_both)
    caller(addresses, matrix, row)
    assert (matrix == 7.0 * 1.0 - 3.0 * 2.0).all()
    assert (row == 2.0).all()
    as_it_is = njit(lambda: as_tuple((5, 2.0)))
    assert as_it_is() == (5, 2.0)


def swapped(part, matrix, row, n):
    call_part(part, pack_arguments(part, (row, matrix)), n, False)


def strided(part, matrix, row, n):
    call_part(part, pack_arguments(part, (matrix, row[::2])), n, False)


@pytest.mark.parametrize(
    ("caller", "words"),
    [
        (too_few, "2 packed arguments is given 1"),
        (no_numbers, "2 numbers is given 0"),
        (swapped, "is given array"),
        (strided, "is given array"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(caller, words):
    with pytest.raises(TypingError, match=words):
        run(caller, add)


def test_a_part_that_was_not_compiled_for_it_is_refused():
    with pytest.raises(TypeError, match="add must be compiled to be called so: there is no 'packed'"):
        PartPointer(compile_part(add, PART))


def test_numbers_before_the_last_array_last_too():
    assert n_packed((MATRIX, types.int64, FLOATS, types.float64, types.boolean)) == 3
    assert n_packed((types.float64,)) == 0
    assert n_packed((MATRIX,)) == 1


def test_a_part_that_nobody_could_call_is_refused():
    with pytest.raises(ValueError, match="from_python must be True"):
        compile_part(add, PART, from_python=False)
