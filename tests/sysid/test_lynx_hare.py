"""The lynx and hare posterior of posteriordb, ``hudson_lynx_hare``, sampled by the toolkit from its own likelihood."""

import numpy as np
import pytest

from sysid import priors
from sysid.data import lynx_hare
from sysid.identification import identify
from sysid.likelihoods.trajectories import trajectory
from sysid.systems.system import System
from toolkit import sample, samplers
from toolkit.diagnostics import ess, r_hat

# Means and standard deviations of the 10,000 reference draws of posteriordb (Magnusson et al. 2022), model of
# Carpenter (2018).
REFERENCE = {
    "alpha": (0.54686, 0.06306),
    "beta": (0.027747, 0.004155),
    "gamma": (0.80010, 0.08937),
    "delta": (0.024086, 0.003528),
    "hare(0)": (34.035, 2.917),
    "lynx(0)": (5.936, 0.531),
    "sd(hare)": (0.24806, 0.04326),
    "sd(lynx)": (0.25102, 0.04359),
}
REFERENCE_DRAWS = 10_000
LEAPS = 5
PRIORS = {
    "alpha": priors.gaussian(1.0, 0.5),
    "beta": priors.gaussian(0.05, 0.05),
    "gamma": priors.gaussian(1.0, 0.5),
    "delta": priors.gaussian(0.05, 0.05),
    "hare(0)": priors.lognormal(np.log(10.0), 1.0),
    "lynx(0)": priors.lognormal(np.log(10.0), 1.0),
    "sd(hare)": priors.lognormal(-1.0, 1.0),
    "sd(lynx)": priors.lognormal(-1.0, 1.0),
}


def rates(t, x, p):
    return (p[0] * x[0] - p[1] * x[0] * x[1], -p[2] * x[1] + p[3] * x[0] * x[1])


TERMS = {
    "hare": {"hare": "alpha", "hare lynx": {"beta": -1.0}},
    "lynx": {"lynx": {"gamma": -1.0}, "hare lynx": "delta"},
}
SYSTEM = System(
    "hare and lynx", ("hare", "lynx"), tuple(REFERENCE)[:4], rates, [0.5, 0.02, 0.8, 0.02], [30.0, 4.0], terms=TERMS
)


def posterior_draws(errors, n_chains, n_steps):
    """Parameters (chain, draw, 8) in the order of REFERENCE, by Hamiltonian Monte Carlo in Laplace's coordinates."""
    law = trajectory(errors=errors)
    problem = identify(lynx_hare(), SYSTEM, likelihood=law, prior=PRIORS, log=list(REFERENCE)).scaled()
    assert problem.names == tuple(REFERENCE)
    run = sample(
        problem, samplers.hmc(0.4, n_leapfrogs=LEAPS), n_steps=n_steps, n_chains=n_chains, burn_in=n_steps // 10,
        thin=LEAPS, seed=3, init=problem.starts(n_chains, seed=4),
    )  # fmt: skip
    return problem.parameters(run)


def compare(draws, weights=None, *, printed=True):
    """Deviations (8,) of means in standard errors of both samples, and ratios (8,) of standard deviations."""
    effective, flat = ess(draws), draws.reshape(-1, len(REFERENCE))
    mean = np.average(flat, axis=0, weights=weights)
    sd = np.sqrt(np.average((flat - mean) ** 2, axis=0, weights=weights))
    wanted = np.array(list(REFERENCE.values())).T
    z = (mean - wanted[0]) / np.hypot(sd / np.sqrt(effective), wanted[1] / np.sqrt(REFERENCE_DRAWS))
    if printed:
        print(f"\nR-hat {r_hat(draws).max():.4f}, {draws.shape[0]} chains of {draws.shape[1]} draws")
        print("parameter  mean (sd), posteriordb, standard errors apart, effective draws")
        for k, name in enumerate(REFERENCE):
            print(
                f"{name:9s} {mean[k]:.5g} ({sd[k]:.4g})  {wanted[0, k]:.5g} ({wanted[1, k]:.4g})  {z[k]:+.2f}  "
                f"{effective[k]:.0f}"
            )
    return z, sd / wanted[1]


def agrees(z, ratio):
    """Whether means are within 3 standard errors and deviations within 5 %, as issue 6 asks."""
    return bool((np.abs(z) < 3.0).all() and (np.abs(ratio - 1.0) < 0.05).all())


def test_draws_agree_with_posteriordb_and_wrong_laws_do_not():
    # Seeds are fixed; with others a right sampler would fail in 2 % of cases, as 8 means are asked to be within 3.
    draws = posterior_draws("lognormal", 64, 1500)
    assert r_hat(draws).max() < 1.01
    assert ess(draws).min() > 5000
    assert agrees(*compare(draws))
    # As if σ were sampled by its logarithm without the Jacobian.
    assert not agrees(*compare(draws, 1.0 / draws[..., 6:].prod(axis=-1).ravel(), printed=False))
    assert not agrees(*compare(posterior_draws("gaussian", 64, 400), printed=False))


@pytest.mark.slow
def test_many_draws_agree_with_posteriordb():
    draws = posterior_draws("lognormal", 128, 10_000)
    assert r_hat(draws).max() < 1.001
    assert agrees(*compare(draws))
