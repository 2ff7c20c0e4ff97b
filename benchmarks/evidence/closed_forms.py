"""Laws: measured beside exact, in standard errors, with what a wrong law would have been off by.

Variance of SGLD on N(0, 1): T / (1 − h/2). Acceptance of a swap between N(0, T₁ I) and N(0, T₂ I): closed form.
"""

import numpy as np
from scipy.special import betainc

from targets import mixtures
from toolkit import sample, samplers

from .markdown import head, row

CHAINS = 200_000


def main() -> None:
    """Print the tables."""
    normal = mixtures.gaussian_mixture([[0.0]], 1.0)
    start = np.random.default_rng(1).standard_normal((CHAINS, 1))
    head("T", "h", "variance", "T/(1 − h/2)", "off by, σ", "T/(1 − h/2) with half the noise: off by, σ")
    seed = 1
    for temperature in (0.25, 1.0, 4.0):
        for h in (0.05, 0.2, 1.0, 1.5):
            n_steps = int(np.ceil(12 / h))
            sampler = samplers.sgld(h, temperature=temperature)
            seed += 1
            run = sample(normal, sampler, n_steps=n_steps, thin=n_steps, n_chains=CHAINS, init=start, seed=seed)
            law, variance, error = temperature / (1 - h / 2), float(run.draws.var()), np.sqrt(2 / CHAINS)
            off, wrong = ((variance / value - 1) / error for value in (law, law / 2))
            row(temperature, h, variance, law, float(off), float(wrong))
    print()
    head("dimension", "T₁", "T₂", "acceptance", "closed form", "off by, σ", "sign turned round")
    for dim, cold, hot in ((1, 1.0, 1.5), (1, 1.0, 10.0), (2, 1.0, 10.0), (5, 0.25, 1.0)):
        target = mixtures.gaussian_mixture([[0.0] * dim], 1.0)
        z = np.random.default_rng(3).standard_normal((CHAINS, 2, dim)) * np.sqrt([[cold], [hot]])
        sampler = samplers.resgld((1e-3 * cold, 1e-3 * hot), temperatures=(cold, hot))
        rates = sample(target, sampler, n_steps=20, thin=20, n_chains=CHAINS, init=z, seed=4).swap_rates[:, 0]
        law = float(2 * betainc(dim / 2, dim / 2, cold / (cold + hot)))
        energy = 0.5 * (z**2).sum(axis=2)
        turned = np.minimum(1.0, np.exp((1 / cold - 1 / hot) * (energy[:, 1] - energy[:, 0]))).mean()
        off = (rates.mean() - law) / (rates.std() / np.sqrt(CHAINS))
        row(dim, cold, hot, float(rates.mean()), law, float(off), float(turned))
