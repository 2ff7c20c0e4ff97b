"""Fit the polynomials of ``toolkit.maths``: Remez exchange with 60 digits. Prints them."""

import mpmath

mpmath.mp.dps = 60


def minimax(function, degree, low, high, rounds=12):
    """Coefficients, lowest first, of the polynomial whose largest error on [low, high] is least, and that error."""
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    n = degree + 2
    nodes = [(low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * i / (n - 1)) for i in range(n)]
    grid = [low + (high - low) * i / mpmath.mpf(60 * n) for i in range(60 * n + 1)]
    exact = [function(x) for x in grid]
    for _ in range(rounds):
        system = mpmath.matrix(n, n)
        for i, x in enumerate(nodes):
            for j in range(degree + 1):
                system[i, j] = x**j
            system[i, degree + 1] = (-1) ** i
        solution = mpmath.lu_solve(system, mpmath.matrix([function(x) for x in nodes]))
        coefficients = [solution[j] for j in range(degree + 1)]
        errors = [mpmath.polyval(coefficients[::-1], x) - f for x, f in zip(grid, exact, strict=True)]
        extremes = alternating_extremes(grid, errors)
        while len(extremes) > n:
            extremes.pop(0 if abs(extremes[0][1]) < abs(extremes[-1][1]) else -1)
        if len(extremes) < n:
            break
        nodes = [x for x, _ in extremes]
    return coefficients, max(abs(e) for e in errors)


def alternating_extremes(grid, errors):
    """The largest error of each run of one sign, as (place, error)."""
    extremes = []
    for x, e in zip(grid, errors, strict=True):
        if not extremes or (e > 0) != (extremes[-1][1] > 0):
            extremes.append((x, e))
        elif abs(e) > abs(extremes[-1][1]):
            extremes[-1] = (x, e)
    return extremes


def exp_tail(r):
    return (mpmath.exp(r) - 1 - r) / r**2 if abs(r) > 1e-12 else mpmath.mpf(1) / 2 + r / 6


def log_tail(z):
    s = mpmath.sqrt(z)
    return (2 * mpmath.atanh(s) / s - 2) / z if z > mpmath.mpf("1e-25") else mpmath.mpf(2) / 3


def sin_tail(z):
    r = mpmath.sqrt(z)
    return (mpmath.sin(r) / r - 1) / z if z > mpmath.mpf("1e-25") else -mpmath.mpf(1) / 6


def cos_tail(z):
    return (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / z**2 if z > mpmath.mpf("1e-20") else mpmath.mpf(1) / 24


def atan_tail(z):
    t = mpmath.sqrt(z)
    return (mpmath.atan(t) / t - 1) / z if z > mpmath.mpf("1e-25") else -mpmath.mpf(1) / 3


def fits():
    """(name, coefficients, error) of each polynomial, on its reduced interval widened by 1e-4."""
    wider = mpmath.mpf("1.0001")
    half_ln2 = mpmath.log(2) / 2 * wider
    s_max = (mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1)
    eighth = (mpmath.pi / 4 * wider) ** 2
    yield "exp", *minimax(exp_tail, 9, -half_ln2, half_ln2)
    yield "log", *minimax(log_tail, 6, 0, s_max**2 * wider)
    yield "sin", *minimax(sin_tail, 5, 0, eighth)
    yield "cos", *minimax(cos_tail, 5, 0, eighth)
    yield "atan", *minimax(atan_tail, 10, 0, (mpmath.sqrt(2) - 1) ** 2 * wider)


if __name__ == "__main__":
    for name, coefficients, error in fits():
        print(name, mpmath.nstr(error, 3), [float(c) for c in coefficients])
