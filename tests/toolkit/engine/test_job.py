"""Runs that cannot fit into memory are refused before they begin; those of which little is kept are not."""

from types import SimpleNamespace

import pytest

from targets import mixtures
from toolkit import Layout, sample, samplers, schedules, stream
from toolkit._engine.job import expected_draws

NORMAL = mixtures.gaussian_mixture([[0.0]], 1.0)
LONG, SHORT = {"n_steps": 2**45, "seed": 0}, {"n_steps": 20, "seed": 0}
TOO_LARGE = {
    "draws beyond memory": (lambda: sample(NORMAL, samplers.sgld(0.1), **LONG), "n_steps must fit into m"),
    "cycles beyond memory": (
        lambda: sample(NORMAL, samplers.cyclical_sgld(0.1), **LONG), "n_steps must fit into memory, got",
    ),
    "chains beyond memory": (lambda: sample(NORMAL, samplers.sgld(0.1), n_chains=2**31, **SHORT),
        "n_chains must fit into"),
    "trace beyond memory": (
        lambda: sample(NORMAL, samplers.sgld(0.1), **LONG, trace_every=1, keep_draws=False),
        "trace_every must fit into memory, got 1 with",
    ),
    "chunk beyond memory": (
        lambda: stream(NORMAL, samplers.sgld(0.1), **LONG, layout=Layout(chunk_steps=2**44)),
        "n_steps must fit into memory, got .* layout.chunk_steps=17592186044416",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TOO_LARGE)
def test_what_does_not_fit_is_refused(what):
    call, words = TOO_LARGE[what]
    with pytest.raises(ValueError, match=f"^{words}"):
        call()


def test_a_long_stream_fits():
    assert next(stream(NORMAL, samplers.sgld(0.1), **LONG)).n_steps > 0


@pytest.mark.parametrize(
    ("schedule", "share", "error"),
    [
        (schedules.constant(), 1.0, 0.0),
        (
            schedules.cosine_cycles(30, exploration=0.25),
            0.75,
            30 * 2 / 4096,
        ),  # each cycle has 136 looks, give or take 2
        (schedules.custom(keep=lambda steps: steps % 2**20 == 0), 1e-6, 2e-3),
    ],
)
def test_the_share_a_schedule_keeps_is_estimated(schedule, share, error):
    job = SimpleNamespace(n_steps=2**44, burn_in=2**43, thin=4, sampler=samplers.sgld(0.1, schedule=schedule))
    assert abs(expected_draws(job, 2**44) / 2**41 - share) <= error
