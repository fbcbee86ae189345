"""``vec2dag discover``: the causal graph of a table."""

import argparse
import csv
import io
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .shared import (
    BAD_INPUT,
    DONE,
    INTERRUPTED,
    add_output_options,
    add_table_options,
    bundled,
    deliver,
    load_data,
    noting,
    say,
    seed,
    telling,
)

__all__ = [
    "add_model_options",
    "add_to",
    "is_terminal",
    "model_parameters",
    "run",
    "with_knowledge",
]

PICTURE, PAGE = "graph.png", "report.html"

DISCOVER = """\
Learn the causal graph (a DAG) behind a table and write it to a folder.

DATA is a CSV, TSV, Parquet, Feather, NPY or NPZ file, packed or not, with one row per observation and one
column per variable, of numbers or of categories; - for the standard input; or the name of a bundled dataset
(sachs). The folder receives edges.csv, graph.json, adjacency.csv, cpdag.csv, graph.dot, graph.graphml, run.json (what
was run, with which versions and seed, in how many seconds), summary.json (what vec2dag report shows of the data) and,
where all columns are categories, tables.json (their probabilities given their causes).
"""

EXAMPLES = """\
examples:
  vec2dag discover sachs -o out --plot --report           with a picture, and a page for a browser
  vec2dag discover table.csv -o out --criterion bic-ev    equal noise variances: directions are identified
  vec2dag discover table.csv -o out --regression gp-auto  nonlinear: Gaussian processes, then CAM pruning
  vec2dag discover table.csv -o out --time-budget 60      the best graph found in a minute
  vec2dag discover table.csv -o out --interventions what  the column "what" names what was set in each row

exit codes: 0 done, 2 bad input or a file that cannot be written (one sentence on stderr says which and why), 130
interrupted and 143 terminated (the best graph so far is written, if there is one)
"""


class _Moved(argparse.Action):
    """An option of an earlier version."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.error("--score is now called --criterion")


def add_to(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "discover",
        help="learn the causal graph of a table",
        description=DISCOVER,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.set_defaults(run=run)
    p.add_argument("--score", action=_Moved, help=argparse.SUPPRESS)
    data = p.add_argument("data", metavar="DATA", help="a file, or the name of a bundled dataset")
    p.add_argument("-o", "--output", metavar="DIR", required=True, type=Path, help="folder to write to")
    search = add_model_options(p)
    search.add_argument("--checkpoint", type=Path, metavar="FILE", help="keep the search in FILE, and continue from it")
    search.add_argument("--time-budget", type=float, metavar="SECONDS", help="stop with the best graph so far")
    search.add_argument("--seed", type=seed, default=0, metavar="N", help="same seed, same graph (default: 0)")
    search.add_argument("--jobs", type=int, metavar="N", help="threads (default: every core)")
    add_table_options(p.add_argument_group("table"), data)
    looks = p.add_argument_group("to look at")
    looks.add_argument("--plot", action="store_true", help='also a picture, graph.png: pip install "vec2dag[plot]"')
    looks.add_argument("--report", action="store_true", help="also a page to explore in a browser, report.html")
    add_output_options(p)


def add_model_options(p: Any) -> Any:
    """What is fitted, with what knowledge and how; returns the group of options about the search."""
    model = p.add_argument_group("model")
    model.add_argument(
        "--criterion",
        metavar="NAME",
        default="auto",
        help="auto (default): the first that fits the columns. Of numbers: ebic-nv (unequal noise variances, "
        "independent of units, a price for many columns); bic-nv (the paper's, without that price); bge (Bayesian); "
        "bic-ev, ebic-ev, ls (equal noise variances, for one common unit). Of categories: bdeu (Bayesian), "
        "bic-cat. Of both: ebic-dg, or without the price for many columns bic-dg",
    )
    model.add_argument("--gamma", type=float, metavar="G", help="of bic: weight of the price for many columns, 0 to 1")
    model.add_argument("--discount", type=float, metavar="F", help="of bic: factor of the price ln n (default: 1)")
    model.add_argument(
        "--regression",
        metavar="NAME",
        default="linear",
        help="linear (default); additive: sums of smooth functions; gp-auto: Gaussian processes that learn noise and "
        "scales, for real tables; gp: the paper's, with fixed noise",
    )
    model.add_argument("--gp-alpha", type=float, metavar="V", help="variance of the noise (default: 1)")
    model.add_argument(
        "--gp-median-scale", action="store_true", help="divide every set of parents by its median distance"
    )
    model.add_argument(
        "--standardize",
        action=argparse.BooleanOptionalAction,
        default="auto",
        help="divide columns by their standard deviations (default: for gp, unless variances are taken to be equal)",
    )
    model.add_argument(
        "--prune",
        metavar="NAME",
        default="auto",
        help="linear (coefficients from T on), bic, cam (additive regression), ci (conditional independence), none; "
        "auto: linear for equal variances, cam for gp, none otherwise (default: auto)",
    )
    model.add_argument("--prune-threshold", type=float, metavar="T", help="of linear (default: 0.3)")
    model.add_argument("--prune-alpha", type=float, metavar="P", help="significance for cam and ci (default: 0.001)")
    known = p.add_argument_group("what is known")
    known.add_argument(
        "--knowledge", type=Path, metavar="FILE", help="required, forbidden and ordered edges: JSON, or Tetrad's text"
    )
    known.add_argument("--require", action="append", default=[], metavar='"A -> B"', help="this edge is in the graph")
    known.add_argument(
        "--forbid", action="append", default=[], metavar='"A -> B"', help='this edge is not; "gene* -> age" are many'
    )
    known.add_argument(
        "--tier", action="append", default=[], metavar="A,B", help="the first, second ... of these comes first, second"
    )
    known.add_argument("--exogenous", action="append", default=[], metavar="A,B", help="columns without causes")
    known.add_argument("--max-parents", type=int, metavar="N", help="of every column at most")
    known.add_argument(
        "--interventions",
        metavar="COLUMN",
        help="this column names what somebody has set in each row (several with + or ; between them; empty, none or "
        "observational: nothing), whose causes did not act there",
    )
    time = p.add_argument_group("time series")
    time.add_argument("--lags", type=int, metavar="N", help="add the columns of 1 to N rows before as possible causes")
    time.add_argument("--time", metavar="NAME", help="the column that orders the rows (default: they are in order)")
    time.add_argument(
        "--contemporaneous",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="with --lags: edges within the same row (default: yes)",
    )
    search = p.add_argument_group("search")
    search.add_argument(
        "--algorithm",
        metavar="NAME",
        default="auto",
        help="local, orders, conditional, credit, ppo, a2c, reinforce (default: auto)",
    )
    search.add_argument("--init", metavar="NAME", default="auto", help="where it starts: random, score (default: auto)")
    search.add_argument("--no-refine", action="store_true", help="stop where the algorithm does")
    search.add_argument("--n-steps", type=int, metavar="N", help="updates of the named algorithm at most")
    search.add_argument("--batch-size", type=int, metavar="N", help="graphs that it samples for an update")
    search.add_argument("--learning-rate", type=float, metavar="R", help="of the named algorithm")
    return search


def run(arguments: argparse.Namespace) -> int:
    """Read, fit, write, print."""
    from ..files.atomic import as_json, check_writable

    parameters = model_parameters(arguments)
    if arguments.plot and find_spec("matplotlib") is None:
        raise ImportError('--plot needs matplotlib: pip install "vec2dag[plot]"')
    check_writable(arguments.output)
    X, names, notes = load_data(arguments, parameters)
    with telling(notes):
        X, names, knowledge = with_knowledge(arguments, X, names, notes)

        from ..estimator import ALIAS

        model = ALIAS(**parameters, knowledge=knowledge, verbose=int(is_terminal() and not arguments.quiet))
        with noting(notes):
            model.fit(X, names=names, interventions=arguments.targets)
        interrupted = model.search_.stopped == "interrupted"
        wanted = [name for name, asked in ((PICTURE, arguments.plot), (PAGE, arguments.report)) if asked]
        about = {
            "data": str(arguments.data),
            "command": arguments.command_line,
            "warnings": list(dict.fromkeys(notes)),
            "beside": ["summary.json", *([] if interrupted else wanted)],
        }
        text = model.summary()
        if arguments.json:
            text = as_json({"edges": list(model.edges_.rows), "run": model.run() | about}).decode()
        # Only then what takes its time, or may fail: a graph is not lost for a picture of it.
        if not deliver(lambda: _save(model, X, arguments.output, about), text, arguments):
            return BAD_INPUT
        if interrupted and wanted:
            notes.append(f"{' and '.join(wanted)} were not made: vec2dag report {arguments.output} makes the page")
        elif wanted:
            with noting(notes):
                interrupted = not _looks(model, X, arguments, about)
    return INTERRUPTED if interrupted else DONE


def _save(model: Any, X: Any, folder: Path, about: dict[str, Any]) -> None:
    """Write the graph, and what a page shows beyond it; pictures and pages of an earlier graph go."""
    from ..report import summary

    files = {"summary.json": json.dumps(summary(model, X), separators=(",", ":")).encode()}
    model.save(folder, files=files, **about)


def _looks(model: Any, X: Any, arguments: argparse.Namespace, about: dict[str, Any]) -> bool:
    """Write page and picture, as asked, beside the true graph where that is known; whether they could be finished."""
    from .. import report
    from ..files.atomic import write_together

    dataset = bundled(arguments.data)
    truth = dataset if dataset is not None and model.n_features_in_ == len(dataset.names) else None
    files = {}
    try:
        if arguments.report:
            source = replace(report.of_model(model, X, about=about), label="this run")
            other = None if truth is None else report.of_graph(truth.A, truth.names, "the known graph")
            files[PAGE] = report.page(source, other).encode()
        if arguments.plot:
            files[PICTURE] = _picture(model, truth)
    except KeyboardInterrupt:
        say(f"interrupted before {' and '.join(about['beside'][1:])} were made; the graph is in {arguments.output}")
        return False
    write_together(arguments.output, files)
    return True


def _picture(model: Any, truth: Any) -> bytes:
    """The graph as a PNG file, beside the true one if that is known."""
    from .. import plot
    from .._checks import warn

    if truth is None:
        figure: Any = plot.graph(model).figure
    else:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 5), layout="tight")
        for ax, of, title in zip(figure.subplots(1, 2), (model, truth.A), ("found", "known"), strict=True):
            plot.graph(of, names=None if of is model else truth.names, ax=ax)
            ax.set_title(title)
    content = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(content, format="png", dpi=150)
    if any("missing from" in str(w.message) for w in caught):
        warn(
            f"{PICTURE}: its font lacks letters of some names, which are drawn as boxes; {PAGE} (--report) has them all"
        )
    return content.getvalue()


def _stated_knowledge(arguments: argparse.Namespace) -> Any:
    """What is known, from a file and from options."""
    from ..knowledge import Knowledge

    said = Knowledge(
        required=arguments.require,
        forbidden=arguments.forbid,
        tiers=[_names(tier) for tier in arguments.tier],
        exogenous=[name for text in arguments.exogenous for name in _names(text)],
        max_parents=arguments.max_parents,
    )
    return said if arguments.knowledge is None else Knowledge.read(arguments.knowledge) | said


def with_knowledge(
    arguments: argparse.Namespace, X: Any, names: tuple[str, ...], notes: list[str]
) -> tuple[Any, tuple[str, ...], Any]:
    """The table, with the columns of rows before if asked, its names, and what is known of them."""
    knowledge = _stated_knowledge(arguments)
    with noting(notes):
        series = _time_series(arguments, X, names)
    if series is None:
        return X, names, knowledge
    return series.X, series.names, series.knowledge | knowledge


def _names(text: str) -> list[str]:
    """Names with commas between them; those that have commas themselves stand in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def _time_series(arguments: argparse.Namespace, X: Any, names: tuple[str, ...]) -> Any:
    """The table with the columns of rows before, if asked."""
    from .._checks import quoted
    from ..columns import Coded
    from ..knowledge import lagged

    if arguments.lags is None:
        for option, used in (
            ("--time", arguments.time is not None),
            ("--no-contemporaneous", not arguments.contemporaneous),
        ):
            if used:
                raise ValueError(f"{option} has no effect without --lags")
        return None
    if arguments.interventions is not None:
        raise ValueError("--interventions are of rows that do not depend on each other, as --lags takes them to do")
    if isinstance(X, Coded):
        raise ValueError(f"--lags is for numbers, and {quoted(X.columns.by_name)} are categories: --exclude them")
    if arguments.missing == "drop":
        raise ValueError("--missing drop would make rows neighbours that are not, as --lags takes them: fill the gaps")
    return lagged(X, arguments.lags, names=names, time=arguments.time, contemporaneous=arguments.contemporaneous)


def is_terminal() -> bool:
    """Whether somebody watches what is said."""
    return sys.stderr is not None and sys.stderr.isatty()


def model_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """Of the estimator; the library knows the names, and which settings each has."""
    from ..prune import PRUNERS
    from ..scores import AUTO, CRITERIA, REGRESSIONS
    from ..search import ALGORITHMS, STARTS

    # Prices without a name are those of numbers.
    priced = arguments.criterion == "auto" and (arguments.gamma is not None or arguments.discount is not None)
    criterion = AUTO["numbers"] if priced else arguments.criterion
    prices = {"--gamma": arguments.gamma, "--discount": arguments.discount}
    gp = {"--gp-alpha": arguments.gp_alpha, "--gp-median-scale": arguments.gp_median_scale or None}
    algorithm = {
        "--n-steps": arguments.n_steps,
        "--batch-size": arguments.batch_size,
        "--learning-rate": arguments.learning_rate,
    }
    pruning = {"--prune-threshold": arguments.prune_threshold, "--prune-alpha": arguments.prune_alpha}
    prune = _settings("prune", arguments.prune, PRUNERS, pruning, also=("auto", "none"))
    return {
        "criterion": _settings("criterion", criterion, CRITERIA, prices, also=("auto",)),
        "regression": _settings("regression", arguments.regression, REGRESSIONS, gp),
        "algorithm": _settings("algorithm", arguments.algorithm, ALGORITHMS, algorithm, also=("auto",)),
        "prune": None if arguments.prune == "none" else prune,
        "init": _settings("init", arguments.init, {}, also=STARTS),
        "refine": not arguments.no_refine,
        "standardize": arguments.standardize,
        "missing": arguments.missing,
        "categorical": arguments.categorical or "auto",
        "time_budget": arguments.time_budget,
        "checkpoint": arguments.checkpoint,
        "n_jobs": arguments.jobs,
        "random_state": arguments.seed,
    }


def _settings(
    option: str, name: str, known: Mapping[str, Any], given: Mapping[str, Any] | None = None, also: Sequence[str] = ()
) -> Any:
    """A name, or the settings that it stands for with those that were given; an option without effect is refused.

    ``known`` are the kinds of settings by name, ``also`` names without settings, and ``given`` values by option, None
    where an option was not used.
    """
    from .._checks import choose

    choose(f"--{option}", name, dict.fromkeys((*also, *known)))
    used = {text: value for text, value in (given or {}).items() if value is not None}
    settings = known[name]() if used and name in known else None
    for text, value in used.items():
        parameter = text.removeprefix(f"--{option}-").removeprefix("--gp-").removeprefix("--").replace("-", "_")
        if settings is None or not hasattr(settings, parameter):
            homes = ", ".join(home for home, kind in known.items() if hasattr(kind(), parameter))
            end = "name it" if name == "auto" else f"with --{option} {name} it has no effect"
            raise ValueError(f"{text} is a setting of --{option} {homes}: {end}")
        settings.set_params(**{parameter: value})
    return settings if used else name
