"""What to do about a warning, in plain words."""

import re

__all__ = ["ADVICE", "advice"]

# By what the sentence of a warning contains; the first that fits counts. A warning that none fits is shown without.
ADVICE: tuple[tuple[str, str], ...] = (
    (
        "Duplicated columns",
        "Leave all but one of each group out (--exclude NAME). Which of them has the edges here is chance.",
    ),
    (
        "with no more rows than columns",
        "Get more rows, or choose the columns that matter (--columns). Do not read anything into this graph.",
    ),
    (
        "Linearly dependent columns",
        "Leave one column of each dependence out, such as a total beside its parts. Until then, do not read the edges "
        "among them.",
    ),
    (
        "wildly different scales",
        "If the columns do not share one unit, use the default criterion, or --standardize. If they do, and noises are "
        "alike in that unit, this is as it should be.",
    ),
    (
        "very few distinct values",
        "Do not rely on the directions of their edges. Codes without an order, such as kinds or places, mean nothing "
        "as numbers: --categorical COLUMN treats them as categories.",
    ),
    (
        "assumes equal noise variances",
        "Run it again with the default criterion, which does not depend on units, and compare the two graphs: "
        "vec2dag report A B. Rely only on directions that both have.",
    ),
    (
        "noise of the Gaussian processes",
        "Standardise the columns (--standardize), or give a smaller --gp-alpha.",
    ),
    (
        "before a first graph was ready",
        "Give more time (--time-budget), or let it go on with the same --checkpoint. This is not a result.",
    ),
    (
        "before pruning had ended|while pruning",
        "There may be more edges here than the tests would leave. Give more time, or --prune none if that is meant.",
    ),
    (
        "the best DAG so far is returned",
        "Run it again to the end; with --checkpoint it goes on from where it was.",
    ),
    (
        "checkpoint could not be written",
        "The graph is not affected. Make room on the disk, or choose another place, before the next long run.",
    ),
    (
        "holds an unfinished search",
        "The graph is not affected. To continue the earlier search, run it with its own settings and seed.",
    ),
    (
        "left out [0-9]+ of [0-9]+ rows",
        "If values are missing for a reason that the columns have to do with, the rows that are left are a biased "
        "sample. Find out why they are missing.",
    ),
    (
        "Missing values: [0-9]+ of",
        "Find out why values are missing. If a value is missing because of what it would have been, such as an income "
        "that is high, no way of treating it is right. How sure edges are, vec2dag bootstrap tells.",
    ),
    (
        "wherever they have values|that no row has both of|contradict each other|EM ended after",
        "Too few values for so many columns: leave out the columns that have fewest (--exclude), and see what changes.",
    ),
    (
        "read piece by piece",
        "Nothing: linear graphs need no more. To have distributions in this page, make it from a sample of the rows.",
    ),
    (
        "are rounded to float64",
        "Leave identifiers out (--exclude NAME): they have no causes. Subtract a common start from other large "
        "numbers, such as times.",
    ),
    (
        "left out because constant",
        "Nothing: a column that never varies has no place in a causal graph.",
    ),
    (
        "Required edges of columns that were left out",
        "Check that leaving these columns out was meant: what is known about them no longer counts.",
    ),
    (
        "Paths are not required|Only edges are forbidden",
        "State the edges themselves, as required or forbidden, where you know them.",
    ),
    (
        "steps of time are unequal",
        "Bring the rows to equal steps of time first, by averaging or interpolating.",
    ),
    (
        "rows of a time series are drawn",
        "Take the shares of samples with care: if more lags matter than were given, they look surer than they are.",
    ),
    (
        "read as|begin with #|begins with #|row names|no name and no values|unnamed first column",
        "Check that the table was read as it is meant; --header, --decimal, --encoding and --comment say it exactly.",
    ),
)


def advice(sentence: str) -> str | None:
    """What to do about a warning; None if there is nothing to say."""
    return next((text for pattern, text in ADVICE if re.search(pattern, sentence)), None)
