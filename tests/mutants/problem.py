"""Faults in problems: targets, callables, gradient checks."""

from .runner import Mutant

MUTANTS = [
    Mutant(
        "binding: targets are not bound when they are made",
        "toolkit/problem/definition.py",
        "bound(self.energy_gradient, waits=True))",
        "self.energy_gradient)",
        "tests/toolkit/compiler/test_binding.py -k compiles_later",
    ),
    Mutant(
        "penalty: pulls to one wall at a corner",
        "toolkit/problem/definition.py",
        'return locate if boundary != "penalise" or self.nearest is None else self.nearest',
        "return locate",
        "tests/toolkit/boundaries/test_penalties.py -k every_part",
    ),
    Mutant(
        "rows may overlap",
        "toolkit/problem/point_function.py",
        'instruction.set_metadata("noalias", ',
        'instruction.set_metadata("other", ',
        "tests/toolkit/problem/test_point_function.py -k vectorises",
    ),
    Mutant(
        "a user's math not replaced",
        "toolkit/problem/math_substitution.py",
        "member = replaced[name] if name in replaced else vars(value)[name]",
        "member = vars(value)[name]",
        "tests/toolkit/problem/test_point_function.py -k vectorises",
    ),
    Mutant(
        "a function of math by its own name not replaced",
        "toolkit/problem/math_substitution.py",
        "return replacements(products=products)[id(value)]",
        "return value",
        "tests/toolkit/problem/test_point_function.py -k whatever_name",
    ),
    Mutant(
        "gradient check: no difference of orders",
        "toolkit/problem/gradient_check.py",
        "error = np.abs(sixth - fourth) + (noise + quantum) / np.abs(step) + floor",
        "error = (noise + quantum) / np.abs(step) + floor",
        "tests/toolkit/problem/test_gradient_check.py -k right_gradients",
    ),
    Mutant(
        "callables: overflown points shown",
        "toolkit/problem/python_callable.py",
        "if finite.all():",
        "if True:",
        "tests/toolkit/problem/test_python_callable.py -k overflows",
    ),
    Mutant(
        "gradient check: rounding unseen",
        "toolkit/problem/gradient_check.py",
        "(noise + quantum) / np.abs(step)",
        "noise / np.abs(step)",
        "tests/toolkit/problem/test_gradient_check.py -k right_gradients",
    ),
    Mutant(
        "callables: no lock",
        "toolkit/problem/python_callable.py",
        "with self._lock:\n            returned = self",
        "if True:\n            returned = self",
        "tests/toolkit/problem/test_python_callable.py -k one_thread",
    ),
    Mutant(
        "truth: nan belongs to a mode",
        "toolkit/problem/definition.py",
        'return check_array("points", check_points(points, dim), copies=False)',
        "return check_points(points, dim)",
        "tests/hostile/test_masked_input.py -k none_belongs",
    ),
    Mutant(
        "hostile: any truth is true",
        "toolkit/problem/definition.py",
        '    if missing:\n        raise TypeError(f"truth must',
        '    if missing and truth:\n        raise TypeError(f"truth must',
        "tests/hostile/test_found_inputs.py",
    ),
    Mutant(
        "powers: not in the functions that are called",
        "toolkit/problem/math_substitution.py",
        "return rebind(value, allocates=allocates, ours=ours, products=products, done=done)",
        "return rebind(value, allocates=allocates, ours=ours, products=False, done=done)",
        "tests/toolkit/maths/test_powers.py -k closed_form",
    ),
]
