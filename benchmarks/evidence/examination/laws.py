"""Laws of discrete steps that were hunted: what, the number wanted, the number found, and how far apart they are."""

import math

import numpy as np
from scipy import stats
from scipy.linalg import solve_discrete_lyapunov

from targets import mixtures
from toolkit import sample, samplers

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
CHAINS = 40_000


def say(what: str, law: float, values: np.ndarray) -> None:
    """Print the mean of independent values beside its law, and z."""
    error = values.std(ddof=1) / math.sqrt(values.size)
    print(f"{what}: {values.mean():.5f} (wanted {law:.5f}; z = {(values.mean() - law) / error:+.2f})")


def lags(h: float, friction: float, temperature: float, *, thermostat: bool) -> None:
    """Cov(x_0, x_k) on N(0, 1) of SGHMC, or of SGNHT whose inertia holds its friction, by the Lyapunov equation."""
    keep, root = 1.0 - friction, math.sqrt(h)
    step, push = np.array([[1.0 - h, root * keep], [-root, keep]]), np.array([root, 1.0])
    covariance = solve_discrete_lyapunov(step, 2.0 * friction * temperature * np.outer(push, push))
    options = {"friction": friction, "temperature": temperature}
    sampler = samplers.sgnht(h, inertia=1e9, **options) if thermostat else samplers.sghmc(h, **options)
    start = math.sqrt(covariance[0, 0]) * np.random.default_rng(1).standard_normal((CHAINS, 1))
    run = sample(NORMAL, sampler, n_steps=170, burn_in=160, n_chains=CHAINS, seed=1, init=start)
    x, name = run.draws[:, :, 0], "SGNHT" if thermostat else "SGHMC"
    for lag in (0, 1, 3, 9):
        law = float((np.linalg.matrix_power(step, lag) @ covariance)[0, 0])
        say(f"{name}, h = {h}, η = {friction}, T = {temperature}: Cov(x_0, x_{lag})", law, x[:, 0] * x[:, lag])
    momentum = (x[:, 1] - x[:, 0]) / root
    say(f"{name}, h = {h}, η = {friction}, T = {temperature}: Cov(x, p)", float(covariance[0, 1]), x[:, 1] * momentum)


def cycles(h: float, n_steps: int, n_cycles: int, exploration: float) -> None:
    """Mean and variance of every sampling step of cosine cycles on N(0, 1), from a point, by recursion."""
    length, mean, variance, path = math.ceil(n_steps / n_cycles), 40.0, 0.0, []
    for k in range(n_steps):
        share = (k % length) / length
        size = 0.5 * h * (math.cos(math.pi * share) + 1.0)
        mean, variance = (1.0 - size) * mean, (1.0 - size) ** 2 * variance
        variance += 2.0 * size if share >= exploration else 0.0
        path.append((mean, variance))
    sampler = samplers.cyclical_sgld(h, n_cycles=n_cycles, exploration=exploration, floor=0.0)
    run = sample(NORMAL, sampler, n_steps=n_steps, n_chains=CHAINS, seed=2, init=[40.0])
    x, law = run.draws[:, :, 0], np.array(path)[run.steps]
    means = (x.mean(axis=0) - law[:, 0]) / np.sqrt(law[:, 1] / CHAINS)
    squares = (x.var(axis=0) / law[:, 1] - 1.0) / math.sqrt(2.0 / CHAINS)
    worst = float(np.abs([means, squares]).max())
    print(f"cosine cycles, h = {h}: largest |z| of {run.steps.size} steps {worst:.2f} (wanted < 4.5)")


def mala_acceptance(h: float, dim: int) -> None:
    """MALA's acceptance on N(0, I), by a million independent pairs of a place and its proposal."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((10**6, dim))
    y = (1.0 - h) * x + math.sqrt(2.0 * h) * rng.standard_normal(x.shape)
    back = ((y - (1.0 - h) * x) ** 2 - (x - (1.0 - h) * y) ** 2).sum(axis=1) / (4.0 * h)
    law = float(np.minimum(1.0, np.exp(0.5 * (x**2 - y**2).sum(axis=1) + back)).mean())
    target = mixtures.gaussian_mixture([[0.0] * dim], 1.0)
    start = rng.standard_normal((4000, dim))
    run = sample(target, samplers.mala(h), n_steps=200, n_chains=4000, seed=3, init=start)
    say(f"MALA, h = {h}, N(0, I) in {dim}-D: acceptance", law, run.acceptance[:, 0])
    p_value = stats.kstest(run.draws[:, -1, 0], "norm").pvalue
    print(f"MALA, h = {h}, N(0, I) in {dim}-D: p of the last draws {p_value:.3f} (wanted > 7e-6)")


def accumulated() -> None:
    """Moments gathered on the way against NumPy's of the stored draws."""
    from toolkit import accumulators

    gather = {"moments": accumulators.moments()}
    run = sample(NORMAL, samplers.sgld(0.3), n_steps=5000, n_chains=16, seed=4, accumulators=gather)
    found = run.accumulated["moments"]
    x = run.draws[:, :, 0]
    means = np.abs(found.mean[:, 0] - x.mean(axis=1)).max()
    spreads = np.abs(found.covariance[:, 0, 0] / x.var(axis=1, ddof=0) - 1.0)
    other = np.abs(found.covariance[:, 0, 0] / x.var(axis=1, ddof=1) - 1.0)
    print(f"accumulated moments: {means:.1e} and {min(spreads.max(), other.max()):.1e} off NumPy's (wanted < 1e-12)")


def neighbours() -> None:
    """The first chains of a larger run, in blocks of other sizes, have the bits of a smaller one."""
    from toolkit import Layout

    options = {"n_steps": 300, "seed": 5}
    few = sample(NORMAL, samplers.sgnht(0.2), n_chains=5, **options).draws
    many = sample(NORMAL, samplers.sgnht(0.2), n_chains=77, layout=Layout(lanes=13), threads=1, **options).draws
    print(f"bits of 5 chains alone and of 77 in blocks of 13: {int((few != many[:5]).sum())} differ (wanted 0)")


def main() -> None:
    """Print all of them."""
    for numbers in ((0.1, 0.1, 1.0), (0.4, 0.3, 2.5), (0.8, 1.0, 0.4)):
        lags(*numbers, thermostat=False)
    lags(0.3, 0.25, 1.7, thermostat=True)
    cycles(0.5, 48, 3, 0.25)
    cycles(1.4, 90, 4, 0.5)
    for h, dim in ((0.3, 1), (0.7, 2), (0.2, 10)):
        mala_acceptance(h, dim)
    accumulated()
    neighbours()


if __name__ == "__main__":
    main()
