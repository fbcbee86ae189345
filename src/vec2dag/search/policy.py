"""The policy ``z ~ N(mu, diag sigma^2)`` over vectors, and the optimisers that move it."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ..graph import vec2dag, vec_dim
from ..knowledge import Constraints
from .checkpoint import Stateful, storable

__all__ = ["Adam", "GaussianPolicy", "Optimiser", "RMSprop"]

_LOG_2PI = float(np.log(2.0 * np.pi))


@storable
@dataclass(eq=False)
class GaussianPolicy(Stateful):
    """Diagonal Gaussian over vectors; the state of the environment never changes, so it needs no network.

    Attributes
    ----------
    mu, log_sigma : arrays of shape (m,), m = d (d + 1) / 2
    """

    STATE: ClassVar[tuple[str, ...]] = ("mu", "log_sigma")

    mu: NDArray[np.float64]
    log_sigma: NDArray[np.float64]

    @classmethod
    def cold(cls, d: int, rng: np.random.Generator) -> "GaussianPolicy":
        """The paper's start: means at zero but for a tie-breaking 0.01, standard deviations at one."""
        m = vec_dim(d)
        return cls(0.01 * rng.standard_normal(m), np.zeros(m))

    @classmethod
    def sparse(cls, d: int, rng: np.random.Generator) -> "GaussianPolicy":
        """A cold start that samples sparse graphs: cheap first steps on large ones.

        Node potentials as in :meth:`cold`; every edge is present with probability ``min(0.16, 8 / (d - 1))``, so
        that a node has at most four parents on average.
        """
        policy = cls.cold(d, rng)
        policy.mu[d:] += ndtri(min(0.16, 8.0 / max(d - 1, 1)))
        return policy

    @property
    def sigma(self) -> NDArray[np.float64]:
        """Standard deviations (m,)."""
        return np.exp(self.log_sigma)

    def sample(self, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """``size`` vectors, shape (size, m)."""
        return self.mu + self.sigma * rng.standard_normal((size, len(self.mu)))

    def log_prob(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log density at ``z`` (..., m), shape (...)."""
        x = (z - self.mu) / self.sigma
        return -0.5 * (x * x).sum(axis=-1) - self.log_sigma.sum() - 0.5 * _LOG_2PI * len(self.mu)

    def log_prob_gradient(self, z: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """``sum_k weight_k grad log pi(z_k)`` for ``z`` (B, m), ``weight`` (B,); (2, m): by mu, by log sigma."""
        x = (z - self.mu) / self.sigma
        # d log pi / d mu = x / sigma, d log pi / d log sigma = x^2 - 1
        return np.stack([weight @ x / self.sigma, weight @ (x * x) - weight.sum()])

    def entropy(self) -> float:
        """Differential entropy in nats."""
        return float(self.log_sigma.sum() + 0.5 * len(self.mu) * (1.0 + _LOG_2PI))

    def mode(self, constraints: Constraints | None = None) -> NDArray[np.uint8]:
        """The DAG (d, d) that the mean decodes to."""
        return vec2dag(self.mu, constraints=constraints)


class Optimiser(Protocol):
    """Turns an ascent gradient into a step of the same shape."""

    def step(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]: ...


@dataclass
class Adam(Stateful):
    """Kingma & Ba (2015); ``learning_rate`` may be an array that broadcasts with the gradient."""

    STATE: ClassVar[tuple[str, ...]] = ("t", "m", "v")

    learning_rate: float | NDArray[np.float64]
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-5
    t: int = 0
    m: NDArray[np.float64] | float = 0.0
    v: NDArray[np.float64] | float = 0.0

    def step(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Step uphill."""
        self.t += 1
        self.m = self.beta1 * self.m + (1.0 - self.beta1) * gradient
        self.v = self.beta2 * self.v + (1.0 - self.beta2) * gradient * gradient
        size = np.sqrt(self.v / (1.0 - self.beta2**self.t)) + self.epsilon
        return self.learning_rate * (self.m / (1.0 - self.beta1**self.t)) / size


@dataclass
class RMSprop(Stateful):
    """Running root mean square of the gradient, as A2C is commonly trained."""

    STATE: ClassVar[tuple[str, ...]] = ("v",)

    learning_rate: float | NDArray[np.float64]
    alpha: float = 0.99
    epsilon: float = 1e-5
    v: NDArray[np.float64] | float = 0.0

    def step(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Step uphill."""
        self.v = self.alpha * self.v + (1.0 - self.alpha) * gradient * gradient
        return self.learning_rate * gradient / (np.sqrt(self.v) + self.epsilon)
