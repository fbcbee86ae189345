"""``python -m tests.fuzz --n N --seed S [--case K]``."""

import argparse
import secrets
import sys
import time

from .cases import Failure, run, run_case

EVERY = 500


def main() -> int:
    """Run cases; 1 if a property did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="random tables, files and parameters")
    parser.add_argument("--n", type=int, default=1000, help="cases (default: 1000)")
    parser.add_argument("--seed", type=int, help="of all cases (default: a new one, which is printed)")
    parser.add_argument("--case", type=int, help="run this one only, and show it")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    if arguments.case is not None:
        kind, outcome, found = run_case(seed, arguments.case)
        print(f"{kind}: {outcome}\n{found.trace if isinstance(found, Failure) else found}")
        return int(outcome == "failed")
    print(f"seed {seed}", flush=True)
    start = time.perf_counter()

    def tell(case: int) -> None:
        if case and case % EVERY == 0:
            print(f"{case} cases, {time.perf_counter() - start:.0f} s", flush=True)

    summary = run(arguments.n, seed, tell)
    print(summary)
    print(f"{len(summary.failures)} of {arguments.n} cases failed; {time.perf_counter() - start:.0f} s")
    return int(bool(summary.failures))


if __name__ == "__main__":
    sys.exit(main())
