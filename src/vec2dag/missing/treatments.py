"""What a model may do about missing values, what that assumes, and what is said of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import DataWarning, listing, shown, warn
from ..moments import Moments
from .gaussian import em_of, imputed
from .pairs import pairwise_of

__all__ = ["TREATMENTS", "Treatment"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Treatment:
    """What is done about missing values.

    Attributes
    ----------
    apply : callable
        Takes a table (n, d), checked and with missing values, the names of its columns, and a numpy Generator; returns
        a complete table, or Moments.
    moments : callable
        Takes the table and the names; returns Moments that stand for it.
    gives_rows : bool
        Whether ``apply`` returns a table.
    once : bool
        Whether it is done once for all samples of a bootstrap, and not anew in each.
    told : str
        What is done, and under which assumption that is right; "" where ``apply`` says so.
    alone : str
        What there is to say about a single fit.
    """

    apply: Callable[[Array, tuple[str, ...], np.random.Generator], Array | Moments]
    moments: Callable[[Array, tuple[str, ...]], Moments]
    gives_rows: bool
    once: bool = False
    told: str = ""
    alone: str = ""

    @property
    def draws(self) -> bool:
        """Whether missing values are drawn at random."""
        return self.gives_rows and not self.once

    def __call__(self, values: Array, names: tuple[str, ...], rng: np.random.Generator) -> Array | Moments:
        """The table without missing values, or its Moments; says how many there were and what was done."""
        self.tell(values, self.alone)
        return self.apply(values, names, rng)

    def tell(self, values: Array, more: str = "") -> None:
        """Warn of missing values: how many there are, what is done about them, and ``more``."""
        if self.told:
            missing, (n, d) = np.isnan(values), values.shape
            rows, columns = missing.any(axis=1).sum(), missing.any(axis=0).sum()
            warn(
                f"Missing values: {missing.sum()} of {missing.size}, in {rows} of {n} rows and {columns} of {d} "
                f"columns; {self.told}{more}",
                DataWarning,
            )


def _refuse(values: Array, names: tuple[str, ...]) -> Any:
    raise ValueError(
        f"X contains NaN, missing values, in {_counted(values, names)}; missing='drop' leaves out the "
        f"{np.isnan(values).any(axis=1).sum()} of {len(values)} rows that have one; missing='em', 'impute' and "
        "'pairwise-complete' use them if all columns are numbers"
    )


def _dropped(values: Array, names: tuple[str, ...]) -> Array:
    complete = ~np.isnan(values).any(axis=1)
    left, (n, d) = int(complete.sum()), values.shape
    # With no more rows than columns nothing can be concluded; a table that had no more before is warned of.
    if left < 2 or left <= d < n:
        raise ValueError(
            f"missing='drop' leaves {left} of {n} rows, too few for {d} columns, with NaN in {_counted(values, names)}"
            "; missing='em' and 'impute' use them all, or leave columns out"
        )
    warn(
        f"left out {n - left} of {n} rows, with missing values in {_counted(values, names)}; the {left} rows that are "
        "left stand for all if values are missing completely at random (missing='drop')",
        DataWarning,
    )
    return values[complete]


def _counted(values: Array, names: tuple[str, ...]) -> str:
    counts = zip(names, np.isnan(values).sum(axis=0).tolist(), strict=True)
    return listing(f"'{shown(name)}' ({k} NaN)" for name, k in counts if k)


AT_RANDOM = "which is right if whether a value is missing depends on nothing but the values that are there"
COUNTED = "they count as of so many rows as two columns share on average"

TREATMENTS = {
    "refuse": Treatment(lambda values, names, rng: _refuse(values, names), _refuse, gives_rows=True, once=True),
    "drop": Treatment(
        lambda values, names, rng: _dropped(values, names),
        lambda values, names: Moments.of(_dropped(values, names), names),
        gives_rows=True,
        once=True,
    ),
    "pairwise-complete": Treatment(
        lambda values, names, rng: pairwise_of(values, names),
        pairwise_of,
        gives_rows=False,
        told="every covariance is of the rows that have both columns, which is right if values are missing completely "
        f"at random; {COUNTED} (missing='pairwise-complete')",
    ),
    "em": Treatment(
        lambda values, names, rng: em_of(values, names),
        em_of,
        gives_rows=False,
        told=f"means and covariances are those of greatest likelihood for a Gaussian, {AT_RANDOM}; {COUNTED} "
        "(missing='em')",
    ),
    "impute": Treatment(
        lambda values, names, rng: imputed(values, em_of(values, names), rng),
        em_of,
        gives_rows=True,
        told=f"they are drawn at random from a Gaussian given the others of their row, {AT_RANDOM} (missing='impute')",
        alone=". This is one draw of many: a bootstrap draws anew for every sample, and shows what they leave open",
    ),
}
