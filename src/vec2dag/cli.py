"""The command line: ``vec2dag discover DATA -o DIR``, and ``simulate`` and ``evaluate`` around it."""

import argparse
import json
import os
import platform
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import __version__

if TYPE_CHECKING:
    from .estimator import ALIAS

# Everything else is imported where it is used, so that --help and a typing error answer at once.

DONE, BAD_INPUT, INTERRUPTED = 0, 2, 130

DISCOVER = """\
Learn the causal graph (a DAG) behind a table and write it to a folder.

DATA is a CSV, TSV, Parquet, NPY or NPZ file with one row per observation and one numeric column per
variable, or the name of a bundled dataset (sachs). The folder receives graph.json, adjacency.csv, graph.dot,
graph.graphml and run.json (what was run, with which versions and seed, in how many seconds).
"""

EXAMPLES = """\
examples:
  vec2dag discover sachs -o out
  vec2dag discover table.csv -o out --score bic-ev        equal noise variances: directions are identified
  vec2dag discover table.csv -o out --regression gp       nonlinear: Gaussian processes, then CAM pruning
  vec2dag discover table.csv -o out --time-budget 60      the best graph found in a minute

exit codes: 0 done, 2 bad input (one sentence on stderr says what), 130 interrupted (the best graph so far is
written)
"""

SIMULATE = """\
Draw a table from a known graph: one of the settings of the paper.

The folder receives data.csv, the graph that made the data in truth/ (graph.json, adjacency.csv, graph.dot,
graph.graphml) and meta.json (how the data were made). The same preset and seed give the same bytes.
"""

SIMULATE_EXAMPLES = """\
examples:
  vec2dag simulate --list
  vec2dag simulate dense-er8 -o er8 --seed 1
  vec2dag discover er8/data.csv -o er8/found --score bic-ev
  vec2dag evaluate er8/truth/graph.json er8/found/graph.json
"""

EVALUATE = """\
Compare an estimated graph with the true one.

TRUE and EST are graphs in JSON, CSV (a matrix with or without names, or an edge list), NPY, NPZ, DOT or
GraphML; TRUE may also be the name of a bundled dataset (sachs). Nodes are matched by name, or by position
where a file has no names.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if hasattr(sys.stdout, "reconfigure"):
        # a terminal that cannot show a column's name is no reason to fail
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        arguments = _parser().parse_args(argv)
        code = int(arguments.run(arguments))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # whoever read the output has enough, as `| head` has; files are written before anything is printed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return _fail("interrupted before there was anything to write", INTERRUPTED)
    except (ValueError, OSError, ImportError, NotImplementedError) as error:
        return _fail(" ".join(str(error).split()), BAD_INPUT)


def _fail(sentence: str, code: int) -> int:
    print(f"vec2dag: {sentence}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vec2dag",
        description="Causal discovery from tables: every vector is a DAG, a policy finds the best one.",
    )
    parser.add_argument("--version", action="version", version=f"vec2dag {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_discover(commands)
    _add_simulate(commands)
    _add_evaluate(commands)
    return parser


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


def _add_discover(commands: Any) -> None:
    p = commands.add_parser(
        "discover",
        help="learn the causal graph of a table",
        description=DISCOVER,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.set_defaults(run=_discover)
    p.add_argument("data", metavar="DATA", help="a file, or the name of a bundled dataset")
    p.add_argument("-o", "--output", metavar="DIR", required=True, type=Path, help="folder to write to")
    model = p.add_argument_group("model")
    model.add_argument(
        "--score",
        default="bic-nv",
        choices=["bic-nv", "bic-ev", "ls"],
        help="bic-nv: unequal noise variances, independent of units (default); bic-ev, ls: equal noise "
        "variances, for columns that share a unit",
    )
    model.add_argument(
        "--regression", default="linear", choices=["linear", "gp"], help="gp: Gaussian processes (default: linear)"
    )
    model.add_argument("--gp-alpha", type=float, default=1.0, metavar="V", help="variance of the noise (default: 1)")
    model.add_argument(
        "--gp-median-scale", action="store_true", help="divide every set of parents by its median distance"
    )
    model.add_argument("--standardize", action="store_true", help="divide columns by their standard deviations")
    model.add_argument(
        "--prune",
        default="auto",
        choices=["auto", "linear", "bic", "cam", "ci", "none"],
        help="auto: linear (coefficients from T on) for bic-ev and ls, cam (additive regression) for gp, none for "
        "linear bic-nv (default: auto)",
    )
    model.add_argument("--prune-threshold", type=float, default=0.3, metavar="T", help="of linear (default: 0.3)")
    model.add_argument(
        "--prune-alpha", type=float, default=0.001, metavar="P", help="significance for cam and ci (default: 0.001)"
    )
    search = p.add_argument_group("search")
    search.add_argument(
        "--algorithm", default="auto", choices=["auto", "conditional", "credit", "ppo", "a2c", "reinforce"]
    )
    search.add_argument("--init", default="auto", choices=["auto", "random"], help="where the policy starts")
    search.add_argument("--no-refine", action="store_true", help="stop where the policy does")
    search.add_argument("--n-steps", type=int, metavar="N", help="updates of the policy at most")
    search.add_argument("--batch-size", type=int, metavar="N", help="graphs sampled for an update")
    search.add_argument("--learning-rate", type=float, metavar="R")
    search.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="keep the local scores of gp in FILE, and continue from it"
    )
    search.add_argument("--time-budget", type=float, metavar="SECONDS", help="stop with the best graph so far")
    search.add_argument("--seed", type=_seed, default=0, metavar="N", help="same seed, same graph (default: 0)")
    search.add_argument("--jobs", type=int, metavar="N", help="threads (default: every core)")
    table = p.add_argument_group("table")
    table.add_argument("--columns", nargs="+", metavar="NAME", help="use these columns only")
    table.add_argument("--drop-constant", action="store_true", help="leave constant columns out instead of refusing")
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing but warnings and errors")


def _add_simulate(commands: Any) -> None:
    p = commands.add_parser(
        "simulate",
        help="draw a table from a known graph",
        description=SIMULATE,
        epilog=SIMULATE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.set_defaults(run=_simulate)
    p.add_argument("preset", metavar="PRESET", help="which setting; --list names them all")
    p.add_argument("-o", "--output", metavar="DIR", required=True, type=Path, help="folder to write to")
    p.add_argument("--seed", type=_seed, default=0, metavar="N", help="another seed, other data (default: 0)")
    p.add_argument("--list", action=_ListPresets, help="print the names of the presets and exit")
    p.add_argument("-q", "--quiet", action="store_true", help="print nothing but errors")


class _ListPresets(argparse.Action):
    """An option that ends the program, like --help, so that no other argument is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from .simulate import presets

        print("\n".join(presets()))
        parser.exit()


def _add_evaluate(commands: Any) -> None:
    p = commands.add_parser(
        "evaluate",
        help="compare an estimated graph with the true one",
        description=EVALUATE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.set_defaults(run=_evaluate)
    p.add_argument("true", metavar="TRUE", help="a file, or the name of a bundled dataset")
    p.add_argument("estimate", metavar="EST", help="a file")
    p.add_argument("--json", action="store_true", help="print JSON instead of a table")
    p.add_argument(
        "--adjustment",
        action="store_true",
        help='also the adjustment distances, among them SID: needs DAGs and pip install "vec2dag[metrics]"',
    )


def _discover(arguments: argparse.Namespace) -> int:
    from .graphio import write_graph
    from .io import check_writable

    check_writable(arguments.output)
    X, names, notes = _load(arguments)

    from .estimator import ALIAS
    from .progress import announce_compilation

    model = ALIAS(
        score=arguments.score,
        regression=_regression(arguments),
        algorithm=arguments.algorithm,
        init=arguments.init,
        refine=not arguments.no_refine,
        n_steps=arguments.n_steps,
        batch_size=arguments.batch_size,
        learning_rate=arguments.learning_rate,
        prune=None if arguments.prune == "none" else arguments.prune,
        prune_threshold=arguments.prune_threshold,
        prune_alpha=arguments.prune_alpha,
        checkpoint=arguments.checkpoint,
        standardize=arguments.standardize,
        time_budget=arguments.time_budget,
        n_jobs=arguments.jobs,
        random_state=arguments.seed,
        verbose=int(sys.stderr.isatty() and not arguments.quiet),
    )
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, announce_compilation(_say):
        warnings.simplefilter("always")
        model.fit(X, names=names)
    seconds = time.perf_counter() - start
    notes += list(dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning)))
    for note in notes:
        _say(f"warning: {note}")
    write_graph(arguments.output, model.adjacency_matrix_, names, weights=model.weights_, free=model.free_)
    _write_run(arguments, model, names, X.shape, seconds, notes)
    if not arguments.quiet:
        print(edge_table(model, names))
        if removed := removed_table(model, names):
            print(f"\n{removed}")
        print(
            f"\n{X.shape[0]} rows, {X.shape[1]} columns, {model.adjacency_matrix_.sum()} edges, "
            f"{arguments.score} {model.score_:.6f}, {seconds:.1f} s; written to {arguments.output}"
        )
    return INTERRUPTED if model.search_.stopped == "interrupted" else DONE


def _regression(arguments: argparse.Namespace) -> Any:
    if arguments.regression == "linear":
        if arguments.gp_alpha != 1.0 or arguments.gp_median_scale:
            raise ValueError("--gp-alpha and --gp-median-scale are for --regression gp")
        return "linear"
    from .nonlinear import GaussianProcess

    return GaussianProcess(alpha=arguments.gp_alpha, median_scale=arguments.gp_median_scale)


def _load(arguments: argparse.Namespace) -> tuple[Any, tuple[str, ...], list[str]]:
    """The table, its names, and what should be said about how it was read."""
    from . import datasets
    from .io import InputError, read_table
    from .table import drop_constant, quoted

    if arguments.data in datasets.names() and not Path(arguments.data).exists():
        bundled = datasets.load(arguments.data)
        X, names = bundled.X, bundled.names
        if arguments.columns:
            missing = [name for name in arguments.columns if name not in names]
            if missing:
                raise InputError(f"no column {quoted(missing)} in {arguments.data}; it has {quoted(names, 20)}")
            X, names = X[:, [names.index(c) for c in arguments.columns]], tuple(arguments.columns)
        notes = []
    else:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            X, names = read_table(arguments.data, columns=arguments.columns)
        notes = [str(w.message) for w in caught]
    if arguments.drop_constant:
        X, names, dropped = drop_constant(X, names)
        if dropped:
            notes.append(f"left out because constant: {quoted(dropped)}")
    return X, names, notes


def edge_table(model: "ALIAS", names: Sequence[str]) -> str:
    """The edges as a table for people: strongest first, those of free direction without an arrowhead."""
    import numpy as np

    free = model.free_
    edges = sorted(np.argwhere(model.adjacency_matrix_).tolist(), key=lambda e: -abs(model.weights_[e[0], e[1]]))
    if not edges:
        if model.adjacency_raw_.any():
            return "no edges are left after pruning"
        return "no edges: the score prefers the columns to be independent"
    tested = {(v.source, v.target): v for v in model.prune_table_ if v.statistic == "p-value"}
    rows = [
        (
            names[i],
            "---" if free[i, j] else "-->",
            names[j],
            f"{model.weights_[i, j]:.4g}",
            f"{tested[i, j].value:.2g}" if (i, j) in tested else "",
        )
        for i, j in edges
    ]
    widths = [max(len(head), *(len(row[c]) for row in rows)) for c, head in ((0, "cause"), (2, "effect"))]
    lines = [f"{'cause':<{widths[0]}}      {'effect':<{widths[1]}}  coefficient{'   p-value' if tested else ''}"]
    lines += [
        f"{a:<{widths[0]}}  {arrow} {b:<{widths[1]}}  {weight:>11}{p:>10}".rstrip() for a, arrow, b, weight, p in rows
    ]
    if free.any():
        lines.append("\n--- : the data do not determine the direction (a Markov equivalence class fits equally well)")
    return "\n".join(lines)


def removed_table(model: "ALIAS", names: Sequence[str], most: int = 20) -> str:
    """The edges that pruning removed, and why; those that came nearest to staying first."""
    removed = [v for v in model.prune_table_ if not v.kept]
    if not removed:
        return ""
    nearness = {"p-value": lambda v: v.value, "BIC gain": lambda v: -v.value}
    removed.sort(key=nearness.get(removed[0].statistic, lambda v: -abs(v.value)))
    first = removed[0]
    kept = "below" if first.statistic == "p-value" else "above" if first.statistic == "BIC gain" else "from"
    lines = [f"removed by pruning ({first.statistic}; edges stay {kept} {first.limit:g}):"]
    lines += [f"  {names[v.source]} --> {names[v.target]}  {v.value:.2g}  {v.reason}".rstrip() for v in removed[:most]]
    if len(removed) > most:
        lines.append(f"  and {len(removed) - most} more (all in run.json)")
    return "\n".join(lines)


def _write_run(
    arguments: argparse.Namespace,
    model: "ALIAS",
    names: Sequence[str],
    shape: tuple[int, ...],
    seconds: float,
    notes: list[str],
) -> None:
    from dataclasses import asdict
    from importlib.metadata import version

    found = model.search_
    run = {
        "data": str(arguments.data),
        "rows": shape[0],
        "columns": shape[1],
        "parameters": {k: v for k, v in model.get_params().items() if k != "verbose"},
        "seed": arguments.seed,
        "score": model.score_,
        "edges": int(model.adjacency_matrix_.sum()),
        "edges_before_pruning": int(model.adjacency_raw_.sum()),
        "pruning": [
            {**asdict(verdict), "source": names[verdict.source], "target": names[verdict.target]}
            for verdict in model.prune_table_
        ],
        "fits": found.fits,
        "steps": found.n_iter,
        "stopped": found.stopped,
        "algorithm": found.algorithm,
        "init": found.init,
        "certified": found.certified,
        "exact": found.exact,
        "seconds": round(seconds, 3),
        "warnings": notes,
        "versions": {
            "vec2dag": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba", "networkx")},
        },
    }
    _write_json(arguments.output / "run.json", run)


def _simulate(arguments: argparse.Namespace) -> int:
    from . import simulate
    from .graphio import write_graph
    from .io import check_writable, write_table

    if arguments.preset not in simulate.presets():
        raise ValueError(f"no preset {arguments.preset!r}; there are {', '.join(simulate.presets())}")
    folder = check_writable(arguments.output)
    data = simulate.preset(arguments.preset, seed=arguments.seed)
    (n, d), edges = data.X.shape, int(data.A.sum())
    # standardised columns no longer have the coefficients that made them
    weights = None if data.meta.get("standardised") else data.meta.get("weights")
    write_table(folder / "data.csv", data.X, data.names)
    write_graph(folder / "truth", data.A, data.names, weights=weights)
    meta = {key: value for key, value in data.meta.items() if key != "weights"}
    meta |= {"rows": n, "columns": d, "edges": edges, "vec2dag": __version__}
    _write_json(folder / "meta.json", meta)
    if not arguments.quiet:
        print(f"{n} rows, {d} columns, {edges} edges; written to {folder}")
    return DONE


def _evaluate(arguments: argparse.Namespace) -> int:
    import math
    import re

    from . import datasets, metrics
    from .graphio import align, read_graph

    true_names: tuple[str, ...] | None
    if arguments.true in datasets.names() and not Path(arguments.true).exists():
        bundled = datasets.load(arguments.true)
        true, true_names = bundled.A, bundled.names
    else:
        true, true_names = read_graph(arguments.true)
    estimate, names = read_graph(arguments.estimate)
    estimate = align(true, true_names, estimate, names)
    if true_names is None or names is None:
        _say("warning: not both files name their nodes; they are matched by position")
    values = metrics.evaluate(true, estimate, adjustment=arguments.adjustment)
    if arguments.json:
        counts = {"nodes": len(true), "true_edges": metrics.nnz(true, true)}
        defined = {name: None if math.isnan(value) else value for name, value in values.items()}
        print(json.dumps(counts | defined, indent=2))
        return DONE
    print(f"{len(true)} nodes, {metrics.nnz(true, true)} true edges, {values['nnz']} estimated\n")
    for name, value in values.items():
        text = str(value) if isinstance(value, int) else "-" if math.isnan(value) else f"{value:.4f}"
        summary = re.sub(r":func:`(\w+)`", r"\1", (getattr(metrics, name).__doc__ or "").partition("\n")[0])
        # the first phrase of the documentation says what is measured, the rest says how
        print(f"{name:<18}  {text:>8}  {re.split(r'[:;,] | [(]|[.]$', summary)[0]}")
    return DONE


def _write_json(file: Path, content: dict[str, Any]) -> None:
    from .io import write_atomically

    write_atomically(file, (json.dumps(content, indent=2, default=str) + "\n").encode())


def _say(sentence: str) -> None:
    print(f"vec2dag: {sentence}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
