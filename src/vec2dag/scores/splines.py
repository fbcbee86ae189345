"""Thin-plate regression splines of one column (Wood, J. R. Stat. Soc. B 65, 2003), and least squares on several."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, eigh, null_space, svd
from scipy.sparse.linalg import eigsh

from .. import _smoothing

__all__ = ["Penalised", "Smooth", "basis_size", "smooth"]

Array = NDArray[np.float64]

# Knots from which the spline basis is distilled. All up to here, as in mgcv; evenly spaced in rank beyond.
MAX_KNOTS = 1000
# Penalty on every coefficient relative to its information: decides only where parents determine each other.
RIDGE = 1e-9


class Smooth(NamedTuple):
    """Basis of the smooth functions of one column, in the coordinates in which its penalty is diagonal.

    Attributes
    ----------
    Z : array of shape (n, k - 1)
        Orthonormal centred columns, from the straight line to the roughest.
    penalty : array of shape (k - 1,)
        Roughness of each: 0 for the line and 1 for the second.
    """

    Z: Array
    penalty: Array


def basis_size(n: int, p: int, n_basis: int) -> int:
    """Size of the basis of each of ``p`` terms for ``n`` rows.

    The rule of CAM, ``ceil(n / 3p)`` where there are fewer than three rows a basis function, but not below 3 (a line
    and a bend), or 2 (a line) where even those have no row left for the noise.
    """
    size = n_basis if n >= 3 * n_basis * p else min(n_basis, max(3, -(-n // (3 * p))))
    return size if 1 + p * (size - 1) < n else 2


def smooth(x: Array, size: int) -> Smooth:
    """Thin-plate regression spline basis of ``x`` (n,), at most ``size`` functions with the constant.

    Columns of few distinct values get as many functions as values; ``x`` must not be constant.
    """
    centred = (x - x.mean()) / x.std()
    values, place = np.unique(centred, return_inverse=True)
    size = min(size, len(values))
    if size == 2:
        return Smooth(centred[:, None] / np.sqrt(len(x)), np.zeros(1))
    knots = values
    if len(values) > MAX_KNOTS:
        knots = values[np.linspace(0, len(values) - 1, MAX_KNOTS).round().astype(int)]
    # f(t) = a + b t + sum_k c_k |t - knot_k|^3 / 12 with sum c_k = sum c_k knot_k = 0 is a natural cubic spline and has
    # roughness c'Ec = int f''^2; the basis keeps those c that the leading eigenvectors of E span.
    E = np.abs(knots[:, None] - knots[None, :])
    E *= E * E / 12
    if len(knots) > 5 * size:
        _, U = eigsh(E, size, v0=np.linspace(1.0, 2.0, len(knots)))
    else:
        sizes, U = eigh(E)
        U = U[:, np.argsort(-np.abs(sizes))[:size]]
    C = U @ null_space(np.vstack([np.ones_like(knots), knots]) @ U)
    bends = _natural_spline(knots, E @ C, values)[place]
    B = np.column_stack([centred, bends - bends.mean(axis=0)])
    P = np.zeros((B.shape[1], B.shape[1]))
    P[1:, 1:] = C.T @ E @ C
    # Coordinates in which B'B = I, without the directions that far outliers leave empty, and P is diagonal.
    norms = np.linalg.norm(B, axis=0)
    Q, s, Vt = svd(B / norms, full_matrices=False)
    kept = s > 1e-10 * s[0]
    T = (Vt[kept].T / s[kept]) / norms[:, None]
    roughness, W = eigh(T.T @ P @ T)
    rough = np.maximum(roughness[1:], 1e-12 * roughness[-1])
    return Smooth(Q[:, kept] @ W, np.concatenate([[0.0], rough / rough[:1]]))


def _natural_spline(knots: Array, f: Array, x: Array) -> Array:
    """Values (m, k) at ``x`` (m,) of the natural cubic splines that have the values ``f`` at the knots."""
    if len(knots) == len(x):
        return f
    from scipy.interpolate import CubicSpline  # half a second, which short tables need not wait

    return np.asarray(CubicSpline(knots, f, bc_type="natural")(x))


@dataclass(frozen=True, eq=False)
class Penalised:
    """Penalised least squares on the terms of an additive regression.

    Attributes
    ----------
    n : int
        Rows.
    G : array of shape (q, q)
        Inner products of the basis functions, with a ridge.
    c : array of shape (q,)
        Those with the target, which is centred and of length 1.
    penalty : array of shape (q,)
    ends : array of shape (p,), int
        Where the coefficients of each of the p terms end.
    """

    n: int
    G: Array
    c: Array
    penalty: Array
    ends: NDArray[np.int64]

    @classmethod
    def of(cls, y: Array, smooths: Sequence[Smooth]) -> "Penalised":
        """Of ``y`` (n,) on the sum of smooth functions."""
        Z = np.hstack([s.Z for s in smooths])
        G = Z.T @ Z + RIDGE * np.eye(Z.shape[1])
        c = Z.T @ ((y - y.mean()) / (y.std() * np.sqrt(len(y))))
        return cls(
            len(y), G, c, np.concatenate([s.penalty for s in smooths]), np.cumsum([len(s.penalty) for s in smooths])
        )

    @property
    def member(self) -> Array:
        """(p, q): 1 where a coefficient belongs to a term."""
        return (self._owner == np.arange(len(self.ends))[:, None]).astype(np.float64)

    @property
    def _owner(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.ends)), np.diff(self.ends, prepend=0))

    def smoothing(self) -> tuple[Array, float, float]:
        """Logarithms (p,) of the smoothing parameters by generalised cross-validation (Wood, J. R. Stat. Soc. B 70,
        2008), the share of the variance that is left, and the degrees of freedom that are."""
        rho, rss, free = _smoothing.smoothing(self.G, self.c, self.penalty, self.ends, self.n)
        return rho, float(rss), float(free)

    def solve(self, rho: Array) -> tuple[Array, Array, Array, float]:
        """Penalties w = diag W, M = (G + W)^-1, coefficients b = Mc, and the residual sum of squares."""
        w = np.exp(rho)[self._owner] * self.penalty
        M = cho_solve(cho_factor(self.G + np.diag(w)), np.eye(len(w)))
        b = M @ self.c
        return w, M, b, max(1.0 - self.c @ b - w @ b**2, 1e-20)
