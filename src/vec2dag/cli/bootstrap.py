"""``vec2dag bootstrap``: how sure the edges of a table's graph are."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .discover import add_model_options, is_terminal, model_parameters, with_knowledge
from .shared import (
    BAD_INPUT,
    DONE,
    INTERRUPTED,
    add_output_options,
    add_table_options,
    deliver,
    load_data,
    noting,
    seed,
    telling,
)

__all__ = ["add_to", "run"]

BOOTSTRAP = """\
Learn the graph of many samples of the rows of a table, and say how often every edge is found.

DATA is what discover takes, and so are the options about the model. The folder receives bootstrap.csv (of every pair
the shares of samples with either direction, a free one, or no edge), the graph of the pairs that most samples have in
consensus/ (graph.json, adjacency.csv, cpdag.csv, graph.dot, graph.graphml), and bootstrap.json (what was run).
"""

EXAMPLES = """\
examples:
  vec2dag bootstrap sachs -o out
  vec2dag bootstrap table.csv -o out --samples 500 --checkpoint samples.log    killed, it goes on where it was
  vec2dag bootstrap table.csv -o out --method subsample        bounds on the number of false edges
  vec2dag bootstrap table.csv -o out --scheduler HOST:8786     on a Dask cluster

exit codes: as those of discover; after an interrupt the samples that were finished are written
"""


def add_to(commands: Any) -> None:
    """The command and its options."""
    p = commands.add_parser(
        "bootstrap",
        help="how sure the edges are",
        description=BOOTSTRAP,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.set_defaults(run=run)
    data = p.add_argument("data", metavar="DATA", help="a file, or the name of a bundled dataset")
    p.add_argument("-o", "--output", metavar="DIR", required=True, type=Path, help="folder to write to")
    samples = p.add_argument_group("samples")
    samples.add_argument("--samples", type=int, default=100, metavar="N", help="how many (default: %(default)s)")
    samples.add_argument(
        "--method",
        metavar="NAME",
        default="resample",
        help="resample: as many rows, with replacement (default); subsample: half of the rows, without; parametric: "
        "rows of a Gaussian with the same moments",
    )
    samples.add_argument(
        "--threshold",
        type=float,
        default=0.5,
        metavar="T",
        help="share of samples from which on a pair is in the consensus (default: %(default)s)",
    )
    samples.add_argument("--checkpoint", type=Path, metavar="FILE", help="keep samples in FILE, and continue from it")
    samples.add_argument("--time-budget", type=float, metavar="SECONDS", help="stop with the samples so far")
    samples.add_argument("--seed", type=seed, default=0, metavar="N", help="same seed, same samples (default: 0)")
    samples.add_argument("--jobs", type=int, metavar="N", help="processes (default: every core)")
    samples.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask cluster that does the work")
    add_model_options(p)
    add_table_options(p.add_argument_group("table"), data)
    add_output_options(p)


def run(arguments: argparse.Namespace) -> int:
    """Read, fit many times, write, print."""
    from ..confidence.shares import check_threshold
    from ..files.atomic import as_json, check_writable

    parameters = model_parameters(arguments)
    check_threshold("--threshold", arguments.threshold)
    check_writable(arguments.output)
    X, names, notes = load_data(arguments, parameters, again=arguments.method != "parametric")
    with telling(notes):
        from ..confidence import bootstrap
        from ..estimator import ALIAS

        X, names, knowledge = with_knowledge(arguments, X, names, notes)
        if arguments.lags is not None:
            notes.append("rows of a time series are drawn as if all that connects them were in the columns of --lags")
        # The options that are about all samples, and not about the fit of one.
        for shared in ("time_budget", "checkpoint", "n_jobs", "random_state"):
            del parameters[shared]
        with _cluster(arguments.scheduler), noting(notes):
            result = bootstrap(
                ALIAS(**parameters, knowledge=knowledge),
                X,
                arguments.samples,
                arguments.method,
                names=names,
                interventions=arguments.targets,
                n_jobs=arguments.jobs,
                random_state=arguments.seed,
                time_budget=arguments.time_budget,
                checkpoint=arguments.checkpoint,
                verbose=int(is_terminal() and not arguments.quiet),
            )
        about = {
            "data": str(arguments.data),
            "command": arguments.command_line,
            "warnings": list(dict.fromkeys(notes)),
        }
        text = result.summary(arguments.threshold)
        if arguments.json:
            text = as_json({"pairs": list(result.edges().rows), "run": about | result.run()}).decode()
        if not deliver(lambda: result.save(arguments.output, arguments.threshold, **about), text, arguments):
            return BAD_INPUT
    return INTERRUPTED if result.stopped == "interrupted" else DONE


@contextmanager
def _cluster(address: str | None) -> Iterator[None]:
    """Context in which a Dask cluster does what is parallel, if there is one."""
    if address is None:
        yield
        return
    import joblib

    from .._parallel import dask_client

    with dask_client(address), joblib.parallel_config(backend="dask"):
        yield
