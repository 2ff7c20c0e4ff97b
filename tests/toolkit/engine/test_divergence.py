"""A replica that diverges stops, is named, and takes nobody with it."""

import numpy as np
import pytest

from toolkit import DivergenceError, Layout, Target, sample, samplers, stream


def log_block(position, energy, gradient, parameters, scratch):
    """U = −log x for x > 0: −log of a negative number is nan, and 1/x grows without bound."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        energy[lane] = -np.log(x)
        gradient[0, lane] = -1.0 / x


def quartic_block(position, energy, gradient, parameters, scratch):
    for lane in range(position.shape[1]):
        energy[lane] = position[0, lane] ** 4
        gradient[0, lane] = 4.0 * position[0, lane] ** 3


LOG, QUARTIC = Target("log", 1, log_block), Target("quartic", 1, quartic_block)


def test_divergence_names_the_place_and_keeps_the_draws():
    start = np.array([[0.1], [5.0], [0.2]])
    with pytest.raises(DivergenceError, match="chain 1, replica 0 diverged at step") as caught:
        sample(
            QUARTIC, samplers.sgld(0.02), n_steps=500, n_chains=3, init=start, seed=6, layout=Layout(chunk_steps=100)
        )
    error = caught.value
    assert (error.chain, error.replica) == (1, 0)
    assert np.isfinite(error.state).all()
    assert abs(error.state.item()) > 10.0
    assert "make the step size smaller" in str(error)
    draws = error.run.draws
    assert draws.shape == (3, 100, 1)
    assert np.isfinite(draws[1, : error.step]).all()
    assert np.isnan(draws[1, error.step :]).all()
    alone = sample(QUARTIC, samplers.sgld(0.02), n_steps=100, n_chains=1, init=start[:1], seed=6).draws
    np.testing.assert_array_equal(draws[0], alone[0])  # the others went on as if nothing had been
    assert np.isfinite(draws[2]).all()
    np.testing.assert_array_equal(error.state, draws[1, error.step - 1])


def test_divergence_of_the_energy_alone():
    with pytest.raises(DivergenceError, match="The energy is not finite there"):
        sample(LOG, samplers.sgld(0.5), n_steps=2000, n_chains=4, init=[1.0], seed=7)


def test_divergence_of_a_hot_replica_does_not_swap_into_the_cold_one():
    sampler = samplers.resgld((1e-4, 0.3), temperatures=(1.0, 1.5))
    with pytest.raises(DivergenceError) as caught:
        sample(QUARTIC, sampler, n_steps=300, n_chains=5, init=[1.5], seed=8, keep_replicas=True)
    error = caught.value
    assert error.replica == 1
    assert np.isfinite(error.run.draws).all()
    np.testing.assert_array_equal(error.state, error.run.replica_draws[error.chain, 1, error.step - 1])


def wall_block(position, energy, gradient, parameters, scratch):
    """U = x²/2 for |x| < ½ and infinite beyond."""
    for lane in range(position.shape[1]):
        x = position[0, lane]
        energy[lane] = 0.5 * x * x if abs(x) < 0.5 else np.inf
        gradient[0, lane] = x


WALL = Target("wall", 1, wall_block)


def test_an_infinite_energy_never_swaps():
    """Of two replicas the one that diverged is named, and its place does not pass to the other."""
    sampler = samplers.resgld((1.0, 1e-9), temperatures=(1.0, 10.0))
    with pytest.raises(DivergenceError, match=r"chain 0, replica 0 .* 1 of 2 replicas diverged") as caught:
        sample(WALL, sampler, n_steps=50, init=[0.1], seed=1, keep_replicas=True)
    assert np.isfinite(caught.value.run.replica_draws[0, 1]).all()


def test_the_first_to_diverge_is_named():
    with pytest.raises(DivergenceError) as caught:
        sample(QUARTIC, samplers.sgld(0.02), n_steps=100, n_chains=3, init=[[0.1], [5.0], [6.0]], seed=6)
    status = np.isnan(caught.value.run.draws[:, :, 0]).argmax(axis=1)
    assert status[2] < status[1]
    assert (caught.value.chain, caught.value.step) == (2, status[2])


def test_a_last_draw_of_infinite_energy_does_not_pass():
    with pytest.raises(DivergenceError) as caught:
        sample(WALL, samplers.sgld(10.0), n_steps=1, n_chains=2, seed=0, keep_energies=True)
    assert caught.value.step == 1
    assert np.isnan(caught.value.run.energies).any()


def test_divergence_in_a_stream():
    chunks = stream(QUARTIC, samplers.sgld(0.02), n_steps=500, init=[5.0], seed=6, layout=Layout(chunk_steps=1))
    with pytest.raises(DivergenceError):
        list(chunks)
