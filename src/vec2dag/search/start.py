"""Where a search starts: nowhere in particular, at the greedy order for equal variances, or at a given graph."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from .. import _kernels
from .._checks import as_real, brief, choose, quoted
from ..graph import as_adjacency, dag2vec, is_dag, topological_order, vec_dim
from ..scores import GraphScore, Score, needs_local
from .checkpoint import storable
from .descent import CompiledDescent
from .policy import GaussianPolicy

__all__ = ["STARTS", "Start", "equal_variance_order", "find_start", "policy_at", "sparse_order"]

# What needs rows, "score", is made by whoever has them.
STARTS = ("auto", "random", "score")


@storable
@dataclass(frozen=True, eq=False)
class Start:
    """Where a search starts.

    Attributes
    ----------
    name : {"random", "equal-variance order", "score order", "sparse order", "given"}
        For people.
    order : array of shape (d,), optional
        None is the algorithm's own cold start.
    A : array of shape (d, d), uint8, optional
        The edges along the order; None if it is not said which.
    policy : GaussianPolicy, optional
        Around them.
    near : bool
        Whether it is known to be near the optimum, so that a policy settles soon.
    wanted_random : bool
        Whether somebody has asked for a random start.
    """

    name: str = "random"
    order: NDArray[np.int64] | None = None
    A: NDArray[np.uint8] | None = None
    policy: GaussianPolicy | None = None
    near: bool = False
    wanted_random: bool = False

    @classmethod
    def at(cls, order: NDArray[np.int64], name: str = "given") -> "Start":
        """At an order, which says nothing about edges."""
        d = len(order)
        policy = policy_at(np.zeros((d, d), np.uint8), order, sigma=2.0 / d)
        policy.mu[d:] = 0.0
        return cls(name, order, None, policy)

    def policy_for(self, d: int) -> GaussianPolicy | None:
        """A copy of the policy, which a search may modify; None is a cold start."""
        if self.policy is None:
            return None
        if len(self.policy.mu) != vec_dim(d):
            raise ValueError(f"init has {len(self.policy.mu)} coordinates; graphs of {d} nodes have {vec_dim(d)}")
        return GaussianPolicy(self.policy.mu.copy(), self.policy.log_sigma.copy())


def find_start(init: Any, score: GraphScore, greedy: bool) -> Start:
    """The start that ``init`` stands for; ``"auto"`` is the greedy order if ``greedy``, and random otherwise."""
    d = score.d
    if isinstance(init, Start):
        return init
    if isinstance(init, str):
        choose("init", init, dict.fromkeys(STARTS))
        if init == "score":
            raise ValueError("init='score' needs the rows of a table, which no score shows: init=score_order(X)")
        if init == "random" or not greedy:
            return Start(wanted_random=init == "random")
        linear = needs_local(score, "the equal-variance order")
        order = equal_variance_order(linear)
        A = CompiledDescent(linear).select(order)
        return Start("equal-variance order", order, A, policy_at(A, order, sigma=2.0 / d), near=True)
    if isinstance(init, GaussianPolicy):
        return Start("given", policy=init)
    values = as_real(init, "init")
    if values.shape == (d, d):
        A = as_adjacency(values, "init")
        if not is_dag(A):
            raise ValueError("init has a directed cycle: it must be a DAG or an order")
        if (wrong := score.constraints.violations(A)) is not None:
            raise ValueError(f"init contradicts what is known: {wrong}")
        order = score.constraints.extend(topological_order(A))
        return Start("given", order, A, policy_at(A, order, sigma=2.0 / d))
    if values.shape == (d,) and sorted(values.tolist()) == list(range(d)):
        order = values.astype(np.int64)
        if not score.constraints.respects(order):
            place = np.argsort(order)
            i, j = np.argwhere(score.constraints.before & (place[:, None] > place))[0]
            raise ValueError(
                f"init contradicts what is known: it has {quoted([score.names[j]])} before {quoted([score.names[i]])}"
            )
        return Start.at(order)
    raise ValueError(
        f"init must be {', '.join(map(repr, STARTS))}, an adjacency matrix {(d, d)}, or an order of {d} columns, "
        f"got {brief(init)}"
    )


def policy_at(A: NDArray[np.uint8], order: NDArray[np.int64], sigma: float) -> GaussianPolicy:
    """A policy around a DAG and an order of it: potentials evenly in [-1, 1], edge potentials at 1 and -1."""
    d = len(order)
    mu = dag2vec(A)
    mu[order] = np.linspace(-1.0, 1.0, d)
    # An absent edge is sampled with probability 0.02, or less on large graphs: one or two strange parents a node.
    log_sigma = np.full_like(mu, np.log(-1.0 / ndtri(min(0.02, 2.0 / d))))
    log_sigma[:d] = np.log(sigma)
    return GaussianPolicy(mu, log_sigma)


def equal_variance_order(score: Score) -> NDArray[np.int64]:
    """Greedy order under equal noise variances: the least variance given those already taken comes next.

    Chen, Drton & Wang (2019); for scores with linear regression.
    """
    if score.statistics is None:
        raise ValueError("the equal-variance order needs a score with linear regression")
    C, _, scale, *_ = score.statistics
    order = np.empty(score.d, np.int64)
    _kernels.equal_variance_order(C[0], scale, score.constraints.before, order)
    return order


def sparse_order(descent: CompiledDescent) -> NDArray[np.int64]:
    """An order in which nodes have few predecessors that matter to them.

    Nodes are neighbours if one is selected for the other where all are allowed. The last node is the one with the
    fewest neighbours, which then become neighbours of each other, as a regression on them would have it; and so on
    with the rest: minimum-degree elimination, as for sparse Cholesky factors.
    """
    selected = descent.blankets().astype(bool)
    near = selected | selected.T
    d = len(near)
    order, degree = np.empty(d, np.int64), near.sum(axis=1).astype(float)
    for t in range(d - 1, -1, -1):
        node = order[t] = int(degree.argmin())
        around = np.flatnonzero(near[node])
        near[np.ix_(around, around)] = True
        near[around, around] = False
        near[node] = near[:, node] = False
        degree[around] = near[around].sum(axis=1)
        degree[node] = np.inf
    return order
