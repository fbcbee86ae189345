"""The experiments: every table rehearsed, runs that are stopped, killed, broken or missing, and the numbers shown."""

import inspect
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from vec2dag import ALIAS, metrics, prune, simulate
from vec2dag.simulate import Dataset

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
pytest.importorskip(
    "experiments", reason="the experiments are beside the package in a checkout, not in a source archive"
)
from experiments import code, data, evaluate, process, report, runner, store, summary, tables
from experiments.__main__ import main
from experiments.hosts import Host, Hosts
from experiments.methods import METHODS
from experiments.runner import Job, Limits
from experiments.store import Store
from experiments.summary import Number
from experiments.tables import TABLES, Run, Table

ROOT = Path(__file__).resolve().parents[1]
NOWHERE = Path("no-such-environment/python")
SLEEPER = Run("sleeper", "policy-gradient", {"algorithm": "ppo", "n_steps": 10**9})
EQUAL = Run("equal-variance", "equal-variance")


def run_toy(run, folder, seeds=1, renew=False, **limits):
    """Run one method on toy sets; the store and what was said."""
    jobs = [Job("toy", seed, run) for seed in range(seeds)]
    found, said = Store(folder), []
    runner.run_all(jobs, found, Limits(peers=NOWHERE, **limits), said.append, renew=renew)
    return found, said


# --- the definitions ------------------------------------------------------------------------------------------


def test_tables_name_methods_and_data_that_exist():
    presets = set(simulate.presets())
    for table in TABLES.values():
        assert all(run.method in METHODS for run in table.runs)
        assert len({run.name for run in table.runs}) == len(table.runs)
        for cell in table.cells:
            simulated = cell in presets or data.LARGE.fullmatch(cell) or cell[1:].isdecimal()
            assert simulated or cell in data.STORED or data.network_of(cell) or cell == "sachs"
            known = {"none", *data.prunings(cell)}
            assert set(table.prunings) | {run.pruning or "none" for run in table.runs} <= known


def test_large_nonlinear_sets_are_what_their_names_say():
    one, other = (data.load(f"{kind}-gp-er1-d5", 0) for kind in ("joint", "additive"))
    assert one.X.shape == other.X.shape == (1000, 5)
    assert np.array_equal(one.A, other.A)
    assert one.meta["mechanism"] == "gaussian_process"
    assert other.meta["mechanism"] == "additive_gaussian_process"
    assert not np.array_equal(data.load("joint-gp-er1-d5", 1).A, one.A)


def test_score_and_cam_find_a_chain():
    E = np.random.default_rng(0).standard_normal((400, 3))
    X = E.copy()
    X[:, 1] = np.sin(2 * X[:, 0]) + 0.5 * X[:, 0] ** 2 + 0.5 * E[:, 1]
    X[:, 2] = np.cos(2 * X[:, 1]) + 0.5 * X[:, 1] + 0.5 * E[:, 2]
    for settings in ({}, {"standardise": True}, {"preselect": 1}):
        A = METHODS["score-cam"].function()(X[:, [2, 0, 1]], np.random.default_rng(0), **settings)
        assert np.argwhere(A).tolist() == [[1, 2], [2, 0]]


def test_methods_take_the_settings_of_the_tables():
    for table in TABLES.values():
        for run in table.runs:
            if run.method == "data":
                continue
            for settings in (run.settings, run.settings | METHODS[run.method].toy):
                inspect.signature(METHODS[run.method].function()).bind(None, None, **settings)


def test_published_numbers_have_a_place():
    names = {table.paper or table.name for table in TABLES.values()}
    for table, cell, _, pruning in summary.published():
        assert table in names
        places = [t for t in TABLES.values() if (t.paper or t.name) == table and cell in t.cells]
        assert places
        assert pruning == "" or any(pruning in t.prunings for t in places)


def test_the_same_run_is_made_once():
    jobs = runner.jobs_of(TABLES.values(), 1, lambda run: run.name == "vec2dag" and run.method == "vec2dag")
    assert len({json.dumps(job.fields, sort_keys=True) for job in jobs}) == len(jobs)
    assert sum(job.data == "dense-er8" and job.seed == 0 for job in jobs) == 1


# --- a rehearsal of every table -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory):
    """Results of ``run all --toy`` without the environment of the peers, and what it printed."""
    folder = tmp_path_factory.mktemp("results")
    command = [sys.executable, "-m", "experiments", "run", "all", "--toy", "--results", str(folder)]
    done = subprocess.run(
        [*command, "--peers", str(NOWHERE)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


@pytest.mark.slow
def test_every_table_is_rehearsed(rehearsal):
    folder, _ = rehearsal
    found = Store(folder)
    for table in (t.toy() for t in TABLES.values()):
        for run in table.runs:
            row = found.get("toy", 0, run.method, run.settings)
            if METHODS[run.method].peer:
                assert row["error"] == "not installed: make peers"
            elif row["status"] != "ok":
                assert run.method == "sb3"
                assert "vec2dag[sb3]" in row["error"]
            else:
                shown = row["metrics"]
                assert set(table.metrics) <= set(shown["none"])
                assert row["seconds"] >= 0
                if run.method != "data":
                    assert row["versions"]["numpy"] == np.__version__
                    assert row["machine"].startswith(f"{os.cpu_count()} x ")


@pytest.mark.slow
def test_a_second_call_makes_nothing_twice(rehearsal, capsys):
    folder, _ = rehearsal
    before = {file.name: file.read_text().count("\n") for file in folder.glob("*.jsonl")}
    assert main(["run", "dense", "--toy", "--methods", "vec2dag", "nocurl", "--results", str(folder)]) == 0
    assert "2 runs, 2 of them done before" in capsys.readouterr().out
    assert {file.name: file.read_text().count("\n") for file in folder.glob("*.jsonl")} == before


@pytest.mark.slow
def test_progress_has_an_estimate(rehearsal):
    _, printed = rehearsal
    lines = [line for line in printed.splitlines() if line.startswith("[")]
    assert all(line.endswith("left") for line in lines)
    assert lines[-1].endswith("0 s left")


def test_results_are_written_from_the_rows(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    results = tmp_path / "results"
    found = Store(results)
    row = {"data": "dense-er8", "status": "ok", "seconds": 1.0, "edges": []}
    for seed, shd in enumerate((2.0, 3.0, 4.0, 5.0, 6.0, 10.0)):
        shown = {"shd": shd, "fdr": 0.0, "tpr": 1.0, "cpdag_shd": shd, "skeleton_shd": shd}
        metrics_by_pruning = {"none": shown | {"shd": 1.0}, "linear": shown}
        fields = {**row, "seed": seed, "metrics": metrics_by_pruning}
        found.add({**fields, "method": "vec2dag", "settings": {"criterion": "bic-ev"}, "reaches_truth": seed > 0})
        if seed < 2:
            found.add({**fields, "method": "nocurl", "settings": {}})
        if seed < 1:
            stop = {"status": "timeout", "limit": 60.0, "progress": "step 3"}
            found.add({**fields, **stop, "data": "highdim-er2", "method": "corl", "settings": {}})
    assert main(["report", "--out", str(tmp_path), "--results", str(results)]) == 0
    summary_page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    (missed,) = [line for line in summary_page.splitlines() if "| dense-er8 " in line and "[dense]" in line]
    cells = [cell.strip() for cell in missed.split("|")[4:9]]
    # Mean, the paper's, datasets whose score is reached, all six datasets, without pruning.
    assert cells == ["4.0 ± 0.7", "0.2 ± 0.2", "4 of 5", "5.0 ± 1.2 (6)", "1.0 ± 0.0"]
    pages = {table.name: (tmp_path / f"docs/results/{table.name}.md").read_text("utf-8") for table in TABLES.values()}
    assert all(table.title in pages[table.name] for table in TABLES.values())
    assert "4.0 ± 0.7 [0.2 ± 0.2]" in pages["dense"]
    (nocurl,) = [line for line in pages["dense"].splitlines() if line.startswith("| dense-er8 ") and "nocurl" in line]
    assert "| 2\\* " in nocurl
    assert nocurl.rstrip(" |").endswith("made by earlier code")
    assert "- sortnregress, equal-variance, equal-variance-bic, pc, ges, grasp, boss, flop, lingam\n" in pages["dense"]
    # One line for a method without rows here, with what the paper has and what stopped it elsewhere.
    (corl,) = [line for line in pages["noise"].splitlines() if "corl" in line]
    assert corl.startswith("- corl: in the paper, SHD: noise-exponential ")
    assert corl.endswith("on highdim-er2 stopped at 60 s (step 3)")
    for file in capsys.readouterr().out.split():
        assert Path(file).stat().st_size > 0


def test_methods_are_compared_on_the_datasets_that_all_have(tmp_path):
    found = Store(tmp_path)
    row = {"data": "noise-laplace", "status": "ok", "seconds": 1.0}
    for seed in range(5):
        for method, settings, shd in (("vec2dag", {"criterion": "bic-ev"}, float(seed)), ("nocurl", {}, 1.5)):
            if method == "vec2dag" or seed < 3:
                fields = {"seed": seed, "method": method, "settings": settings, "metrics": {"linear": {"shd": shd}}}
                found.add(row | fields)
    (contest,) = report.contests(found)
    assert contest[1:] == ("noise-laplace", "linear", [("vec2dag", 1.0), ("nocurl", 1.5)])


def test_graphs_are_judged_again(tmp_path, capsys):
    found, _ = run_toy(EQUAL, tmp_path, seeds=2, jobs=1)
    rows = list(found.rows.values())
    changed = rows[1] | {"metrics": {"none": {"shd": 99.0}}, "code": rows[1]["code"] | {"judge": "before"}}
    found.add(changed)
    assert code.stale(changed) == ("judge",)
    assert main(["judge", "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "toy set 1, equal-variance: other numbers than before\n"
    assert list(Store(tmp_path).rows.values()) == rows
    assert len((tmp_path / "equal-variance.jsonl").read_text().splitlines()) == 2


def test_runs_of_other_code_are_made_anew_when_asked_for(tmp_path):
    found, _ = run_toy(EQUAL, tmp_path, seeds=2, jobs=1)
    rows = list(found.rows.values())
    found.add(rows[1] | {"code": rows[1]["code"] | {"method": "before"}})
    for renew, made in ((False, 0), (True, 1), (True, 0)):
        found, said = run_toy(EQUAL, tmp_path, seeds=2, jobs=1, renew=renew)
        assert sum(line.startswith("[") for line in said) == made
    assert not any(code.stale(row) for row in found.rows.values())


@pytest.mark.slow
def test_show_prints_every_table(rehearsal, capsys):
    folder, _ = rehearsal
    assert main(["show", "all", "--results", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert all(f"`{name}`" in printed for name in TABLES)


def test_list_names_tables_and_methods(capsys):
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in (*TABLES, *METHODS))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing"], "NAME must be all or one of"),
        (["run", "dense", "--methods", "magic"], "--methods must be among"),
        (["run", "dense", "--jobs", "0"], "--jobs must be positive"),
        (["run", "dense", "--timeout", "-1"], "--timeout must be positive"),
        (["run", "dense", "--methods", "marvel"], "these tables have vec2dag, notears"),
        (["run", "dense", "--data", "no-such-folder"], "--data: there is no folder no-such-folder"),
        (["show", "dense", "--results", "no-such-folder"], "no finished runs in no-such-folder"),
        (["report", "--results", "no-such-folder"], "no finished runs in no-such-folder"),
    ],
)
def test_bad_arguments_are_named(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert message in capsys.readouterr().err


# --- runs that do not end well --------------------------------------------------------------------------------


def test_a_run_over_its_time_is_stopped_with_its_progress(tmp_path):
    found, said = run_toy(SLEEPER, tmp_path, seeds=3, timeout=3.0, jobs=1)
    rows = found.series("toy", SLEEPER.method, SLEEPER.settings)
    assert [row["status"] for row in rows] == ["timeout"]
    assert "of 1000000000" in rows[0]["progress"]
    assert "0 s left" in said[-1]
    # A second call with the same limit does not try again, one with a longer limit does.
    assert runner.is_done(rows[0], 3.0)
    assert not runner.is_done(rows[0], 4.0)


def test_a_broken_method_is_reported_and_stops_nothing(tmp_path):
    broken = Run("broken", "vec2dag", {"criterion": "no such criterion"})
    found = Store(tmp_path)
    jobs = [Job("toy", 0, broken), Job("toy", 0, EQUAL), Job("gp", 0, EQUAL)]
    assert runner.run_all(jobs, found, Limits(peers=NOWHERE), lambda line: None)
    assert "no such criterion" in found.get(**jobs[0].fields)["error"]
    assert found.get(**jobs[1].fields)["status"] == "ok"
    assert "--data" in found.get(**jobs[2].fields)["error"]
    assert not runner.is_done(found.get(**jobs[0].fields), 1.0)


@pytest.mark.slow
def test_a_cluster_makes_the_same_rows(tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        runs = ["run", "dense", "--toy", "--methods", "equal-variance", "vec2dag"]
        where = ["--results", str(tmp_path / "there"), "--scheduler", cluster.scheduler_address]
        assert main(runs + where) == 0
    assert main([*runs, "--results", str(tmp_path / "here")]) == 0
    there, here = (
        {key: row["metrics"] for key, row in Store(tmp_path / place).rows.items()} for place in ("there", "here")
    )
    assert there == here
    assert len(here) == 2


def test_a_cluster_that_is_not_there(capsys):
    pytest.importorskip("distributed", reason="needs the extra cluster")
    with pytest.raises(SystemExit):
        main(["run", "all", "--scheduler", "nonsense://x"])
    assert "--scheduler nonsense://x: no Dask scheduler answers there" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is the system's")
def test_a_run_over_its_memory_fails_alone(tmp_path):
    greedy = Run("greedy", "sampling", {"count": 10**8})  # vectors of 15 numbers: 12 GB
    found = Store(tmp_path)
    jobs = [Job("toy", 0, greedy), Job("toy", 0, EQUAL)]
    runner.run_all(jobs, found, Limits(peers=NOWHERE, memory=4.0), lambda line: None)
    assert "Unable to allocate" in found.get(**jobs[0].fields)["error"]
    assert found.get(**jobs[1].fields)["status"] == "ok"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on memory is the system's")
def test_a_lower_limit_of_the_system_is_kept(tmp_path):
    command = (
        f"ulimit -d 6000000; {sys.executable} -m experiments run dense --toy --methods nocurl --results {tmp_path}"
    )
    subprocess.run(["bash", "-c", command], cwd=ROOT, check=True, capture_output=True)
    assert [row["status"] for row in Store(tmp_path).rows.values()] == ["ok"]


def test_one_thread_a_run(tmp_path):
    found, _ = run_toy(Run("vec2dag", "vec2dag", {"criterion": "bic-ev"}), tmp_path, jobs=1)
    assert found.series("toy", "vec2dag", {"criterion": "bic-ev"})[0]["status"] == "ok"
    with pytest.raises(TypeError, match="n_jobs"):
        METHODS["vec2dag"].function()(np.zeros((3, 3)), np.random.default_rng(0), n_jobs=2)


def workers_of(folder):
    """Numbers of the processes that work in a folder."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in file.read_bytes() and b"experiments.worker" in file.read_bytes():
                found.append(file.parent.name)
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_an_interrupted_run_leaves_no_process(tmp_path, monkeypatch, rng):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(3)
    try:
        with pytest.raises(KeyboardInterrupt):
            process.execute(SLEEPER.method, SLEEPER.settings, 0, rng.standard_normal((50, 3)), timeout=60)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert not workers_of(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_nothing_starts_after_the_end():
    hosts = Hosts()
    hosts.kill()
    with pytest.raises(RuntimeError, match="ended"), hosts.host(Path(sys.executable), {}, ()):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_run_ends_when_whoever_asked_for_it_has_gone(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((10, 3)))
    job = {"method": SLEEPER.method, "settings": SLEEPER.settings, "seed": 0, "careful": False}
    (tmp_path / "job.json").write_text(json.dumps(job | {"memory": 8.0, "timeout": 600.0, "patience": 600.0}))
    host = Host(Path(sys.executable), process._environment(peer=False))
    host.process.stdin.write(f"{tmp_path}\n".encode())
    host.process.stdin.flush()
    run = int(host.process.stdout.readline())
    host.process.stdin.close()
    assert host.process.wait(60) == 0
    end = time.monotonic() + 60
    while Path(f"/proc/{run}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{run}").exists()


@pytest.mark.skipif(os.name == "nt", reason="forks")
def test_one_host_makes_many_runs_and_survives_those_that_fail(tmp_path):
    settings = {"criterion": "bic-ev"}
    broken = {"criterion": "no such criterion"}
    X = np.random.default_rng(0).standard_normal((60, 4))
    hosts = Hosts()
    try:
        alone = process.execute("vec2dag", settings, 1, X, timeout=120)
        first, failed, stopped, again = (
            process.execute(method, chosen, 1, X, timeout=limit, hosts=hosts)
            for method, chosen, limit in (
                ("vec2dag", settings, 120),
                ("vec2dag", broken, 120),
                (SLEEPER.method, SLEEPER.settings, 1),
                ("vec2dag", settings, 120),
            )
        )
        assert len(hosts.all) == 1
        (host,) = hosts.all
    finally:
        hosts.kill()
    assert host.process.returncode == -signal.SIGKILL
    assert (failed.status, stopped.status) == ("failed", "timeout")
    assert "no such criterion" in failed.said
    for outcome in (first, again):
        assert np.array_equal(outcome.found["A"], alone.found["A"])
        assert outcome.facts["versions"] == alone.facts["versions"]


def test_an_error_while_writing_ends_the_runs(tmp_path):
    def say(line):
        if line.startswith("["):
            raise BrokenPipeError

    jobs = [Job("toy", 0, EQUAL), Job("toy", 0, SLEEPER)]
    start = time.monotonic()
    with pytest.raises(BrokenPipeError):
        runner.run_all(jobs, Store(tmp_path), Limits(timeout=120.0), say)
    assert time.monotonic() - start < 120  # what the sleeper may take alone


def test_a_failure_does_not_hide_what_is_known():
    ended, stopped = {"status": "ok"}, {"status": "timeout"}
    failed, other = {"status": "failed", "error": "a"}, {"status": "failed", "error": "b"}
    assert runner.is_worse(failed, ended)
    assert runner.is_worse(failed, stopped)
    assert runner.is_worse(failed, dict(failed))
    assert not runner.is_worse(failed, other)
    assert not runner.is_worse(failed, None)
    assert not runner.is_worse(stopped, failed)


def test_reasons_of_failures():
    assert process._reason(1, "ValueError: no") == "ValueError: no"
    assert process._reason(2, "") == "ended with code 2"
    if os.name != "nt":
        assert process._reason(-9, "iteration 5") == "ended by SIGKILL after: iteration 5"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_killed_run_goes_on(tmp_path):
    command = [
        sys.executable,
        "-m",
        "experiments",
        "run",
        "sortnregress",
        "--toy",
        "--jobs",
        "1",
        "--results",
        str(tmp_path),
    ]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    place = os.environ | {"TMPDIR": str(scratch)}
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=place)
    while not any(tmp_path.glob("*.jsonl")):
        time.sleep(0.05)
        assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    printed, _ = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "goes on from here" in printed
    assert not workers_of(scratch)
    done = sum(row["status"] == "ok" for row in Store(tmp_path).rows.values())
    total = len(TABLES["sortnregress"].toy().runs)
    assert 0 < done < total
    again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert f"{total} runs, {done} of them done before" in again.stdout
    lines = [line for file in tmp_path.glob("*.jsonl") for line in file.read_text().splitlines()]
    keys = [store.key(json.loads(line)) for line in lines if json.loads(line)["status"] == "ok"]
    assert len(keys) == len(set(keys))


def test_half_a_line_is_lost_alone(tmp_path):
    found, _ = run_toy(EQUAL, tmp_path, seeds=2, jobs=1)
    file = tmp_path / "equal-variance.jsonl"
    whole = file.read_text()
    file.write_text(whole[:-40])
    again = Store(tmp_path)
    assert len(again.rows) == 1
    again.add(found.get("toy", 1, "equal-variance", {}))
    assert Store(tmp_path).rows == found.rows


def test_rows_of_before_have_the_names_of_today(tmp_path):
    before = {"data": "toy", "seed": 0, "status": "ok"}
    own = before | {"method": "vec2dag", "settings": {"score": "bic-nv", "regression": "gp"}, "score": 1.5}
    other = before | {"method": "corl", "settings": {"score": "BIC_different_var"}}
    for row in (own, other):
        (tmp_path / f"{row['method']}.jsonl").write_text(json.dumps(row) + "\n")
    found = Store(tmp_path)
    settings = {"criterion": "bic-nv", "regression": "gp"}
    assert found.get("toy", 0, "vec2dag", settings) == own | {"settings": settings}
    assert found.get("toy", 0, "corl", other["settings"]) == other
    # The same run, made again, takes the place of the row.
    found.add(before | {"method": "vec2dag", "settings": settings, "score": 2.5})
    (again,) = Store(tmp_path).series("toy", "vec2dag", settings)
    assert again["score"] == 2.5


def test_every_finished_run_of_the_estimator_has_settings_that_it_takes():
    taken = set(inspect.signature(ALIAS).parameters) | {"gp"}
    rows = [row for row in Store().rows.values() if row["method"] == "vec2dag"]
    assert rows
    assert all(set(row["settings"]) <= taken for row in rows)


def test_comments_and_docstrings_make_nothing_stale():
    source = '"""Doc."""\n\nx = "#1"  # one\n\n\ndef f():\n    """Doc\n\n    of f."""\n    return x\n'
    assert code.meaning(source) == 'x = "#1"\ndef f():\n    return x'
    assert code.meaning(source.replace("one", "1").replace("Doc", "Words")) == code.meaning(source)
    assert code.meaning(source.replace("return x", "return 1")) != code.meaning(source)


def test_a_change_makes_those_rows_stale_that_it_concerns(tmp_path, monkeypatch):
    package = tmp_path / "vec2dag"
    shutil.copytree(code.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code, "PACKAGE", package)

    def everything():
        code._read.cache_clear()
        return {
            "linear": code.digests("vec2dag", {"criterion": "bic-ev"}, "dense-er8"),
            "gp": code.digests("vec2dag", {"criterion": "bic-nv", "regression": "gp"}, "gp"),
            "peer": code.digests("dagma", {}, "dense-er8"),
        }

    def changed(file):
        before = everything()
        with (package / file).open("a") as stream:
            stream.write("\nmore = 1\n")
        now = everything()
        return {(name, part) for name, parts in now.items() for part in parts if parts[part] != before[name][part]}

    assert changed("plot.py") == set()
    assert changed("scores/gp.py") == {("gp", "library")}
    assert changed("search/orders.py") == {("linear", "library"), ("gp", "library")}
    assert changed("prune/additive.py") == {("gp", "judge")}
    assert changed("metrics.py") == {("linear", "judge"), ("gp", "judge"), ("peer", "judge")}
    code._read.cache_clear()


def test_rows_of_other_code_or_data_are_stale(tmp_path):
    found, _ = run_toy(EQUAL, tmp_path, jobs=1)
    (row,) = found.rows.values()
    assert code.stale(row) == ()
    assert code.stale(row | {"code": row["code"] | {"data": "other"}}) == ("data",)
    assert code.stale(row | {"code": row["code"] | {"library": "other"}}) == ("library",)
    assert code.stale({name: value for name, value in row.items() if name != "code"}) == ("unknown",)


def test_every_function_of_a_method_is_found():
    for name, method in METHODS.items():
        where, text = code._function(method.where)
        assert where.split(":")[1] in text
        assert code.digests(name, {}, "dense-er8")


def test_a_network_is_drawn_as_its_file_says(tmp_path):
    model = {
        "nodes": ["b", "a"],
        "arcs": [["a", "b"]],
        "cpds": {
            "a": {"coefficients": {"(Intercept)": [3.0]}, "variance": [4.0]},
            "b": {"coefficients": {"(Intercept)": [1.0], "a": [-2.0]}, "variance": [0.25]},
        },
    }
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "ecoli70.json").write_text(json.dumps(model))
    found = data.load("ecoli70-n100000", 0, tmp_path)
    assert found.A.tolist() == [[0, 0], [1, 0]]
    residual = found.X[:, 0] - 1.0 + 2.0 * found.X[:, 1]
    assert found.X[:, 1].mean() == pytest.approx(3.0, abs=0.05)
    assert found.X[:, 1].var() == pytest.approx(4.0, rel=0.02)
    assert residual.var() == pytest.approx(0.25, rel=0.02)
    assert data.prunings("ecoli70-n200") == ()
    assert data.network_of("dense-er8") is None


def test_complete_orders_are_stored_as_orders(rng):
    order = rng.permutation(6)
    A = np.zeros((6, 6), np.uint8)
    A[np.ix_(order, order)] = np.triu(np.ones((6, 6)), 1)
    assert evaluate.stored(A) == {"order": order.tolist()}
    assert np.array_equal(evaluate.graph_of(evaluate.stored(A), 6), A)
    A[order[0], order[3]] = 0
    assert set(evaluate.stored(A)) == {"edges"}
    assert np.array_equal(evaluate.graph_of(evaluate.stored(A), 6), A)
    assert evaluate.stored(np.zeros((3, 3), np.uint8)) == {"edges": []}


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands in for Python")
def test_the_truth_never_reaches_a_method(tmp_path):
    spy = tmp_path / "spy"
    spy.write_text(f'#!/bin/sh\nls "$3" > "{tmp_path}/seen"; cat "$3/job.json" > "{tmp_path}/job"; exit 3\n')
    spy.chmod(0o755)
    process.execute("pc", {}, 4, data.load("toy", 4).X, timeout=60, peers=spy)
    assert (tmp_path / "seen").read_text().split() == ["X.npy", "job.json", "log.txt"]
    told = {"method", "settings", "seed", "memory", "timeout", "patience", "careful"}
    assert set(json.loads((tmp_path / "job").read_text())) == told


def test_the_last_line_is_what_was_said(tmp_path):
    log = tmp_path / "log.txt"
    log.write_text(
        "2026-01-01 10:00:00,1 - /srv/lib/castle/linear.py[line:206] - INFO: [iter 5] h=1.7e-04, rho=1e8\n\n"
    )
    assert process._last_line(log) == "[iter 5] h=1.7e-04, rho=1e8"
    log.write_text(" 1%| | 1/100\r 2%| | 2/100")
    assert process._last_line(log) == "2%| | 2/100"
    log.write_text("FileNotFoundError: /srv/someone/data/x.npy is missing, 3/4 done")
    assert process._last_line(log) == "FileNotFoundError: x.npy is missing, 3/4 done"
    log.write_text("")
    assert process._last_line(log) == ""
    log.write_text("much talk\n" * 100_000 + "the end")
    assert process._last_line(log) == "the end"


@pytest.mark.slow
def test_seeds_reach_the_methods(tmp_path):
    run = Run("ppo", "policy-gradient", {"algorithm": "ppo", "n_steps": 3})
    first, _ = run_toy(run, tmp_path / "a", seeds=2)
    second, _ = run_toy(run, tmp_path / "b", seeds=2)
    rows = first.series("toy", run.method, run.settings)
    for row, other in zip(rows, second.series("toy", run.method, run.settings), strict=True):
        assert row["edges"] == other["edges"]
        assert row["curve"] == other["curve"]
    assert rows[0]["curve"]["reward"] != rows[1]["curve"]["reward"]


def test_settings_reach_the_policy_gradient(rng):
    X = rng.standard_normal((80, 3))

    def run(**settings):
        found = METHODS["policy-gradient"].function()(X, np.random.default_rng(0), **settings)
        return found["steps"], found["curve_rewards"].tolist()

    plain = {"algorithm": "ppo", "n_steps": 9}
    for other in ({"algorithm": "a2c"}, {"learning_rate": 0.1}, {"entropy": 1.0}, {"lambda0": 1.0}):
        assert run(**plain | other) != run(**plain)
    # All of them, although so few nodes settle at once.
    assert run(algorithm="ppo", n_steps=700)[0] == 700


def test_parents_selected_along_the_greedy_order_beat_a_threshold():
    # Before pruning, BIC keeps edges with small coefficients; the extended criterion hardly any.
    methods = {name: METHODS[name].function() for name in ("equal-variance", "equal-variance-bic")}
    shd = {"threshold": 0, "bic": 0, "bic, pruned": 0, "ebic": 0}
    for seed in range(10):
        sample = simulate.linear_gaussian(d=30, k=2, n=1000, rng=np.random.default_rng(seed))
        X = sample.X + 5.0  # where the origin is makes no difference
        found = methods["equal-variance-bic"](X, None)
        graphs = {
            "threshold": prune.prune_linear(sample.X, methods["equal-variance"](sample.X, None)),
            "bic": found,
            "bic, pruned": prune.prune_linear(X, found),
            "ebic": methods["equal-variance-bic"](X, None, criterion="ebic-ev"),
        }
        shd = {name: total + metrics.shd(sample.A, graphs[name]) for name, total in shd.items()}
    assert shd["bic"] <= 30
    assert shd["ebic"] <= 5
    assert shd["bic, pruned"] == 0 < shd["threshold"]


def test_careful_runs_find_the_same(rng):
    X = rng.standard_normal((60, 4)) @ np.triu(np.ones((4, 4)))
    plain, careful = (
        process.execute("vec2dag", {"bic": {"discount": 2.0}}, 0, X, timeout=120, careful=careful)
        for careful in (False, True)
    )
    assert careful.facts["cpu_seconds"] > 0
    assert plain.facts["cpu_seconds"] > 0
    assert np.array_equal(plain.found["A"], careful.found["A"])


# --- numbers --------------------------------------------------------------------------------------------------


def test_extension_orients_without_new_colliders():
    # 0 - 1 - 2 and 3 -> 2: neither 1 -> 2 nor, then, anything into 1 from both sides.
    C = np.zeros((4, 4), np.uint8)
    C[0, 1] = C[1, 0] = C[1, 2] = C[2, 1] = C[3, 2] = 1
    C[1, 3] = C[3, 1] = 1
    A = evaluate.consistent_extension(C)
    assert A[3, 2] == 1
    assert np.array_equal(A | A.T, C | C.T)
    square = np.zeros((4, 4), np.uint8)
    for i in range(4):
        square[i, (i + 1) % 4] = square[(i + 1) % 4, i] = 1
    assert evaluate.consistent_extension(square) is None


def test_evaluation_of_a_graph_with_a_cycle_says_so(rng):
    truth = np.triu(np.ones((3, 3), np.uint8), 1)
    sample = Dataset(rng.standard_normal((50, 3)), truth)
    cycle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    row = evaluate.evaluate(sample, "toy", {"A": cycle})
    assert row["dag"] is False
    assert "cpdag_shd" not in row["metrics"]["none"]
    both_ways = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert evaluate.evaluate(sample, "toy", {"A": both_ways})["dag"] is False
    assert "dag" not in evaluate.evaluate(sample, "toy", {"A": both_ways}, undirected=True)
    assert set(row["metrics"]) == {"none"}
    assert row["metrics"]["none"]["shd"] == 1
    found = evaluate.evaluate(sample, "toy", {"A": truth, "score": np.array(2.5)})
    assert set(found["metrics"]) == {"none", "linear", "cam", "ci"}
    assert found["metrics"]["none"]["correct"] == found["metrics"]["none"]["edges"] == 3
    assert found["score"] == 2.5


def test_the_truth_reaches_itself_and_an_empty_graph_does_not():
    sample = simulate.preset("regular-er2-d10", 0)
    settings = {"criterion": "bic-ev"}
    assert evaluate.reaches_truth(sample, settings, sample.A)
    assert not evaluate.reaches_truth(sample, settings, np.zeros_like(sample.A))


def test_paths_in_the_denominator_by_hand():
    # 0 -> 1 -> 2 and 0 -> 2, variances 1, 4, 2: lengths one: 01 and 02 of three; length two: 02 of one.
    A = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    X = np.array([[1.0, 2.0, 1.5], [-1.0, -2.0, -1.5]])
    numbers = evaluate.data_measures(Dataset(X, A))
    assert numbers["paths_in_denominator"] == 3 / 4
    assert numbers["varsortability"] == metrics.varsortability(X, A)


def test_means_and_standard_errors_by_hand():
    number = Number.of([1.0, 2.0, 6.0])
    assert number.mean == 3.0
    assert number.se == pytest.approx(math.sqrt(7.0 / 3.0))
    assert math.isnan(Number.of([4.0]).se)


def test_lines_have_the_published_numbers_and_the_quoted_methods(tmp_path):
    found = list(summary.lines(TABLES["pnl"], Store(tmp_path)))
    ours = next(line for line in found if line.name == "vec2dag" and line.pruning == "cam")
    assert ours.paper["shd"] == Number(6.8, 1.3)
    assert ours.remark == "not run"
    corl = next(line for line in summary.lines(TABLES["sachs"], Store(tmp_path)) if line.name == "corl")
    assert corl.paper["correct"].mean == 3
    assert corl.remark == "quoted"


def test_verdicts_allow_one_standard_error():
    def line(mean):
        return summary.Line("c", "vec2dag", "linear", {"shd": Number(mean)}, {"shd": Number(2.0, 0.5)})

    assert summary.is_met(line(2.5), "shd") is True
    assert summary.is_met(line(2.6), "shd") is False
    assert summary.is_met(line(1.0), "fdr") is None


def test_a_verdict_needs_all_sets_and_counts_once(tmp_path):
    found = Store(tmp_path)
    numbers = dict.fromkeys(("shd", "fdr", "tpr", "cpdag_shd", "skeleton_shd"), 0.0)
    row = {"data": "dense-er8", "method": "vec2dag", "settings": {"criterion": "bic-ev"}, "status": "ok"}
    for seed in range(5):
        assert not list(summary.verdicts(found))
        found.add({**row, "seed": seed, "metrics": {"none": numbers, "linear": numbers}, "seconds": 1.0})
    # The paper repeats the number of the dense table in that of sortnregress; the one of the skeletons is another.
    assert [(table.name, met) for table, _, _, met in summary.verdicts(found)] == [
        ("dense", True),
        ("constraint", True),
    ]


def test_sets_beyond_those_of_the_table_are_not_shown(tmp_path):
    found = Store(tmp_path)
    for seed, shd in ((0, 1.0), (7, 100.0)):
        row = {"data": "dense-er8", "seed": seed, "method": "nocurl", "settings": {}, "status": "ok", "seconds": 1.0}
        found.add(row | {"metrics": {"linear": {"shd": shd, "fdr": 0.0, "tpr": 0.0, "cpdag_shd": 0.0}}})
    line = next(line for line in summary.lines(TABLES["dense"], found) if line.name == "nocurl")
    assert line.sets == 1
    assert line.here["shd"].mean == 1.0


def test_a_rehearsal_leaves_no_results():
    before = {file: file.stat().st_mtime_ns for file in store.RESULTS.glob("*")}
    assert main(["run", "sortnregress", "--toy", "--methods", "equal-variance"]) == 0
    assert {file: file.stat().st_mtime_ns for file in store.RESULTS.glob("equal-variance*")} == {
        file: time for file, time in before.items() if file.name.startswith("equal-variance")
    }


def test_reasons_are_given_for_cells_that_exist():
    for name, cell, pruning in report.REASONS:
        assert cell in TABLES[name].cells
        assert pruning in TABLES[name].prunings


def test_slow_tables_come_last():
    jobs = runner.jobs_of(tables.select(["all"]), 1, lambda run: run.method in ("vec2dag", "policy-gradient"))
    slow = [job.run.method == "policy-gradient" and job.data == "dense-er8" for job in jobs]
    assert slow == sorted(slow)
    assert any(slow)


def test_time_left_is_that_of_runs_like_those_ahead(tmp_path):
    found = Store(tmp_path)
    for name, seconds in (("toy", 3.0), ("toy2", 100.0)):
        found.add({"data": name, "seed": 0, "method": "m", "settings": {}, "status": "ok", "seconds": seconds})
    clock = runner.Clock(found, 2)
    assert clock.estimate([Job("toy", 1, Run("m", "m"))] * 4) == pytest.approx(4 * (3.0 + 2.0) / 2)


def test_toy_tables_keep_the_definitions():
    table = Table("t", "", "", ("dense-er8", "gp"), tuple(Run(str(k), "adam", {"lambda1": k}) for k in range(9)))
    toy = table.toy()
    assert toy.cells == ("toy",)
    assert [run.settings["lambda1"] for run in toy.runs] == [0, 1]
    assert all(run.settings["max_steps"] == 20 for run in toy.runs)
