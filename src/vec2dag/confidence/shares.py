"""What the graphs of many samples say: shares of directions, a graph that agrees with them, and bounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import brief, laid_out, number, shown
from ..columns import Columns as KindsOfColumns
from ..edges import Columns
from ..files.atomic import PathLike, as_json, write_together
from ..files.graphs import graph_files
from ..files.tables import columns_file
from ..graph import as_adjacency
from ..knowledge.constraints import Constraints
from ..moments import Moments
from .effects import coefficients, total_effects

__all__ = ["Bootstrap", "PairTable", "Sample", "Stability", "check_threshold"]

# The pairs that a summary shows at most.
SHOWN = 60


def check_threshold(parameter: str, value: Any) -> float:
    """A share of samples above 0, and at most all of them."""
    if number(parameter, value, above=0.0) > 1.0:
        raise ValueError(f"{parameter} must be above 0 and at most 1, got {brief(value)}")
    return float(value)


@dataclass(frozen=True, eq=False)
class Sample:
    """The graph of one sample.

    Attributes
    ----------
    index : int
        Which of the samples it is.
    edges : array of shape (m, 2), int32
        Sources and targets.
    weights : array of shape (m,)
        Their coefficients.
    free : array of shape (m,), bool
        Whether the direction is free.
    score : float
    """

    index: int
    edges: NDArray[np.int32]
    weights: NDArray[np.float64]
    free: NDArray[np.bool_]
    score: float


class PairTable(Columns):
    """Pairs of columns, or edges, by column of the table: what ``pandas.DataFrame`` takes, and ``print`` shows."""

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int | None = None) -> str:
        """As text, the first ``most`` of them."""
        cells = [list(self)]
        for k, row in enumerate(self.rows):
            if k == most:
                break
            cells.append([_shown(value) for value in row.values()])
        left = sum(isinstance(values[0] if values else "", str) for values in self.values())
        lines = laid_out(cells, "<" * left + ">" * (len(self) - left))
        total = len(next(iter(self.values()), []))
        return "\n".join([*lines, *([f"and {total - most} more"] if most is not None and total > most else [])])


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return shown(value)
    return "" if math.isnan(value) else f"{value:.3g}"


@dataclass(frozen=True)
class Stability:
    """Pairs that are adjacent in so large a share of subsamples that few of them can be there by chance.

    Attributes
    ----------
    threshold : float
        The share from which on a pair is selected; above 1 if no share is enough.
    pairs : list of (str, str)
    expected_false : float
        Bound on the expected number of pairs among them that are not adjacent in truth.
    selected : float
        Pairs that a subsample has on average.
    candidates : int
        Pairs that could be adjacent.
    """

    threshold: float
    pairs: list[tuple[str, str]]
    expected_false: float
    selected: float
    candidates: int


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Graphs of many samples of one table.

    Attributes
    ----------
    names : tuple of str
        Of the d columns.
    samples : list of Sample
        By index.
    method : {"resample", "subsample", "parametric"}
    drawn : str
        What was drawn from: rows, blocks of rows, or a Gaussian.
    wanted : int
        Samples asked for.
    stopped : {"done", "time", "interrupted"}
    moments : Moments
        Of the whole table.
    constraints : Constraints
        What was known.
    linear : bool
        Whether regressions are linear, so that coefficients are more than slopes.
    standardized : bool
        Whether coefficients are in standard deviations, as columns were divided by them.
    seconds : float
    settings : dict
        With which it was made.
    columns : Columns, optional
        What the columns are, if some are categories: edges between those have no coefficients.
    """

    names: tuple[str, ...]
    samples: list[Sample]
    method: str
    drawn: str
    wanted: int
    stopped: str
    moments: Moments
    constraints: Constraints
    linear: bool = True
    standardized: bool = False
    seconds: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
    columns: KindsOfColumns | None = None

    @property
    def n_samples(self) -> int:
        """Samples that were finished."""
        return len(self.samples)

    @cached_property
    def directed(self) -> NDArray[np.float64]:
        """Shares (d, d) of samples in which ``i -> j`` is an edge with this direction."""
        return self._counts(free=False) / self.n_samples

    @cached_property
    def free(self) -> NDArray[np.float64]:
        """Symmetric (d, d): shares of samples in which the direction of the edge is free."""
        once = self._counts(free=True) / self.n_samples
        return once + once.T

    @cached_property
    def absent(self) -> NDArray[np.float64]:
        """Symmetric (d, d): shares of samples without an edge; 1 on the diagonal."""
        count = self._counts(free=False) + self._counts(free=True)
        return (self.n_samples - count - count.T) / self.n_samples

    @property
    def adjacent(self) -> NDArray[np.float64]:
        """Symmetric (d, d): shares of samples with an edge, whatever its direction."""
        return 1.0 - self.absent

    def _counts(self, *, free: bool) -> NDArray[np.float64]:
        counts = np.zeros((len(self.names), len(self.names)))
        for sample in self.samples:
            i, j = sample.edges[sample.free == free].T
            counts[i, j] += 1.0
        return counts

    @property
    def graphs(self) -> NDArray[np.uint8]:
        """The DAGs (n_samples, d, d)."""
        A = np.zeros((self.n_samples, len(self.names), len(self.names)), np.uint8)
        for a, sample in zip(A, self.samples, strict=True):
            a[sample.edges[:, 0], sample.edges[:, 1]] = 1
        return A

    def weights(self, k: int) -> NDArray[np.float64]:
        """Coefficients (d, d) of the ``k``-th of the finished samples."""
        W, sample = np.zeros((len(self.names), len(self.names))), self.samples[k]
        W[sample.edges[:, 0], sample.edges[:, 1]] = sample.weights
        return W

    def total_effects(self, i: int, j: int) -> NDArray[np.float64]:
        """Total effects (n_samples,) of column ``i`` on ``j``; :func:`vec2dag.effects` makes an interval of them."""
        return np.array([total_effects(self.weights(k))[i, j] for k in range(self.n_samples)])

    def consensus(self, threshold: float = 0.5) -> NDArray[np.uint8]:
        """A DAG (d, d) of the pairs that are adjacent in a share of at least ``threshold`` of the samples.

        Required edges come first, then pairs in the order of how one-sided their directions are. A pair gets the
        direction that more samples have, and the other one only where that would close a cycle. A direction that no
        sample has or leaves free is never taken, nor one parent more than is known to be allowed: pairs for which
        nothing is left, which are rare, are in :meth:`left_out`. All other pairs of at least the threshold are in it,
        and no others.
        """
        return self._consensus(threshold)[0]

    def left_out(self, threshold: float = 0.5) -> list[tuple[str, str]]:
        """Pairs of at least the threshold that :meth:`consensus` has no place for."""
        return [(self.names[i], self.names[j]) for i, j in self._consensus(threshold)[1]]

    def _consensus(self, threshold: float) -> tuple[NDArray[np.uint8], list[tuple[int, int]]]:
        check_threshold("threshold", threshold)
        known, D = self.constraints, self.directed
        A = np.zeros(D.shape, np.uint8)
        reach = np.eye(len(D), dtype=bool)
        possible = known.allowed & (D + self.free > 0)

        def add(i: int, j: int) -> bool:
            if reach[j, i] or not possible[i, j] or A[:, j].sum() >= known.max_parents[j]:
                return False
            A[i, j] = 1
            reach[reach[:, i]] |= reach[j]
            return True

        out = []
        # Equal up to rounding is enough: 0.7 is met by 7 samples of 10.
        pairs = np.argwhere(np.triu(self.adjacent, 1) >= threshold - 1e-12).tolist()
        pairs.sort(key=lambda p: (not (known.required[p[0], p[1]] or known.required[p[1], p[0]]), -abs(D - D.T)[*p]))
        for i, j in pairs:
            first = (i, j) if D[i, j] >= D[j, i] else (j, i)
            if not (add(*first) or add(*first[::-1])):
                out.append((i, j))
        return A, out

    def doubtful(self, A: NDArray[np.uint8], threshold: float = 0.5) -> NDArray[np.bool_]:
        """Symmetric (d, d): edges of ``A`` whose direction fewer than a share ``threshold`` of the samples have."""
        doubt = (A != 0) & (self.directed < threshold - 1e-12)
        return doubt | doubt.T

    def confidence(self, graph: Any) -> PairTable:
        """How sure the edges of a graph are.

        Parameters
        ----------
        graph : fitted ALIAS, or array of shape (d, d)

        Returns
        -------
        PairTable
            Of every edge the shares of samples that have it in the same direction (``same``), reversed, with a free
            direction, and not at all, and of those with an edge between the two at all (``adjacent``); surest first.
        """
        A = as_adjacency(getattr(graph, "adjacency_matrix_", graph), "graph")
        if A.shape != self.directed.shape:
            raise ValueError(f"graph must have shape {self.directed.shape}, got {A.shape}")
        edges = [(int(i), int(j)) for i, j in np.argwhere(A)]
        edges.sort(key=lambda e: (-self.adjacent[*e], -self.directed[*e]))
        return self._table(edges, ("same", "reversed"))

    def edges(self) -> PairTable:
        """Every pair that is adjacent in some sample, by how many they are.

        ``source -> target`` is the direction that more samples have. Shares of the directions ``forward`` and
        ``backward``, of ``free`` and ``absent`` ones sum to 1; ``adjacent`` is 1 less ``absent``. ``coefficient`` and
        ``deviation`` are mean and standard deviation of the coefficient over the samples whose graphs have the edge in
        the direction of the row.
        """
        D = self.directed
        pairs = [
            (i, j) if D[i, j] >= D[j, i] else (j, i) for i, j in np.argwhere(np.triu(self.adjacent, 1) > 0).tolist()
        ]
        pairs.sort(key=lambda p: (-self.adjacent[*p], -abs(D[*p] - D[*p[::-1]]), p))
        table = self._table(pairs, ("forward", "backward"))
        mean, deviation = self._coefficients()
        table["coefficient"] = [float(mean[*p]) for p in pairs]
        table["deviation"] = [float(deviation[*p]) for p in pairs]
        return table

    def _table(self, pairs: Sequence[tuple[int, int]], directions: tuple[str, str]) -> PairTable:
        there, back = directions
        return PairTable(
            {
                "source": [self.names[i] for i, _ in pairs],
                "target": [self.names[j] for _, j in pairs],
                there: [float(self.directed[i, j]) for i, j in pairs],
                back: [float(self.directed[j, i]) for i, j in pairs],
                "free": [float(self.free[i, j]) for i, j in pairs],
                "absent": [float(self.absent[i, j]) for i, j in pairs],
                "adjacent": [float(self.adjacent[i, j]) for i, j in pairs],
            }
        )

    def _coefficients(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means and standard deviations (d, d), NaN where there are not enough samples."""
        count, mean, spread = (np.zeros(self.directed.shape) for _ in range(3))
        for sample in self.samples:
            place = tuple(sample.edges.T)
            count[place] += 1.0
            mean[place] += sample.weights
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = mean / count
            for sample in self.samples:
                place = tuple(sample.edges.T)
                spread[place] += (sample.weights - mean[place]) ** 2
            return mean, np.sqrt(spread / np.where(count > 1, count - 1.0, np.nan))

    def false_selections(self, threshold: float) -> float:
        """Bound on the expected number of false pairs among those of at least this share of subsamples.

        ``q^2 / ((2 threshold - 1) p)`` for ``q`` adjacent pairs a subsample of ``p`` that are possible (Meinshausen and
        Buehlmann, Stability selection, 2010, theorem 1). It holds for subsamples of half of the rows, if false pairs
        are exchangeable (each is as likely as any other to be selected) and the method is not worse than guessing.
        Neither can be checked on a table; false pairs beside true ones are more likely than others.
        """
        self._needs_halves()
        q, p = self._selected()
        return q**2 / ((2.0 * threshold - 1.0) * p) if threshold > 0.5 and p else math.inf if p else 0.0

    def stability(self, expected_false: float = 1.0) -> Stability:
        """The pairs that are adjacent so often that at most ``expected_false`` of them are false, in expectation.

        The threshold is where :meth:`false_selections` is that number, under the assumptions there.
        """
        self._needs_halves()
        number("expected_false", expected_false, above=0.0)
        q, p = self._selected()
        # q^2 / ((2 t - 1) p) = expected; just above one half, any share does.
        threshold = max((q**2 / (expected_false * p) + 1.0) / 2.0 if p else 0.5, 0.5 + 1e-9)
        known = self.constraints.required
        stable = np.triu(self.adjacent, 1) >= threshold - 1e-12
        pairs = [(self.names[i], self.names[j]) for i, j in np.argwhere(stable & ~known & ~known.T)]
        return Stability(threshold, pairs, self.false_selections(threshold), q, p)

    def _needs_halves(self) -> None:
        if self.method != "subsample":
            raise ValueError(f"stability selection is about subsamples: method='subsample', not {self.method!r}")

    def _selected(self) -> tuple[float, int]:
        """Adjacent pairs of a sample on average, and possible ones; those that are required are neither."""
        known = self.constraints
        open_ = (known.allowed | known.allowed.T) & ~known.required & ~known.required.T
        return float(np.triu(self.adjacent * open_, 1).sum()), int(np.triu(open_, 1).sum())

    def summary(self, threshold: float = 0.5) -> str:
        """What was found, as text: the pairs that are adjacent in a share of at least 0.1, and how it was made."""
        table = self.edges()
        often = [k for k, value in enumerate(table["adjacent"]) if value >= 0.1]
        few = PairTable({name: [values[k] for k in often] for name, values in table.items()})
        parts = [few.text(SHOWN)] if often else ["no pair is adjacent in a tenth of the samples"]
        parts.append(
            "shares of the samples: forward is source -> target, backward target -> source, free an edge whose "
            "direction the score does not tell"
        )
        A, out = self._consensus(threshold)
        doubtful = int(np.triu(self.doubtful(A, threshold)).sum())
        line = f"consensus: {int(A.sum())} edges of pairs adjacent in at least {threshold:g} of the samples"
        if doubtful:
            line += f", the direction of {doubtful} in fewer"
        if out:
            line += f"; {len(out)} more such pairs would close a cycle, or are more parents than known"
        parts.append(line)
        if self.method == "subsample":
            parts.append(self._stable())
        parts.append(
            f"{self.n_samples} samples ({self.method}, of {self.drawn}), {self.moments.n:g} rows, {len(self.names)} "
            f"columns, {self.seconds:.1f} s{self._ended_early()}"
        )
        return "\n\n".join(parts)

    def _stable(self) -> str:
        stable = self.stability()
        if stable.threshold > 1:
            return (
                f"stability: no share is enough to expect at most 1 false pair, as {stable.selected:.1f} of "
                f"{stable.candidates} pairs are adjacent in a sample on average"
            )
        return (
            f"stability: {len(stable.pairs)} pairs reach a share of {stable.threshold:.3g}, at which at most "
            f"{stable.expected_false:.2g} false ones are expected (if false pairs are exchangeable and the method is "
            "better than guessing)"
        )

    def _ended_early(self) -> str:
        if self.stopped == "done":
            return ""
        why = "the time was over" if self.stopped == "time" else "interrupted"
        return f"; {why} before all {self.wanted}"

    def run(self) -> dict[str, Any]:
        """What was run and how it ended: the content of ``bootstrap.json``, without the pairs."""
        return {
            "samples": self.n_samples,
            "wanted": self.wanted,
            "stopped": self.stopped,
            "method": self.method,
            "drawn": self.drawn,
            "rows": self.moments.n,
            "columns": len(self.names),
            "levels": {} if self.columns is None else self.columns.by_name,
            "seconds": round(self.seconds, 3),
            **self.settings,
        }

    def save(self, folder: PathLike, threshold: float = 0.5, **about: Any) -> list[Path]:
        """Write everything to a folder, which is made if needed: all files or none.

        Parameters
        ----------
        folder : path
            Receives ``bootstrap.csv`` (:meth:`edges`), the files of the consensus in ``consensus`` (``graph.json``,
            ``adjacency.csv``, ``cpdag.csv`` with doubtful directions both ways, ``graph.dot``, ``graph.graphml``), and
            ``bootstrap.json`` (how it was made).
        threshold : float, default 0.5
            Of the consensus.
        **about
            What else ``bootstrap.json`` should say first; the values can be written as JSON.
        """
        check_threshold("threshold", threshold)
        A = self.consensus(threshold)
        moments = self.moments.standardised() if self.standardized else self.moments
        weights = coefficients(moments, A).value if self.columns is None else None
        graph = graph_files(A, self.names, weights=weights, free=self.doubtful(A, threshold))
        run: dict[str, Any] = {**about, **self.run(), "threshold": threshold, "left_out": self.left_out(threshold)}
        if self.method == "subsample":
            run["stability"] = vars(self.stability())
        files = {"bootstrap.csv": columns_file(self.edges())} | {
            f"consensus/{name}": text for name, text in graph.items()
        }
        return write_together(folder, files | {"bootstrap.json": as_json(run)})
