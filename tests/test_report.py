"""Pages about graphs: complete, self-contained, and safe whatever the columns are called."""

import ast
import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import vec2dag
from vec2dag import (
    ALIAS,
    BIC,
    PPO,
    Additive,
    Knowledge,
    LocalSearch,
    Moments,
    bootstrap,
    datasets,
    lagged,
    simulate,
)
from vec2dag._checks import data_warnings
from vec2dag.cli import main
from vec2dag.confidence import coefficients
from vec2dag.files.atomic import InputError, as_json
from vec2dag.files.graphs import write_graph
from vec2dag.files.tables import read_table
from vec2dag.report import Source, of_folder, of_model, page, report, summary
from vec2dag.report.advice import ADVICE, advice
from vec2dag.report.again import again, obstacle
from vec2dag.report.comparison import compared
from vec2dag.report.summaries import BINS, POINTS, table_of
from vec2dag.report.words import assumptions, found, known
from vec2dag.scores import CRITERIA

pytestmark = pytest.mark.filterwarnings("ignore:.*assumes equal noise variances")

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script></style><!--",
    "=cmd()|' /C calc'!A0",
    "right\u202eto left",
    "two\nlines $title ${data}",
    "&lt;b&gt;\u2028",
    "long " * 2000,
)


@pytest.fixture(scope="module")
def table():
    return simulate.linear_gaussian(d=8, k=2, n=300, rng=np.random.default_rng(3)).X


@pytest.fixture(scope="module")
def model(table):
    return ALIAS(random_state=0).fit(table, names=HOSTILE)


@pytest.fixture(scope="module")
def samples(table):
    return bootstrap(ALIAS(), table, 10, names=HOSTILE, random_state=0, n_jobs=1)


@pytest.fixture
def folder(model, table, tmp_path):
    """A folder with all that a run can leave."""
    model.save(tmp_path / "run", data="some <table>.csv")
    (tmp_path / "run" / "summary.json").write_bytes(as_json(summary(model, table)))
    return tmp_path / "run"


class Parsed(HTMLParser):
    """Elements, attributes, and the text by element."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.inside, self.texts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attributes)))
        if tag not in ("meta", "input", "br"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, text):
        self.texts.append((self.inside[-1] if self.inside else "", text))

    def text(self, *without):
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style", *without))


def embedded(text):
    """What the script of a page gets."""
    (content,) = re.findall(r'<script type="application/json" id="report">(.*?)</script>', text, re.DOTALL)
    return json.loads(content)


def source_of(edges, nodes="abcd", **about):
    """A source with edges ``(source, target, direction)`` by name."""
    listed = [
        {"source": nodes.index(i), "target": nodes.index(j), "direction": kind, "coefficient": 1.0}
        for i, j, kind in edges
    ]
    return Source("", "", tuple(nodes), listed, datetime(2025, 5, 4, tzinfo=UTC), **about)


# --- one file that loads nothing ------------------------------------------------------------------------------------


def test_a_page_loads_nothing(model, table, samples):
    text = report(model, table, samples)
    parsed = Parsed(text)
    for tag, attributes in parsed.attributes:
        for name, value in attributes.items():
            assert name not in ("src", "srcset", "style", "action", "data", "poster"), (tag, name)
            assert not name.startswith("on"), (tag, name)
            assert name != "href" or value.startswith("#"), value
    assert not {"link", "img", "iframe", "object", "embed", "base", "form", "audio", "video"} & set(parsed.tags)
    assert not re.search(r"https?:", text)
    styles = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    assert "url(" not in styles
    assert "@import" not in styles
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL)[1]
    assert not re.search(
        r"fetch\(|XMLHttpRequest|WebSocket|import\(|eval\(|innerHTML|outerHTML|document\.write", script
    )


def test_the_policy_allows_its_own_script_and_styles_only(model):
    text = report(model)
    policy = next(a["content"] for _, a in Parsed(text).attributes if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for rule, pattern in (("script-src", r"<script>(.*?)</script>"), ("style-src", r"<style>(.*?)</style>")):
        (content,) = re.findall(pattern, text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert text.index("Content-Security-Policy") < text.index("<title>") < text.index("<style>")


def test_names_are_only_text(model, table, samples):
    plain = ALIAS(random_state=0).fit(table)
    tags = [
        Counter(Parsed(text).tags)
        for text in (report(model, table, samples), report(plain, table, replace(samples, names=plain._names)))
    ]
    assert tags[0] == tags[1]
    text = report(model, table, samples)
    assert [node["name"] for node in embedded(text)["nodes"]] == list(HOSTILE)
    for node in embedded(text)["nodes"]:
        assert node["text"].isprintable()
        assert len(node["label"]) <= 22
        assert len(node["text"]) <= 120
    # the elements of the page itself, and none that a name has brought
    assert "\u202e" not in text
    assert "\u2028" not in text
    assert text.count("</script>") == 2


def test_texts_of_a_folder_are_only_text(folder):
    run = json.loads((folder / "run.json").read_text())
    bad = "<img src=x onerror=alert(1)>"
    run |= {"data": f"../{bad}", "warnings": [bad], "command": bad, "versions": {bad: bad}, "seed": bad}
    run["parameters"] |= {bad: bad, "knowledge": {"required": [bad], bad: {bad: 1}}}
    (folder / "run.json").write_text(json.dumps(run))
    parsed = Parsed(page(of_folder(folder), of_folder(folder)))
    assert "img" not in parsed.tags
    assert parsed.text().count(bad) >= 7


# --- complete ---------------------------------------------------------------------------------------------------------


def test_edges_are_those_of_the_model(model, table, samples):
    content = embedded(report(model, table, samples))
    assert content["sampled"]
    assert content["standardised"]
    edges = {(content["nodes"][e["s"]]["name"], content["nodes"][e["t"]]["name"]): e for e in content["edges"]}
    rows = list(model.edges_.rows)
    assert len(edges) == len(content["edges"]) == len(rows) > 5
    fitted = coefficients(table, model.adjacency_matrix_)
    share = {(r["source"], r["target"]): r for r in samples.confidence(model).rows}
    for row in rows:
        edge = edges[row["source"], row["target"]]
        assert edge["direction"] == row["direction"]
        assert edge["coefficient"] == pytest.approx(row["coefficient"])
        assert edge["error"] == pytest.approx(fitted.error[edge["s"], edge["t"]])
        assert edge["standardised"] == pytest.approx(fitted.standardised[edge["s"], edge["t"]])
        assert edge["p"] == pytest.approx(fitted.p_value[edge["s"], edge["t"]])
        told = share[row["source"], row["target"]]
        assert edge["shares"] == pytest.approx([told[k] for k in ("same", "reversed", "free", "absent")])
        # routes go from centre to centre
        for end, point in (("s", 0), ("t", -1)):
            node = content["nodes"][edge[end]]
            assert edge["route"][point] == pytest.approx([node["x"], node["y"]], abs=0.11)


def test_boxes_do_not_overlap(model):
    content = embedded(report(model))
    boxes = [(n["x"] - n["w"] / 2, n["x"] + n["w"] / 2, n["y"]) for n in content["nodes"]]
    for k, (left, right, y) in enumerate(boxes):
        for other_left, other_right, other_y in boxes[k + 1 :]:
            assert abs(y - other_y) >= content["height"] or right <= other_left or other_right <= left


def test_the_summary_of_a_table(model, table):
    told = summary(model, table)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert len(told["columns"]) == 8
    for column, values in zip(told["columns"], table.T, strict=True):
        assert len(column["counts"]) == BINS
        assert column["counts"] == np.histogram(values, BINS)[0].tolist()
        assert (column["low"], column["high"]) == (values.min(), values.max())
        assert column["mean"] == pytest.approx(values.mean())
        assert column["deviation"] == pytest.approx(values.std())
    R = np.corrcoef(table.T)
    for i, row in enumerate(told["correlations"]):
        assert row == pytest.approx(R[i, :i].tolist(), abs=5.1e-4)
    without = summary(model)
    assert without["columns"] is None
    assert without["correlations"] == told["correlations"]


def test_histograms_of_huge_offsets():
    X = 1e13 + np.random.default_rng(0).integers(0, 8, (50, 2)).astype(float)
    told = summary(ALIAS(random_state=0).fit(X), X)
    assert [sum(column["counts"]) for column in told["columns"]] == [50, 50]


def test_history_is_thinned(table):
    fitted = ALIAS("bic-ev", algorithm="ppo", refine=False, random_state=0).fit(table)
    steps = fitted.n_iter_
    assert steps > POINTS
    history = summary(fitted)["history"]
    assert len(history["step"]) <= POINTS
    assert (history["step"][0], history["step"][-1]) == (1, steps)
    for name, values in fitted.history_.items():
        assert history[name] == pytest.approx(values[np.array(history["step"]) - 1].tolist(), rel=1e-8)


def test_tables_in_other_forms(model, table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table, columns=list(HOSTILE))
    expected = summary(model, table)
    for same in (frame, frame[list(HOSTILE)[::-1]], np.asfortranarray(table)):
        assert summary(model, same)["columns"] == expected["columns"]
    moments = Moments.of(frame)
    assert summary(model, moments)["correlations"] == expected["correlations"]
    assert table_of(moments.taken(np.arange(8)[::-1]), HOSTILE).names == HOSTILE
    with pytest.raises(ValueError, match="X lacks columns of the graph: '=cmd"):
        summary(model, frame.drop(columns=HOSTILE[3]))
    with pytest.raises(ValueError, match=r"8 columns of the graph, got shape \(300, 7\)"):
        summary(model, table[:, :7])


def test_inputs_are_not_modified(model, table, samples):
    before = table.copy()
    table.setflags(write=False)
    report(model, table, samples)
    table.setflags(write=True)
    assert np.array_equal(before, table)


def test_what_pruning_decided(table):
    fitted = ALIAS("bic-ev", prune=vec2dag.prune.Threshold(threshold=0.8), random_state=0).fit(table)
    assert 0 < fitted.adjacency_matrix_.sum() < fitted.adjacency_raw_.sum()
    text = report(fitted, table)
    assert all(edge["why"].startswith("kept: coefficient") for edge in embedded(text)["edges"])
    removed = int(fitted.adjacency_raw_.sum() - fitted.adjacency_matrix_.sum())
    assert f"{removed} edge" in text
    assert text.count("removed: coefficient") == removed
    kept = int(fitted.adjacency_matrix_.sum())
    assert f"at least 0.8 in size, in the units of the columns: {kept} did, {removed} did not." in text


def test_regressions_that_are_not_linear():
    X = np.random.default_rng(0).standard_normal((60, 3))
    X[:, 1] += 2 * np.sin(2 * X[:, 0])
    fitted = ALIAS(regression="gp", prune="cam", random_state=0).fit(X)
    assert fitted.adjacency_matrix_.any()
    content = embedded(report(fitted, X))
    assert content["coefficient"] == "slope"
    assert content["tested"]
    assert all(edge["error"] is None for edge in content["edges"])
    assert [e["p"] for e in content["edges"]] == pytest.approx(
        [v.value for v in fitted.prune_table_ if v.kept], rel=1e-9
    )
    assert any("smooth function (Gaussian process)" in sentence for sentence in assumptions(of_model(fitted)))


def test_a_graph_without_edges():
    X = np.random.default_rng(1).standard_normal((200, 3))
    fitted = ALIAS(random_state=0).fit(X)
    assert not fitted.adjacency_matrix_.any()
    text = report(fitted, X)
    assert "No edges were found among 3 columns." in text
    assert embedded(text)["edges"] == []


def test_other_rows_are_refused(model, table):
    for other, message in (
        (table[:-1], "X is not the table of the fit: that had 300 rows, X has 299"),
        (table[:, ::-1], "X is not the table of the fit: there the"),
        (table * [1, 1, 2, 1, 1, 1, 1, 1], "the variance of '</script>.* is .*, not "),
    ):
        with pytest.raises(ValueError, match=message):
            report(model, other)
    assert report(model, table[::-1])
    assert report(ALIAS(random_state=0, standardize=True).fit(table), table)


def test_correlations_near_one_keep_their_digits():
    x = np.random.default_rng(0).standard_normal(500)
    X = np.column_stack([x, x + 1e-3 * np.random.default_rng(1).standard_normal(500)])
    assert summary(ALIAS(random_state=0).fit(X))["correlations"][1][0] == pytest.approx(
        np.corrcoef(X.T)[0, 1], abs=1e-9
    )


def test_a_bootstrap_of_other_columns_is_refused(model, samples):
    with pytest.raises(ValueError, match="bootstrap must be of the columns of the model"):
        report(model, bootstrap=replace(samples, names=tuple("abcdefgh")))


# --- folders ----------------------------------------------------------------------------------------------------------


def test_a_folder_says_what_the_model_says(model, table, folder):
    here, there = embedded(report(model, table)), embedded(page(of_folder(folder)))
    assert here | {"file": ""} == there | {"file": ""}
    assert there["file"] == "some--table-edges.csv"
    parsed = Parsed(page(of_folder(folder)))
    assert "some <table>.csv" in parsed.text()
    assert "300 rows" in parsed.text()
    for name in model.run()["versions"]:
        assert name in parsed.text()
    assert again(of_model(model)) in parsed.text()


def test_a_folder_that_lacks_the_summary(model, table, folder):
    (folder / "summary.json").unlink()
    source = of_folder(folder)
    content = embedded(page(source))
    assert content["columns"] is content["correlations"] is content["history"] is None
    assert [e["error"] for e in content["edges"]] == pytest.approx(
        [e["error"] for e in embedded(report(model))["edges"]]
    )
    assert any("--data" in sentence for sentence in source.lacking)
    assert any("vec2dag bootstrap" in sentence for sentence in source.lacking)
    for sentence in source.lacking:
        assert sentence in Parsed(page(source)).text()
    completed = source.with_table(table, "X")
    fresh = summary(model, table)
    assert completed.summary["columns"] == fresh["columns"]
    assert completed.summary["correlations"] == fresh["correlations"]


def test_a_folder_with_a_graph_alone(table, tmp_path):
    A = np.triu(np.ones((3, 3)), 1)
    fitted = coefficients(table[:, :3], A)
    write_graph(tmp_path, A, list("abc"), weights=fitted.value)
    source = of_folder(tmp_path)
    assert again(source) == ""
    content = embedded(page(source))
    assert not content["standardised"]
    told = embedded(page(source.with_table(table[:, :3], "X")))
    assert told["standardised"]
    for edge in told["edges"]:
        assert edge["error"] == pytest.approx(fitted.error[edge["s"], edge["t"]])
    other = table[:, :3] * [1.0, 2.0, 1.0]
    with pytest.raises(InputError, match=r"X is not the table of .*: there the coefficient of 'a' -> 'b' is"):
        source.with_table(other, "X")


def test_coefficients_of_standardised_columns(table, tmp_path):
    ALIAS(standardize=True, random_state=0).fit(table).save(tmp_path)
    source = of_folder(tmp_path).with_table(table, "X")
    assert all(e["standardised"] == pytest.approx(e["coefficient"]) for e in source.edges)


def test_folders_of_bootstrap(model, table, samples, folder, tmp_path):
    samples.save(tmp_path / "boot", data="t.csv")
    content = embedded(page(of_folder(tmp_path / "boot")))
    A = samples.consensus()
    assert {(e["s"], e["t"]) for e in content["edges"]} == {tuple(e) for e in np.argwhere(A).tolist()}
    for edge in content["edges"]:
        i, j = edge["s"], edge["t"]
        shares = [samples.directed[i, j], samples.directed[j, i], samples.free[i, j], samples.absent[i, j]]
        assert edge["shares"] == pytest.approx(shares)
    # beside a graph, whether in the same folder or in another
    beside = embedded(page(of_folder(folder), of_folder(tmp_path / "boot")))["edges"]
    samples.save(folder)
    both = embedded(page(of_folder(folder)))["edges"]
    expected = embedded(report(model, table, samples))["edges"]
    for k, edge in enumerate(expected):
        assert both[k]["shares"] == pytest.approx(edge["shares"])
        assert beside[k]["shares"] == pytest.approx(edge["shares"])


def test_a_summary_of_another_graph_is_left_out(model, table, folder):
    told = summary(model, table)
    told["edges"] = told["edges"][1:]
    (folder / "summary.json").write_bytes(as_json(told))
    source = of_folder(folder)
    assert source.summary == {}
    assert "summary.json is of another graph and was not used." in source.lacking
    assert embedded(page(source))["columns"] is None


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("summary.json", "{}x", "summary.json: not JSON"),
        ("summary.json", "[]", "must hold a JSON object, got list"),
        ("summary.json", '{"format": "vec2dag-summary", "version": 2}', "not a summary of version 1"),
        ("summary.json", '{"format": "vec2dag-summary", "version": 1}', "summary.json is damaged"),
        ("run.json", "nonsense", "run.json: not JSON"),
        ("run.json", "[" * 100_000, "run.json: not JSON"),
        ("edges.csv", 'source,target,error\na,b,"1', "edges.csv: not a table of edges"),
        ("edges.csv", "source,target,error\na,b,many", "edges.csv: not a table of edges"),
        ("graph.json", '{"nodes": ["a"], "edges": [{"source": "a", "target": "b"}]}', "graph.json: an edge names 'b'"),
        (
            "graph.json",
            '{"nodes": ["a", "b"], "edges": [{"source": "a", "target": "b"}, {"source": "b", "target": "a"}]}',
            "graph.json: the graph has a cycle",
        ),
        ("graph.json", '{"nodes": [], "edges": []}', "the graph has no nodes"),
    ],
)
def test_damaged_files_are_refused(folder, file, content, message):
    (folder / file).write_text(content)
    with pytest.raises(InputError, match=re.escape(message)):
        page(of_folder(folder))


@pytest.mark.parametrize(
    "change",
    [
        {"columns": [{}] * 8},
        {"history": {"step": [1], "edges": ["<b>"]}},
        {"model": 3},
        *({"pruning": pruning} for pruning in (None, 1, "x", [1], [{}], [{"source": 0, "target": 8}])),
        {"pruning": [{"source": 0, "target": 1, "value": "x"}]},
    ],
    ids=str,
)
def test_damaged_summaries_are_refused(model, table, folder, change):
    (folder / "summary.json").write_bytes(as_json(summary(model, table) | change))
    with pytest.raises(InputError, match=r"summary\.json is damaged"):
        of_folder(folder)


def test_numbers_beyond_double_precision(folder, capsys):
    graph = json.loads((folder / "graph.json").read_text())
    graph["edges"][0]["weight"] = 10**400
    run = json.loads((folder / "run.json").read_text()) | {"seconds": 10**400}
    (folder / "run.json").write_text(json.dumps(run))
    assert of_folder(folder).run["seconds"] is None
    (folder / "graph.json").write_text(json.dumps(graph))
    assert run_report(folder, "-q") == 2
    assert "is beyond double precision" in capsys.readouterr().err


@pytest.mark.parametrize(("key", "value"), [("columns", 9), ("edges", 1)])
def test_what_was_run_for_another_graph_is_left_out(folder, key, value):
    run = json.loads((folder / "run.json").read_text())
    assert of_folder(folder).run
    (folder / "run.json").write_text(json.dumps(run | {key: value}))
    source = of_folder(folder)
    assert source.run == {}
    assert source.lacking[0] == "run.json is of another graph and was not used."
    assert "What was run is not recorded here." in Parsed(page(source)).text()


def test_strange_values_in_run_json_are_shown_or_left_out(folder):
    run = json.loads((folder / "run.json").read_text())
    for value in (None, 3, [1], {"a": {"b": [float("nan")]}}, "x", True):
        strange = {key: value for key in run}
        (folder / "run.json").write_text(json.dumps(strange))
        assert page(of_folder(folder)).startswith("<!doctype html>")


def test_folders_without_a_graph_are_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InputError, match=r"has no graph\.json: a folder of vec2dag discover"):
            of_folder(folder)


# --- two runs ---------------------------------------------------------------------------------------------------------


def test_edges_are_matched_by_name():
    first = source_of([("a", "b", "oriented"), ("a", "c", "oriented"), ("b", "c", "free"), ("a", "d", "known")])
    second = source_of(
        [("b", "a", "oriented"), ("a", "c", "known"), ("c", "b", "oriented"), ("e", "d", "oriented")], "edcba"
    )
    result = compared(first, second)
    assert result.status == {(0, 1): "reversed", (0, 2): "same", (1, 2): "free", (0, 3): "absent"}
    assert result.groups == {
        "in both": [("a", "→", "c")],
        "in both, direction open in one or both": [("b", "—", "c")],
        "reversed in the second": [("a", "→", "b")],
        "only in the first": [("a", "→", "d")],
        "only in the second": [("e", "→", "d")],
    }
    assert result.apart == ["Columns that only the second has: 'e'."]
    # names that are written from right to left turn no arrow around
    assert "<li><bdi>a</bdi> → <bdi>c</bdi></li>" in result.html


def test_a_comparison_accounts_for_every_edge(rng):
    for _ in range(50):
        graphs = []
        for _ in range(2):
            order = rng.permutation(5)
            A = np.triu(rng.random((5, 5)) < 0.5, 1)[np.ix_(order, order)]
            kinds = rng.choice(["oriented", "free"], 25).tolist()
            graphs.append(source_of([("abcde"[i], "abcde"[j], kinds.pop()) for i, j in np.argwhere(A)], "abcde"))
        one, two = (source.A for source in graphs)
        here, back = (compared(*pair).groups.values() for pair in (graphs, graphs[::-1]))
        counts, reverse = ([len(group) for group in groups] for groups in (here, back))
        assert sum(counts[:4]) == one.sum()
        assert sum(counts[:3]) == np.triu((one | one.T) & (two | two.T)).sum()
        assert counts[4] == two.sum() - sum(counts[:3])
        assert counts == [*reverse[:3], reverse[4], reverse[3]]


def test_a_comparison_on_the_page(folder, model, tmp_path):
    ALIAS("bic-ev", random_state=0).fit(
        simulate.linear_gaussian(d=8, k=2, n=300, rng=np.random.default_rng(3)).X, names=HOSTILE
    ).save(tmp_path / "other")
    text = page(of_folder(folder), of_folder(tmp_path / "other"))
    content = embedded(text)
    assert content["other"] == "other"
    expected = compared(of_folder(folder), of_folder(tmp_path / "other"))
    assert {(e["s"], e["t"]): e["beside"] for e in content["edges"]} == expected.status
    parsed = Parsed(text)
    assert "Compared with other" in parsed.text()
    assert any(attributes.get("href") == "#compare" for _, attributes in parsed.attributes)
    assert "#compare" not in page(of_folder(folder))


# --- words ------------------------------------------------------------------------------------------------------------


def test_what_was_found_in_one_sentence():
    some = [("a", "b", "oriented"), ("a", "c", "free"), ("a", "d", "known")]
    assert found(source_of(some)) == (
        "3 edges among 4 columns: the direction is decided by the score for 1, known beforehand for 1 and open for 1."
    )
    assert found(source_of(some[:1])) == "1 edge among 4 columns: its direction is decided by the score."
    assert found(source_of([*some[1:2], ("b", "c", "free")])) == "2 edges among 4 columns: all directions are open."
    assert "decided by most samples" in found(source_of(some, consensus=True))


@pytest.mark.parametrize("criterion", [*CRITERIA, BIC(gamma=0.5), lambda A: -float(A.sum())])
def test_assumptions_are_those_of_the_criterion(criterion, table, tmp_path):
    categories = criterion in ("bdeu", "bic-cat")
    X = (table[:, :4] > 0).astype(int) if categories else table[:, :4]
    fitted = ALIAS(criterion, random_state=0).fit(X)
    source = of_model(fitted)
    sentences = " ".join(assumptions(source))
    assert ("is a category" in sentences) == categories
    equal = callable(criterion) is False and getattr(criterion, "equal_variances", None)
    if isinstance(criterion, str):
        equal = criterion in ("bic-ev", "ebic-ev", "ls")
    assert ("same variance" in sentences) == bool(equal)
    assert ("some directions stay open" in sentences) == hasattr(fitted, "cpdag_")
    assert ("only whoever gave it knows" in sentences) == callable(criterion)
    # a folder without a summary knows as much of a criterion that has a name
    fitted.save(tmp_path)
    if isinstance(criterion, str):
        assert assumptions(of_folder(tmp_path)) == assumptions(source)


@pytest.fixture
def chain(rng):
    """a -> b -> c, and d alone."""
    X = rng.standard_normal((300, 4))
    X[:, 1] += X[:, 0]
    X[:, 2] += X[:, 1]
    return X


@pytest.fixture
def chain_file(chain, tmp_path):
    np.savetxt(tmp_path / "chain.csv", chain, delimiter=",", header="a,b,c,d", comments="")
    return str(tmp_path / "chain.csv")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"criterion": "bic-ev", "refine": False, "init": "random", "standardize": True},
        {"criterion": BIC("equal", gamma=0.5), "prune": vec2dag.prune.Threshold(threshold=0.5)},
        {"criterion": BIC(gamma=0.3), "prune": vec2dag.prune.BIC(gamma=0.3)},
        {"algorithm": PPO(n_steps=20)},
        {"algorithm": LocalSearch(chains=2)},
        {"prune": vec2dag.prune.CAM(alpha=0.01)},
        {"regression": Additive(n_basis=5)},
        {"knowledge": Knowledge(required=["a -> d"], max_parents={"b": 1})},
        {"knowledge": {"forbidden": [("a", "b")], "tiers": [["c"], ["*"]]}},
    ],
    ids=lambda settings: "-".join(settings) or "default",
)
@pytest.mark.parametrize("saved", [False, True], ids=["model", "folder"])
def test_the_code_makes_the_same_graph(chain, tmp_path, settings, saved):
    model = ALIAS(random_state=1, **{k: clone(v, safe=False) for k, v in settings.items()}).fit(chain, names="abcd")
    model.save(tmp_path)
    scope = {"X": chain}
    exec(again(of_folder(tmp_path) if saved else of_model(model, chain)), scope)
    made = scope["model"]
    assert np.array_equal(made.adjacency_matrix_, model.adjacency_matrix_)
    for name in settings.keys() - {"knowledge"}:
        assert repr(made.parameters_[name]) == repr(model.parameters_[name])
    told = [Knowledge.of(m.parameters_["knowledge"], tuple("abcd")) for m in (made, model)]
    assert told[0].to_dict() == told[1].to_dict()


def test_code_is_given_for_settings_of_stable_baselines():
    pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
    run = ALIAS.paper(random_state=0).get_params(deep=False)
    text = again(source_of([], run={"parameters": json.loads(as_json(run))}))
    assert text.startswith("from vec2dag import ALIAS, sb3\n")
    assert "algorithm=sb3.PPO(n_steps=20000, " in text


@pytest.mark.parametrize(
    ("settings", "who"),
    [
        ({"prune": lambda X, A: A}, "prune (<lambda>)"),
        ({"criterion": lambda A: -float(A.sum())}, "criterion (<lambda>)"),
        ({"random_state": np.random.default_rng(0)}, "random_state (Generator(PCG64)"),
        ({"regression": Ridge(alpha=2.0)}, "regression (Ridge(alpha=2.0))"),
        ({"init": np.triu(np.ones((4, 4)), 1)}, "init ("),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_code_that_would_not_run_is_not_given(chain, settings, who):
    source = of_model(ALIAS(**{"random_state": 0} | settings).fit(chain), chain)
    assert again(source) == ""
    assert f"only whoever ran it has {who}" in obstacle(source)
    text = page(source)
    assert escape(obstacle(source)) in text
    assert "<pre" not in text


def test_names_in_the_code_are_only_text(table):
    model = ALIAS(random_state=0, knowledge={"exogenous": [HOSTILE[5]]}).fit(table[:, :7], names=HOSTILE[:7])
    source = of_model(model)
    scope = {"X": table[:, :7]}
    # as it is read from the page
    exec(next(text for tag, text in Parsed(page(source)).texts if tag == "code"), scope)
    assert tuple(scope["model"].feature_names_in_) == HOSTILE[:7]
    assert np.array_equal(scope["model"].adjacency_matrix_, model.adjacency_matrix_)
    long = ALIAS(random_state=0, knowledge={"exogenous": ["b"]}).fit(table[:, :3], names=["a" * 30_000, "b", "c"])
    assert again(of_model(long)) == ""
    assert "too many for a page" in obstacle(of_model(long))


def test_a_seed_that_was_not_fixed_is_said_so(chain):
    text = again(of_model(ALIAS().fit(chain)))
    assert text == (
        "from vec2dag import ALIAS\n\n# The seed was not fixed: another run may find another graph.\n"
        "model = ALIAS().fit(X)"
    )
    assert "seed" not in again(of_model(ALIAS(random_state=0).fit(chain)))


@pytest.mark.parametrize("said", [None, Knowledge(required=["a -> d"]), {"required": ["a -> d"]}])
def test_the_code_makes_a_bootstrap_again(chain, tmp_path, said):
    result = bootstrap(ALIAS("bic-ev", knowledge=said), chain, 4, names="abcd", random_state=3, n_jobs=1)
    result.save(tmp_path, 0.6)
    source = of_folder(tmp_path)
    scope = {"X": chain}
    exec(again(source), scope)
    assert np.array_equal(scope["A"], result.consensus(0.6))
    assert np.array_equal(scope["result"].directed, result.directed)
    assert known(source) == ([] if said is None else ["required: a -> d"])


def test_a_bootstrap_that_does_not_say_its_seed(chain, tmp_path):
    bootstrap(ALIAS(), chain, 2, random_state=3, n_jobs=1).save(tmp_path)
    run = json.loads((tmp_path / "bootstrap.json").read_text())
    (tmp_path / "bootstrap.json").write_text(json.dumps(run | {"seed": None}))
    assert again(of_folder(tmp_path)) == ""
    assert "only whoever ran it has seed (None)" in obstacle(of_folder(tmp_path))


def test_the_command_of_a_bootstrap_is_shown(chain_file, tmp_path):
    assert main(["bootstrap", chain_file, "-o", str(tmp_path / "boot"), "--samples", "3", "-q"]) == 0
    assert again(of_folder(tmp_path / "boot")).startswith("vec2dag bootstrap ")


def test_what_is_said_about_a_model_comes_before_what_it_says(model, table):
    notes = ["Duplicated columns: 'a' = 'b'; no score can tell them apart, keep one of each."]
    about = {"data": "some/table.csv", "command": "vec2dag discover some/table.csv -o out", "warnings": notes}
    source = of_model(model, table, about=about)
    assert (source.title, source.run["warnings"], again(source)) == ("some/table.csv", notes, about["command"])
    text = Parsed(page(source)).text()
    for told in ("table.csv", *notes, about["command"]):
        assert told in text
    (lack,) = source.lacking
    assert "vec2dag bootstrap some/table.csv -o BOOT with the options of this fit, then vec2dag report DIR BOOT" in lack
    assert source.run["rows"] == 300
    (lack,) = of_model(model, table).lacking
    assert "bootstrap(model, X)" in lack


def test_the_command_is_shown_where_it_is_known():
    assert again(source_of([], run={"command": "vec2dag discover t.csv -o out"})) == "vec2dag discover t.csv -o out"


def told(source, start):
    """The sentence about what was assumed that begins so, or None."""
    return next((sentence for sentence in assumptions(source) if sentence.startswith(start)), None)


def test_a_graph_with_required_edges_is_not_called_the_best_of_all(chain):
    free, bound = (
        of_model(ALIAS(random_state=0, knowledge=known).fit(chain, names="abcd"))
        for known in (None, {"required": ["a -> d"]})
    )
    assert bound.run["score"] < free.run["score"]
    assert told(free, "No graph has a better score than this one: all were compared.")
    assert told(bound, "No graph that agrees with what is known has a better score than this one: all were compared.")
    assert not told(bound, "No graph has")


@pytest.mark.parametrize("exact", [True, False])
def test_a_pruned_graph_is_not_called_an_optimum(rng, exact):
    X = rng.standard_normal((2000, 4))
    X[:, 1] += 0.15 * X[:, 0]
    X[:, 2] += X[:, 1]
    model = ALIAS("bic-ev", random_state=0).fit(X)
    assert model.adjacency_raw_.sum() > model.adjacency_matrix_.sum()
    source = of_model(model)
    source = replace(source, run=source.run | {"exact": exact, "certified": True})
    # adding the removed edge again is a single change, and was found to improve the score
    start = "No graph has a better score than this one had before pruning" if exact else "Before pruning, no single"
    assert told(source, start)
    assert not told(source, "No single change")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "Edges were not tested afterwards: the score itself has a price for each."),
        ({"criterion": "bic-ev"}, "coefficient is at least 0.3 in size, in the units of the columns."),
        ({"criterion": BIC("equal", gamma=0.5)}, "coefficient is at least 0.3 in size, in the units of the columns."),
        ({"criterion": "bic-ev", "standardize": True}, "at least 0.3 in size, in standard deviations of both columns."),
        ({"prune": vec2dag.prune.CAM(alpha=0.01)}, "the p-value of its test is below 0.01."),
        ({"prune": "bic"}, "it improves the linear BIC."),
        ({"regression": "additive"}, "the p-value of its test is below 0.001."),
        ({"prune": np.multiply}, "as whoever ran it decided"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_bootstrap_says_how_its_samples_were_pruned(chain, tmp_path, settings, expected):
    prune = settings.get("prune")
    given = settings | ({"prune": keep_all} if prune is np.multiply else {})
    bootstrap(ALIAS(**given), chain, 2, random_state=0, n_jobs=1).save(tmp_path)
    (sentence,) = (s for s in assumptions(of_folder(tmp_path)) if "search" in s or "Edges were not tested" in s)
    assert expected in sentence
    assert sentence.startswith("Edges") == (not settings)


def keep_all(X, A):
    """A pruner that nobody knows."""
    return A


def test_nothing_is_claimed_about_a_score_that_nobody_knows(chain):
    sentences = " ".join(assumptions(of_model(ALIAS(lambda A: -float(A.sum()), random_state=0).fit(chain))))
    assert "Edges were not tested afterwards." in sentences
    for claim in ("price", "weighted sum", "variance", "Gaussian"):
        assert claim not in sentences
    unknown = assumptions(source_of([("a", "b", "oriented")]))
    assert "What the score assumes is not recorded here." in unknown
    assert len(unknown) == 3


def test_rows_of_a_time_series_are_not_called_independent(chain):
    series = lagged(chain, 1, names="abcd")
    fitted = ALIAS(knowledge=series.knowledge, random_state=0).fit(series.X, names=series.names)
    assert not any("rows are independent" in sentence for sentence in assumptions(of_model(fitted)))
    assert told(of_model(fitted), "Within one time no column causes itself")
    # a name alone makes no time series
    plain = ALIAS(random_state=0).fit(chain, names=["x[t-1]", "b", "c", "d"])
    assert any("rows are independent" in sentence for sentence in assumptions(of_model(plain)))


def test_units_are_not_spoken_of_after_standardising(chain):
    raw, divided = (
        " ".join(assumptions(of_model(ALIAS("bic-ev", standardize=s, random_state=0).fit(chain))))
        for s in (False, True)
    )
    assert "they change with the units of the columns" in raw
    assert "in size, in the units of the columns" in raw
    assert "units of the columns" not in divided
    assert "in size, in standard deviations of both columns" in divided


def test_what_was_known():
    source = source_of([], run={"parameters": {"knowledge": {"required": ["a -> b"], "tiers": [["a"], ["b", "c"]]}}})
    assert known(source) == ["required: a -> b", "tiers: a; b, c"]
    assert known(source_of([], run={"parameters": {"knowledge": {}}})) == []


# --- warnings and what to do ------------------------------------------------------------------------------------------


def sentences_in(body):
    """The texts that a piece of code can warn with, a number in place of every value."""

    def text(node):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        if isinstance(node, ast.JoinedStr):
            return "".join(part.value if isinstance(part, ast.Constant) else "7" for part in node.values)
        return None

    return [told for node in body if (told := text(node)) and len(told) > 20]


def warned_by(name, function=None):
    """Sentences of ``warn(...)`` in a module, or of all that a function returns or appends."""
    tree = ast.parse((Path(vec2dag.__file__).parent / name).read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if function is None:
        return sentences_in(node.args[0] for node in calls if getattr(node.func, "id", "") == "warn" and node.args)
    inside = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function)
    found = [node.args[0] for node in ast.walk(inside) if isinstance(node, ast.Call) and node.args]
    found += [node.value for node in ast.walk(inside) if isinstance(node, ast.Return) and node.value is not None]
    return sentences_in(found)


@pytest.mark.parametrize(
    ("name", "function", "least"),
    [
        ("_checks.py", "data_warnings", 5),
        ("estimator.py", None, 4),
        ("scores/gp.py", "doubt", 1),
        ("scores/local.py", None, 1),
        ("search/gradient.py", None, 1),
        ("search/checkpoint.py", None, 1),
        ("knowledge/said.py", None, 1),
        ("knowledge/foreign.py", None, 2),
        ("knowledge/lags.py", None, 1),
    ],
)
def test_every_warning_of_a_fit_has_advice(name, function, least):
    sentences = warned_by(name, function)
    assert len(sentences) >= least
    for sentence in sentences:
        assert advice(sentence), sentence


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n,3\n4,5\n",
        "a;b\n1,5;2,5\n2,5;3,5\n3,5;1,5\n",
        "# note\na,b\n1,2\n2,3\n4,5\n",
        "a,caf\xe9\n1,2\n2,3\n4,5\n",
        ",a,b\n0,1,2\n1,2,3\n2,4,5\n",
    ],
)
def test_notes_about_reading_have_advice(text, tmp_path):
    (tmp_path / "t.csv").write_text(text, encoding="latin-1")
    with pytest.warns(UserWarning, match=r"t\.csv: ") as caught:
        read_table(tmp_path / "t.csv", missing="drop")
    assert all(advice(str(warning.message)) for warning in caught), [str(w.message) for w in caught]


def test_every_advice_is_used():
    """Those about data are reached by real tables; each pattern is found somewhere in the sources."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 4))
    X[:, 3] = rng.integers(0, 2, 100)
    tables = [X, np.column_stack([X, X[:, 0]]), np.column_stack([X, X[:, 0] + X[:, 1]]), X * [1, 1e5, 1, 1], X[:3]]
    sentences = {s for T in tables for s in data_warnings(T, [f"x{i}" for i in range(T.shape[1])])}
    assert len({advice(s) for s in sentences}) == 5
    source = "".join(
        f.read_text(encoding="utf-8") for f in Path(vec2dag.__file__).parent.rglob("*.py") if f.name != "advice.py"
    )
    flat = re.sub(r'"\s*\n\s*f?"', "", source)
    for pattern, _ in ADVICE:
        loose = pattern.replace("[0-9]+", r"\{[^}]*\}")
        assert re.search(loose, flat), pattern


def test_warnings_are_shown_with_and_without_advice():
    notes = ["Duplicated columns: 'a' = 'b'; no score can tell them apart, keep one of each.", "Something <new>."]
    text = Parsed(page(source_of([], run={"warnings": notes}))).text()
    for note in notes:
        assert note in text
    assert text.count("What to do.") == 1
    assert "2 warnings about this run" in text
    assert "There were none." in Parsed(page(source_of([], run={"warnings": []}))).text()


# --- the command ------------------------------------------------------------------------------------------------------


def run_report(*arguments):
    try:
        return main(["report", *map(str, arguments)])
    except SystemExit as end:
        return end.code


def test_the_command_writes_a_page(folder, capsys):
    assert run_report(folder) == 0
    assert capsys.readouterr().out == f"written to {folder / 'report.html'}\n"
    expected = embedded(page(of_folder(folder)))
    assert embedded((folder / "report.html").read_text(encoding="utf-8")) == expected
    assert run_report(folder, folder, "-o", folder / "new" / "page.html", "-q") == 0
    assert capsys.readouterr().out == ""
    assert embedded((folder / "new" / "page.html").read_text(encoding="utf-8"))["other"] == "run (second)"


def test_the_command_reads_a_table(tmp_path, capsys):
    data = datasets.load("sachs")
    ALIAS(random_state=0).fit(data.X[:, 2:], names=data.names[2:]).save(tmp_path, data="sachs")
    assert run_report(tmp_path, "--data", "sachs", "-q") == 0
    content = embedded((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert [c["mean"] for c in content["columns"]] == pytest.approx(data.X[:, 2:].mean(axis=0).tolist())
    assert "--data" not in (tmp_path / "report.html").read_text(encoding="utf-8").split("<main")[1].split("<script")[0]
    small = tmp_path / "small.csv"
    small.write_text("PKA,PKC\n1,2\n2,1\n3,5\n")
    assert run_report(tmp_path, "--data", small) == 2
    assert "Plcg" in capsys.readouterr().err
    assert run_report(tmp_path, "--data", small, "--columns", "PKA") == 2
    assert "lacks columns of the graph: 'Plcg'" in capsys.readouterr().err


def test_the_command_refuses_in_a_sentence(tmp_path, capsys):
    assert run_report(tmp_path / "nothing") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("vec2dag: ")
    assert "has no graph.json" in err
    assert len(err.splitlines()) == 1
