"""The policy: densities, gradients, optimisers against closed forms."""

import numpy as np
import pytest
from scipy import stats

from vec2dag import vec2dag
from vec2dag.search.policy import Adam, GaussianPolicy, RMSprop


@pytest.fixture
def policy(rng):
    return GaussianPolicy(rng.normal(size=6), 0.3 * rng.normal(size=6))


def test_log_prob_and_entropy_equal_scipy(policy, rng):
    z = rng.normal(size=(4, 6))
    reference = stats.multivariate_normal(policy.mu, np.diag(policy.sigma**2))
    assert policy.log_prob(z) == pytest.approx(reference.logpdf(z))
    assert policy.entropy() == pytest.approx(reference.entropy())


def test_log_prob_gradient_equals_finite_differences(policy, rng):
    z, weight = rng.normal(size=(5, 6)), rng.normal(size=5)
    gradient = policy.log_prob_gradient(z, weight)
    for row, name in enumerate(("mu", "log_sigma")):
        for k in range(6):
            value = []
            for h in (1e-5, -1e-5):
                moved = GaussianPolicy(policy.mu.copy(), policy.log_sigma.copy())
                getattr(moved, name)[k] += h
                value.append(weight @ moved.log_prob(z))
            assert gradient[row, k] == pytest.approx((value[0] - value[1]) / 2e-5, abs=1e-6)


def test_samples_have_the_moments(policy, rng):
    z = policy.sample(40_000, rng)
    assert z.mean(axis=0) == pytest.approx(policy.mu, abs=0.05)
    assert z.std(axis=0) == pytest.approx(policy.sigma, rel=0.03)


def test_mode_is_the_decoded_mean(policy):
    assert np.array_equal(policy.mode(), vec2dag(policy.mu))


def test_cold_start_is_almost_symmetric(rng):
    cold = GaussianPolicy.cold(5, rng)
    assert np.abs(cold.mu).max() < 0.06
    assert not cold.log_sigma.any()


def test_adam_first_step_is_the_learning_rate_in_the_direction_of_the_sign():
    step = Adam(0.1, epsilon=0.0).step(np.array([3.0, -1e-4]))
    assert step == pytest.approx([0.1, -0.1])


def test_adam_second_step_by_hand():
    adam = Adam(0.1, beta1=0.5, beta2=0.75, epsilon=0.0)
    adam.step(np.array([1.0]))
    # m = (0.5 * 0.5 + 0.5 * 3) / (1 - 0.25), v = (0.75 * 0.25 + 0.25 * 9) / (1 - 0.5625)
    assert adam.step(np.array([3.0])) == pytest.approx([0.1 * (1.75 / 0.75) / np.sqrt(2.4375 / 0.4375)])


def test_rmsprop_by_hand():
    optimiser = RMSprop(0.1, alpha=0.9, epsilon=1e-5)
    assert optimiser.step(np.array([2.0])) == pytest.approx([0.1 * 2 / (np.sqrt(0.4) + 1e-5)])
    assert optimiser.step(np.array([1.0])) == pytest.approx([0.1 / (np.sqrt(0.46) + 1e-5)])


@pytest.mark.parametrize("optimiser", [Adam(0.05), RMSprop(0.05)])
def test_optimisers_climb_a_parabola(optimiser):
    x = np.array([3.0, -2.0])
    for _ in range(400):
        x = x + optimiser.step(-2 * (x - 1))
    assert x == pytest.approx([1, 1], abs=0.06)
