"""Runs, each in a process of its own: limits of time and memory, results kept as they come, nothing done twice."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from vec2dag.simulate import Dataset

from . import data
from .code import digests, stale, table_digest
from .evaluate import data_measures, evaluate, graph_of, reaches_truth
from .hosts import Hosts
from .methods import METHODS
from .process import CAN_LIMIT, PEERS_PYTHON, execute
from .store import Key, Row, Store, key, kind, problem
from .tables import Run, Table

USUAL = Table.seeds


@dataclass(frozen=True)
class Limits:
    """What one run may take, and where the interpreter of the peers and the stored sets are."""

    timeout: float = 600.0
    memory: float = 8.0
    jobs: int = 2
    peers: Path = PEERS_PYTHON
    folder: Path | None = None


@dataclass(frozen=True)
class Job:
    """A method on a set."""

    data: str
    seed: int
    run: Run

    @property
    def fields(self) -> Row:
        """Its identity in the store."""
        return {"data": self.data, "seed": self.seed, "method": self.run.method, "settings": self.run.settings}

    def __str__(self) -> str:
        return f"{self.data} set {self.seed}, {self.run.name}"


def jobs_of(tables: Iterable[Table], seeds: int | None, wanted: Callable[[Run], bool], stored: int = 5) -> list[Job]:
    """What the tables need, each job once, slow tables last, first sets first within a table."""
    jobs: dict[Key, Job] = {}
    for table in sorted(tables, key=lambda table: table.slow):
        # Tables with another number of sets than the usual five have their reason.
        for seed in range(table.seeds if seeds is None or table.seeds != USUAL else seeds):
            for cell in table.cells:
                if cell in data.STORED and seed >= stored:
                    continue
                for run in filter(wanted, table.runs):
                    job = Job(cell, seed, run)
                    jobs.setdefault(key(job.fields), job)
    return list(jobs.values())


def is_done(row: Row | None, timeout: float) -> bool:
    """Whether a run need not be made: it ended, or it would be stopped again. Failures are tried again."""
    return row is not None and (row["status"] == "ok" or was_stopped(row, timeout))


def _stands(row: Row | None, limits: Limits, renew: bool) -> bool:
    """Whether a run is done and, with ``renew``, was made by the code of today."""
    done = row is not None and is_done(row, limits.timeout)
    return done and not (renew and row["status"] == "ok" and stale(row, limits.folder))


def was_stopped(row: Row | None, timeout: float) -> bool:
    """Whether a run was stopped by a limit that is not shorter than this one."""
    return row is not None and row["status"] == "timeout" and row["limit"] >= timeout


def is_worse(row: Row, before: Row | None) -> bool:
    """Whether a row tells no more than the one before: a failure after a result, or the same failure again."""
    return (
        before is not None
        and row["status"] == "failed"
        and (before["status"] != "failed" or before["error"] == row["error"])
    )


def run_all(
    jobs: list[Job],
    store: Store,
    limits: Limits,
    say: Callable[[str], None] = print,
    again: bool = False,
    cluster: Executor | None = None,
    renew: bool = False,
) -> bool:
    """Make the runs that the store lacks, with ``renew`` those of other code too, or all with ``again``.

    Returns False if interrupted.

    A method that was stopped by its limit on one set is not tried on further sets of the same data. With a ``cluster``
    its machines make the runs: they have this checkout too, and the folder of the stored sets under the same name.
    """
    left = [job for job in jobs if again or not _stands(store.get(**job.fields), limits, renew)]
    stopped = {kind(job.fields) for job in jobs if not again and was_stopped(store.get(**job.fields), limits.timeout)}
    say(f"{len(jobs)} runs, {len(jobs) - len(left)} of them done before")
    clock = Clock(store, limits.jobs)
    # Those on other machines cannot be ended from here: they end by their limits.
    hosts = Hosts() if cluster is None and CAN_LIMIT else None
    made, total, queue = 0, len(left), list(left)
    with cluster or ThreadPoolExecutor(limits.jobs) as pool:
        pending: dict[Future[Row], Job] = {}
        try:
            while queue or pending:
                while queue and len(pending) < limits.jobs:
                    job = queue.pop(0)
                    if kind(job.fields) in stopped:
                        total -= 1
                        continue
                    pending[pool.submit(_attempt, job, limits, hosts)] = job
                if not pending:
                    break
                ended, _ = wait(pending, return_when=FIRST_COMPLETED)
                for future in ended:
                    job, row = pending.pop(future), future.result()
                    if not is_worse(row, store.get(**job.fields)):
                        store.add(row)
                    clock.learn(row)
                    if row["status"] == "timeout":
                        stopped.add(kind(job.fields))
                    made += 1
                    ahead = [j for j in (*queue, *pending.values()) if kind(j.fields) not in stopped]
                    say(f"[{made}/{total}] {job}: {summary(row)}; {duration(clock.estimate(ahead))} left")
        except BaseException as error:
            if hosts is not None:
                hosts.kill()
            if not isinstance(error, KeyboardInterrupt):
                raise
            say(f"interrupted after {made} runs: the same command goes on from here")
            return False
    if hosts is not None:
        hosts.kill()
    return True


def _attempt(job: Job, limits: Limits, hosts: Hosts | None) -> Row:
    """One job; whatever goes wrong becomes a row that says so."""
    row: Row = {**job.fields, "status": "failed"}
    try:
        dataset = data.load(job.data, job.seed, limits.folder)
        row["code"] = digests(job.run.method, job.run.settings, job.data) | {"data": table_digest(dataset)}
        if job.run.method == "data":
            return row | {"status": "ok", "metrics": {"none": data_measures(dataset)}, "seconds": 0.0}
        outcome = execute(
            job.run.method,
            job.run.settings,
            job.seed,
            dataset.X,
            timeout=limits.timeout,
            memory=limits.memory,
            peers=limits.peers,
            hosts=hosts,
        )
        if outcome.status == "timeout":
            return row | {"status": "timeout", "limit": limits.timeout, "progress": outcome.said}
        if outcome.status == "failed":
            return row | {"error": outcome.said}
        found = _judged(dataset, row, outcome.found)
        return row | {"status": "ok", **found, **outcome.facts, "jobs": limits.jobs}
    except Exception as error:
        return row | {"error": f"{type(error).__name__}: {error}"[:500]}


def _judged(dataset: Dataset, row: Row, found: dict[str, Any]) -> Row:
    """What is said of a graph by those who know the truth."""
    judged = evaluate(dataset, row["data"], found, METHODS[row["method"]].undirected)
    if row["method"] == "vec2dag":
        graph = graph_of(judged, len(dataset.A))
        judged["reaches_truth"] = reaches_truth(dataset, row["settings"], graph)
    return judged


def judge(store: Store, folder: Path | None, say: Callable[[str], None] = print) -> None:
    """Prune and compare the graphs of all rows again, and say where that changes a number: no method is run.

    Rows take over the digests of the data and of the judge; those of the method and of the library stay.
    """
    for row in list(store.rows.values()):
        if row["status"] != "ok" or not {"edges", "order"} & set(row):
            continue
        try:
            dataset = data.load(row["data"], row["seed"], folder)
        except FileNotFoundError:
            continue
        found = _judged(dataset, row, {"A": graph_of(row, len(dataset.A))})
        if found["metrics"] != row["metrics"]:
            say(f"{row['data']} set {row['seed']}, {row['method']}: other numbers than before")
        today = digests(row["method"], row["settings"], row["data"])
        code = row.get("code", {}) | {"judge": today["judge"], "data": table_digest(dataset)}
        kept = {name: value for name, value in row.items() if name not in ("edges", "order")}
        store.keep(kept | found | {"code": code})
    store.compact()


class Clock:
    """Estimates the time left from runs like those ahead: with the same settings and data, settings, method, or any."""

    def __init__(self, store: Store, workers: int) -> None:
        self.workers = workers
        self.seen: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for row in store.rows.values():
            self.learn(row)

    def learn(self, row: Row) -> None:
        """Take note of a run."""
        seconds = row.get("seconds", row.get("limit"))
        if seconds is not None:
            for name in _likeness(row):
                self.seen[name].append(seconds)

    def estimate(self, jobs: Iterable[Job]) -> float:
        """Seconds until all jobs are done."""
        total = 0.0
        for job in jobs:
            if job.run.method == "data":
                continue
            known = next((self.seen[name] for name in _likeness(job.fields) if self.seen.get(name)), [1.0])
            # Start of the process and evaluation are not in the method's seconds.
            total += median(known) + 2.0
        return total / self.workers


def _likeness(fields: Row) -> list[tuple[str, ...]]:
    """What a run has in common with others, most first."""
    data_name, method, settings = kind(fields)
    return [(method, settings, data_name), (method, settings), (method,), ()]


def duration(seconds: float) -> str:
    """In the largest fitting unit."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def summary(row: Row) -> str:
    """One run in a few words."""
    if row["status"] != "ok":
        return problem(row)
    shd = [f"SHD {m['shd']:g} ({name})" for name, m in row["metrics"].items() if "shd" in m]
    return f"{', '.join(shd) or row['metrics']['none']}, {row['seconds']:.3g} s"


def warm_up(limits: Limits) -> None:
    """Compile what is not in the cache yet, so that no measured run pays for it."""
    job = Job("toy", 0, Run("vec2dag", "vec2dag", {"criterion": "bic-ev"}))
    _attempt(job, limits, None)
