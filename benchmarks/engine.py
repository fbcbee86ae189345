"""Accuracy, score reached and time of the search, next to its targets and to other packages.

``python -m benchmarks.engine [PART ...] [--seeds N] [--quick] [--no-peers]``; without a part, all of them. Writes
``benchmarks/results/engine.md`` and ``engine.json``, in which a part that is run again replaces itself alone.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from experiments.process import PEERS_PYTHON

from . import parts
from .compare import Peers
from .parts import Options
from .tables import RESULTS, ROOT, Part, say, write

PARTS: dict[str, Callable[[Options], Part]] = {
    "cold": parts.cold,
    "default": parts.default,
    "standardised": parts.standardised,
    "dense-standardised": parts.dense_standardised,
    "exact": parts.exact,
    "large": parts.large,
}
NEEDS_DATA = ("cold", "default", "standardised", "dense-standardised")


def main() -> None:
    """Run the parts that were asked for, print their tables, write them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all)")
    parser.add_argument("--seeds", type=int, help="data sets of every kind (default: 5, and 3 of 1,000 nodes)")
    parser.add_argument(
        "--quick", action="store_true", help="one set of every kind, 200 nodes for 1,000; writes nothing"
    )
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the shared sets")
    parser.add_argument("--no-peers", action="store_true", help="do not run other packages")
    parser.add_argument("--peers-python", type=Path, default=PEERS_PYTHON, help="interpreter that has them")
    parser.add_argument("--peer-limit", type=float, help="seconds for one run of a peer (default 600, quick 30)")
    parser.add_argument(
        "--peer-sets", type=int, default=1, help="sets on which peers are run, except in the standardised part: all"
    )
    parser.add_argument("--states", type=int, default=3, help="values of random_state in dense-standardised")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of engine.md and engine.json")
    args = parser.parse_args()
    chosen = args.parts or list(PARTS)
    for name in chosen:
        if name not in PARTS:
            parser.error(f"no part is called {name!r}; there are: {', '.join(PARTS)}")
    if args.seeds is not None and args.seeds < 1:
        parser.error("--seeds must be at least 1")
    limit = args.peer_limit or (30.0 if args.quick else 600.0)
    peers = Peers(args.peers_python, limit, not args.no_peers)
    options = Options(args.data, args.seeds, args.quick, peers, args.peer_sets, args.states)
    for name in chosen:
        if name in NEEDS_DATA and not args.data.is_dir():
            say(f"{name}: skipped, there is no folder {args.data}; say where the shared sets are with --data")
            continue
        part = PARTS[name](options)
        part.command = " ".join(["python -m benchmarks.engine", name, *shown_options(args)])
        for table in part.tables:
            print(table.markdown())
        if not args.quick:
            # After every part, so that an interrupted run keeps what it has measured.
            write("engine", {name: part}, PARTS, args.results, "The search engine")


def shown_options(args: argparse.Namespace) -> list[str]:
    """The options that change the numbers."""
    options = [f"--seeds {args.seeds}"] if args.seeds else []
    options += ["--no-peers"] if args.no_peers else []
    return options + ([f"--peer-limit {args.peer_limit:g}"] if args.peer_limit else [])


if __name__ == "__main__":
    main()
