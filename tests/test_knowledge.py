"""Knowledge: what it permits, against all DAGs of a few nodes; what it refuses; files, and what others use."""

import json
import pickle
from copy import deepcopy
from itertools import permutations

import numpy as np
import pytest
from oracles import acyclic, all_dags

from vec2dag import dag2vec, vec2dag, vec_dim
from vec2dag.files.atomic import InputError
from vec2dag.files.knowledge import parse_tetrad
from vec2dag.knowledge import Constraints, Knowledge, lagged
from vec2dag.knowledge.constraints import Columns

NAMES = ("a", "b", "c", "d")


def random_statement(d: int, rng: np.random.Generator) -> dict:
    """Arguments of Knowledge about the first d names; many contradict themselves."""
    names = NAMES[:d]
    pairs = list(permutations(names, 2))

    def some(of, most):
        return [of[k] for k in rng.permutation(len(of))[: rng.integers(0, most + 1)]]

    level = rng.integers(-1, 3, d) if rng.random() < 0.6 else np.full(d, -1)
    limited = rng.random()
    return {
        "required": some(pairs, 2),
        "forbidden": some(pairs, 3),
        "tiers": [[n for n, t in zip(names, level, strict=True) if t == k] for k in range(3)],
        "within_tiers": rng.random(3) < 0.7,
        "exogenous": some(names, 1),
        "sinks": some(names, 1),
        "max_parents": None if limited < 0.4 else int(rng.integers(0, 3)) if limited < 0.7 else {names[0]: 1, "*": 2},
    }


def agrees(A: np.ndarray, said: dict) -> bool:
    """By definition, edge by edge."""
    names = NAMES[: len(A)]
    edges = {(names[i], names[j]) for i, j in np.argwhere(A)}
    tier = {name: k for k, group in enumerate(said["tiers"]) for name in group}
    limits = said["max_parents"]
    for j, name in enumerate(names):
        most = limits.get(name, limits["*"]) if isinstance(limits, dict) else limits
        if most is not None and A[:, j].sum() > most:
            return False
    for a, b in edges:
        if (a, b) in said["forbidden"] or b in said["exogenous"] or a in said["sinks"]:
            return False
        if a in tier and tier[a] > tier.get(b, 9):
            return False
        if a in tier and tier[a] == tier.get(b) and not said["within_tiers"][tier[a]]:
            return False
    return set(said["required"]) <= edges


def codes(A: np.ndarray) -> set:
    """One number for each graph (..., d, d)."""
    bits = A.reshape(-1, A.shape[-1] ** 2).astype(np.int64)
    return set((bits @ (1 << np.arange(bits.shape[1]))).tolist())


def slow_decode(z: np.ndarray, c: Constraints) -> np.ndarray:
    """The definition of the decoder, word for word."""
    d = len(c.names)
    p, e = z[:d], np.zeros((d, d))
    e[np.triu_indices(d, 1)] = z[d:]
    e = e + e.T
    order: list[int] = []
    while len(order) < d:
        ready = [j for j in range(d) if j not in order and set(np.flatnonzero(c.before[:, j])) <= set(order)]
        order.append(min(ready, key=lambda j: (p[j], j)))
    A = np.zeros((d, d), np.uint8)
    for j in range(d):
        chosen = [i for i in order[: order.index(j)] if c.allowed[i, j] and e[i, j] > 0 and not c.required[i, j]]
        chosen.sort(key=lambda i: (-e[i, j], i))
        needed = np.flatnonzero(c.required[:, j])
        A[needed, j] = 1
        A[chosen[: c.max_parents[j] - len(needed)], j] = 1
    return A


# --- what is permitted, reached, and refused ------------------------------------------------------------------


@pytest.mark.parametrize(("d", "statements"), [(1, 3), (2, 40), (3, 80), (4, 80)])
def test_the_decoder_reaches_exactly_what_is_allowed(d, statements):
    rng = np.random.default_rng(d)
    dags = all_dags(d)
    z = rng.standard_normal((20_000, vec_dim(d)))
    refused = 0
    for _ in range(statements):
        said = random_statement(d, rng)
        members = np.array([A for A in dags if agrees(A, said)]).reshape(-1, d, d)
        if not len(members):
            refused += 1
            with pytest.raises(ValueError, match=r"required|cycle"):
                Knowledge(**said).bind(NAMES[:d])
            continue
        bound = Knowledge(**said).bind(NAMES[:d])
        assert codes(members) == codes(np.array([A for A in dags if bound.permits(A)]))
        assert codes(vec2dag(z, constraints=bound)) == codes(members)
        for A in members:
            assert np.array_equal(vec2dag(dag2vec(A, 0.1, bound), constraints=bound), A)
            assert acyclic(A | bound.before)
        assert np.array_equal(bound.allowed, members.any(axis=0))
        assert np.array_equal(bound.required, members.all(axis=0))
        assert bound.trivial == (len(members) == len(dags))
    assert refused > 0 or d == 1


def test_the_decoder_is_its_definition(rng):
    """Ties and larger graphs, with precedence and limits that act."""
    names = [f"x{i}" for i in range(9)]
    bound = Knowledge(
        required=["x3 -> x1", "x1 -> x8", "x7 -> x8"],
        forbidden=["x5 -> x*"],
        tiers=[["x4", "x6"], ["x2", "x0"]],
        max_parents={"x8": 4, "x*": 2},
    ).bind(names)
    z = rng.choice([-1.0, 0.0, 1.0, 2.0, 3.0], (300, vec_dim(9)))
    decoded = vec2dag(z.reshape(3, 100, -1), constraints=bound).reshape(-1, 9, 9)
    assert np.array_equal(decoded, [slow_decode(row, bound) for row in z])
    assert (decoded.sum(axis=1) == bound.max_parents).any(axis=0)[[2, 8]].all()


def test_without_knowledge_nothing_changes(rng):
    z = rng.choice([-1.0, 0.0, 1.0], (50, vec_dim(6)))
    nothing = Knowledge().bind([f"x{i}" for i in range(6)])
    assert nothing.trivial
    assert np.array_equal(vec2dag(z, constraints=nothing), vec2dag(z))
    A = vec2dag(rng.standard_normal(vec_dim(6)))
    assert np.array_equal(dag2vec(A, constraints=nothing), dag2vec(A))


def test_not_a_number_still_decodes_to_something_permitted():
    bound = Knowledge(required=["a -> b"]).bind(NAMES)
    assert bound.permits(vec2dag(np.full(vec_dim(4), np.nan), constraints=bound))


def test_tiers_forbid_edges_and_not_paths_through_free_columns():
    tiers = Knowledge(tiers=[["a"], ["b"]])
    assert tiers.bind(["a", "b"]).before.tolist() == [[False, True], [False, False]]
    free = tiers.bind(["a", "b", "c"])
    assert not free.before.any()
    assert free.permits([[0, 0, 0], [0, 0, 1], [1, 0, 0]])  # b -> c -> a
    assert not free.permits([[0, 0, 0], [1, 0, 0], [0, 0, 0]])


def test_precedence_follows_where_it_costs_nothing():
    bound = Knowledge(tiers=[["a", "b"], ["c", "d"]]).bind(NAMES)
    assert bound.before.tolist() == [[False, False, True, True]] * 2 + [[False] * 4] * 2
    assert Knowledge(exogenous="a").bind(["a", "b"]).before[0, 1]
    assert Knowledge(max_parents={"a": 0}).bind(["a", "b"]).before[0, 1]


def opposed(one, two):
    """Whether one list of tiers has a name before another and the second list has it after."""
    orders = [
        {(a, b) for k, t in enumerate(tiers) for a in t for u in tiers[k + 1 :] for b in u} for tiers in (one, two)
    ]
    return any((b, a) in orders[1] for a, b in orders[0])


def test_combination_permits_what_both_permit():
    rng = np.random.default_rng(1)
    dags, combined = all_dags(3), 0
    for _ in range(500):
        one, two = (random_statement(3, rng) for _ in range(2))
        permitted = {A.tobytes() for A in dags if agrees(A, one) and agrees(A, two)}
        if not permitted:
            with pytest.raises(ValueError, match=r"required|cycle|contradict"):
                (Knowledge(**one) | Knowledge(**two)).bind(NAMES[:3])
            continue
        if opposed(one["tiers"], two["tiers"]):
            with pytest.raises(ValueError, match="tiers contradict each other"):
                Knowledge(**one) | Knowledge(**two)
            continue
        both = (Knowledge(**one) | Knowledge(**two)).bind(NAMES[:3])
        combined += 1
        assert {A.tobytes() for A in dags if both.permits(A)} == permitted
    assert combined > 50


def test_combination_of_tiers_and_limits():
    merged = Knowledge(tiers=[["a"], ["b"]]) | Knowledge(tiers=[["b"], ["c"]], within_tiers=False)
    assert merged == Knowledge(tiers=[["a"], ["b"]], forbidden=["c -> b"])
    same = Knowledge(tiers=[["age"], ["*"]], exogenous=["age"])
    assert same | Knowledge(tiers=[["age"], ["*"]]) == same
    swapped = Knowledge(tiers=[["a"], ["b"]]) | Knowledge(tiers=[["c"], ["*"]])
    assert swapped == Knowledge(tiers=[["c"], ["*"]], forbidden=["b -> a"])
    with pytest.raises(ValueError, match="'a' is before 'b' in one and after in the other"):
        Knowledge(tiers=[["a"], ["b"]]) | Knowledge(tiers=[["b"], ["a"]])
    with pytest.raises(ValueError, match="name all columns"):
        Knowledge(tiers=[["a"], ["*"]]) | Knowledge(tiers=[["b"], ["*"]])
    with pytest.raises(ValueError, match="a -> b is required, but it is forbidden"):
        Knowledge(required=["a -> b"]) | Knowledge(forbidden=["a -> b"])
    assert (Knowledge(max_parents=3) | Knowledge(max_parents={"a": 5, "b": 1})).bind(
        ["a", "b", "c", "d", "e"]
    ).max_parents.tolist() == [3, 1, 3, 3, 3]
    assert Knowledge(max_parents=3) | Knowledge() == Knowledge(max_parents=3)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"required": ["c -> a", "a -> b", "b -> c", "d -> a"]}, r"^required edges make a cycle: a -> b -> c -> a$"),
        ({"required": ["a -> b"], "forbidden": [("a", "b")]}, r"^the edge a -> b is required, but it is forbidden$"),
        ({"required": ["b -> a"], "tiers": [["a"], ["b"]]}, r"b -> a is required, but the tiers have 'a' before 'b'$"),
        (
            {"required": ["b -> a"], "tiers": [["a", "b"]], "within_tiers": False},
            r"b -> a is required, but edges within the tier of both are forbidden$",
        ),
        ({"required": ["b -> a"], "exogenous": ["a"]}, r"b -> a is required, but 'a' is exogenous$"),
        ({"required": ["b -> a"], "sinks": ["b"]}, r"b -> a is required, but 'b' is a sink$"),
        (
            {"required": ["b -> a", "c -> a"], "max_parents": 1},
            r"max_parents of 'a' is 1, but 2 are required: b -> a, c -> a$",
        ),
        ({"tiers": [["a", "b"], ["c", "a"]]}, r"tiers have 'a' twice, in tier 1 and tier 2"),
    ],
)
def test_contradictions_are_refused_with_a_sentence(said, sentence):
    with pytest.raises(ValueError, match=sentence):
        Knowledge(**said)
    # the same through patterns, which only meet at the columns
    hidden = {
        key: json.loads(json.dumps(value).replace('"a"', '"[a]"').replace("a ->", "[a] ->").replace("-> a", "-> [a]"))
        for key, value in said.items()
    }
    late = Knowledge(**hidden)
    with pytest.raises(ValueError, match=sentence):
        late.bind(NAMES)


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            {"forbidden": ["Smokes -> cancer"]},
            r"forbidden names the column 'Smokes', which is not there \(closest: 'smoker'",
        ),
        ({"exogenous": ["qqq"]}, r"exogenous names the column 'qqq', which is not there \(there are: 'smoker', "),
        ({"sinks": ["gene_*"]}, r"sinks has the pattern 'gene_\*', which matches no column"),
        ({"tiers": [["s*"], ["*r"]]}, r"tiers have 'smoker' twice"),
        ({"forbidden": ["age -> age"]}, r"forbidden has an edge from 'age' to itself"),
        ({"forbidden": ["canc* -> cancer"]}, r"edge from 'cancer' to itself"),
    ],
)
def test_names_that_do_not_fit_the_table(said, sentence):
    with pytest.raises(ValueError, match=sentence):
        Knowledge(**said).bind(["smoker", "age", "cancer"])


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ({"required": ("a", "b")}, r"required has 'a', which is not an edge"),
        ({"required": ["a -> b -> c"]}, r"a pair \('a', 'b'\) takes any names"),
        ({"forbidden": [("a", "b", "c")]}, r"an edge is a pair"),
        ({"forbidden": [(0, 1)]}, r"strings such as 'x0'; got 0"),
        ({"forbidden": 3}, r"forbidden must be a sequence of edges"),
        ({"exogenous": 3}, r"exogenous must hold names"),
        ({"exogenous": [" "]}, r"exogenous must hold names"),
        ({"tiers": "ab"}, r"tiers must be a sequence of sequences"),
        ({"max_parents": -1}, r"max_parents must be a whole number of at least 0, got -1"),
        ({"max_parents": {"a": 1.5}}, r"max_parents of 'a' must be a whole number"),
        ({"tiers": [["a"], ["b"]], "within_tiers": [True]}, r"for each of the 2 tiers"),
        ({"within_tiers": "no"}, r"within_tiers must be True, False"),
    ],
)
def test_what_is_no_knowledge(said, sentence):
    with pytest.raises(ValueError, match=sentence):
        Knowledge(**said)


def test_texts_of_edges():
    ways = (["a -> b"], ["a->b"], [" a --> b "], "a -> b", [("a", "b")], [["a", "b"]], {("a", "b")}, iter(["a -> b"]))
    assert {Knowledge(required=edges) for edges in ways} == {Knowledge(required=[("a", "b")])}
    arrow = Knowledge(forbidden=[("p->q", "r"), ("p -> q", "r")])
    assert Knowledge(forbidden=["p->q -> r"]).forbidden == (("p->q", "r"),)
    assert Knowledge.from_json(arrow.to_json()) == arrow
    assert arrow.bind(["p->q", "r", "p -> q"]).allowed[:, 1].tolist() == [False, False, False]


def test_patterns():
    names = ["gene_1", "gene_2", "age", "Gene_3"]
    bound = Knowledge(forbidden=["gene_* -> age", "gene_? -> gene_?"]).bind(names)
    forbidden = {(names[i], names[j]) for i, j in np.argwhere(~bound.allowed) if i != j}
    assert forbidden == {("gene_1", "age"), ("gene_2", "age"), ("gene_1", "gene_2"), ("gene_2", "gene_1")}
    rest = Knowledge(tiers=[["age"], ["*"]]).bind(names)
    assert not rest.allowed[:, 2].any()
    assert rest.allowed[0, 1]
    # brackets are a class of characters, unless a column is called so or no column matches
    assert not Knowledge(sinks=["x[12]"]).bind(["x1", "x3"]).allowed[0].any()
    assert Knowledge(sinks=["x[12]"]).bind(["x1", "x[12]"]).allowed[0].any()
    assert not Knowledge(sinks=["*[t-?]"]).bind(["x", "x[t-1]"]).allowed[1].any()
    limits = Knowledge(max_parents={"gene*": 1, "*": 2, "gene_2": 3}).bind(names).max_parents
    assert limits.tolist() == [1, 3, 2, 2]


def test_violations_name_the_edges():
    bound = Knowledge(required=["a -> b"], exogenous=["d"], max_parents=1).bind(NAMES)
    A = np.zeros((4, 4), int)
    A[0, 3] = A[1, 2] = A[3, 2] = A[1, 0] = 1
    assert bound.violations(A) == (
        "the required edge a -> b is missing, a -> d is not allowed ('d' is exogenous), b -> a is not allowed "
        "(required edges lead from 'a' to 'b'), 'c' has 2 parents and may have 1"
    )
    with pytest.raises(ValueError, match="no vector under these constraints: the required edge a -> b is missing"):
        dag2vec(np.zeros((4, 4)), constraints=bound)
    A[:] = 0
    A[0, 1] = 1
    assert bound.violations(A) is None
    with pytest.raises(ValueError, match=r"A must have shape \(4, 4\)"):
        bound.permits(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="z is of 3 nodes and the constraints of 4"):
        vec2dag(np.zeros(6), constraints=bound)


def test_columns_that_were_left_out():
    known = Knowledge(required=["a -> b", "b -> c"], sinks=["x*"])
    with pytest.warns(UserWarning, match="left out have no effect: a -> b"):
        bound = known.bind(["c", "b"], dropped=["a", "x1"])
    assert bound.required.tolist() == [[False, False], [True, False]]


def test_value_semantics():
    one = Knowledge(required=["a -> b", "c -> d"], tiers=[["a", "c"], [], ["b"]], within_tiers=[False, True, False])
    two = Knowledge(required=["c -> d", "a -> b"], tiers=[["c", "a"], ["b"]], within_tiers=False)
    assert one == two == deepcopy(one) == pickle.loads(pickle.dumps(two))
    assert hash(one) == hash(two)
    bound = Knowledge(required=["a -> b"], max_parents={"c": 1}).bind(NAMES)
    assert repr(bound) == "Constraints(4 columns, 1 edges required, 11 of 12 allowed, parents of 1 limited)"
    assert one != Knowledge(required=["a -> b"])
    assert one != "a -> b"
    assert eval(repr(one)) == one
    assert repr(Knowledge()) == "Knowledge()"
    assert "... 492 more]" in repr(Knowledge(exogenous=[f"x{i}" for i in range(500)]))
    with pytest.raises(AttributeError):
        one.required = ()


# --- files and other packages ---------------------------------------------------------------------------------


FULL = Knowledge(
    required=["a -> b"],
    forbidden=[("c", "é d"), "x* -> a"],
    tiers=[["a"], ["b", "c"]],
    exogenous=["a"],
    sinks=["z"],
    max_parents={"a": 0, "*": 3},
    within_tiers=[True, False],
)


@pytest.mark.parametrize("known", [Knowledge(), FULL, Knowledge(max_parents=2)])
def test_json_round_trip(known, tmp_path):
    assert Knowledge.from_json(known.to_json()) == known
    known.write(tmp_path / "known.json")
    assert Knowledge.read(tmp_path / "known.json") == known
    assert Knowledge.of(str(tmp_path / "known.json")) == known


def strict_tetrad(text: str) -> dict:
    """Tetrad's own reading: lines that are empty are skipped, and every other one must be exactly right."""
    lines = iter([line for line in text.split("\n") if line != ""])
    assert next(lines) == "/knowledge"
    found: dict = {"addtemporal": {}, "forbiddirect": [], "requiredirect": []}
    for line in lines:
        if line in found:
            section = line
        elif section == "addtemporal":
            number, *names = line.split(" ")
            assert int(number.removesuffix("*")) >= 1
            found[section][number] = names
        else:
            source, target = line.split(" ")
            found[section].append((source, target))
    return found


def test_tetrad_files(tmp_path):
    known = Knowledge(
        required=["a -> c"], forbidden=["b -> d"], tiers=[["a", "b"], ["c", "d"]], within_tiers=[False, True]
    )
    file = tmp_path / "known.txt"
    known.write(file)
    assert strict_tetrad(file.read_text()) == {
        "addtemporal": {"1*": ["a", "b"], "2": ["c", "d"]},
        "forbiddirect": [("b", "d")],
        "requiredirect": [("a", "c")],
    }
    assert Knowledge.read(file) == known
    rich = Knowledge(forbidden=["x* -> a"], exogenous=["x1"], sinks=["b"])
    names = ["a", "b", "x1", "x2"]
    rich.write(tmp_path / "rich.knowledge", names)
    again = Knowledge.read(tmp_path / "rich.knowledge")
    assert np.array_equal(again.bind(names).allowed, rich.bind(names).allowed)
    Knowledge().write(file)
    assert Knowledge.read(file) == Knowledge()


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (Knowledge(max_parents=2), "has no max_parents"),
        (Knowledge(exogenous=["a"]), "exogenous nodes and sinks can be written if names are given"),
        (Knowledge(forbidden=["x* -> a"]), r"the pattern 'x\*' can be written if names"),
        (Knowledge(forbidden=[("a b", "c")]), "cannot hold the name 'a b'; .json can"),
    ],
)
def test_what_tetrad_cannot_hold(known, sentence, tmp_path):
    with pytest.raises(InputError, match=sentence):
        known.write(tmp_path / "known.txt")
    assert not list(tmp_path.iterdir())


def test_tetrad_text_as_people_write_it():
    text = """// from the lab
/Knowledge
addtemporal
0*  "body mass"  age
1- x,
3\ty z
2

forbiddirect
"age" --> "body mass"
x,y
ForbiddenGroup
x y
x z
requiredirect
x -> y
"""
    assert parse_tetrad(text) == {
        "tiers": [["body mass", "age"], ["x"], ["y", "z"]],
        "within_tiers": [False, True, True],
        "forbidden": [("age", "body mass"), ("x", "y"), ("x", "z"), ("y", "x"), ("y", "z"), ("x", "y"), ("x", "z")],
        "required": [("x", "y")],
    }


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("/knowledge\n", "there is no knowledge"),
        ("a b\n", "line 1: 'a' stands before any of addtemporal"),
        ("addtemporal\nfirst a b\n", "line 2: .* begins with the number of its tier, not 'first'"),
        ("forbiddirect\na b c\n", "line 2: an edge is two names, cause and effect; got 3: a b c"),
        ("requiredgroup\na b\n", "last group has no second line"),
        ("requiredgroup\na b\nforbiddirect\n", "line 3: the group above has no second line"),
        ("requiredirect\na b\nb a\n", "required edges make a cycle: a -> b -> a"),
    ],
)
def test_bad_tetrad_files_are_named(content, sentence, tmp_path):
    file = tmp_path / "known.txt"
    file.write_text(content)
    with pytest.raises(InputError, match=f"known.txt: .*{sentence}"):
        Knowledge.read(file)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", b'{"required": ["a -> b"', "not JSON: .* in line 1, column"),
        ("a.json", b'["a -> b"]', "must be an object"),
        (
            "a.json",
            b'{"require": ["a -> b"]}',
            r"has no 'require' \(closest: 'required'\); allowed: required, forbidden",
        ),
        ("a.json", b'{"required": 5}', "required must be a sequence of edges"),
        ("a.json", b"\xff\xfe\x00", "is not text in UTF-8"),
        ("a.csv", b"", "unknown suffix '.csv'; allowed for knowledge are .json"),
        ("missing.json", None, "cannot be read: No such file"),
    ],
)
def test_bad_files_are_named(name, content, sentence, tmp_path):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError, match=f"{name}.*{sentence}"):
        Knowledge.read(file)


def test_of_what_is_knowledge_already():
    assert Knowledge.of(None) == Knowledge()
    assert Knowledge.of(FULL) is FULL
    assert Knowledge.of({"exogenous": ["a"]}) == Knowledge(exogenous=["a"])
    with pytest.raises(TypeError, match="got int"):
        Knowledge.of(3)
    with pytest.raises(ValueError, match="has no 'parents'"):
        Knowledge.of({"parents": 2})


def test_of_causal_learn():
    """Every pair is forbidden or required as the object itself says."""
    pytest.importorskip("causallearn")
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.utils.PCUtils.BackgroundKnowledge import BackgroundKnowledge

    names = ["X1", "X2", "Y1", "Y22", "Z"]
    node = {name: GraphNode(name) for name in names}
    theirs = BackgroundKnowledge()
    theirs.add_required_by_node(node["X1"], node["Z"]).add_forbidden_by_node(node["Z"], node["Y1"])
    theirs.add_forbidden_by_pattern("Y.", "X2$").add_required_by_pattern("X1", "Y\\d+")
    theirs.add_node_to_tier(node["X1"], 0).add_node_to_tier(node["X2"], 2).add_node_to_tier(node["Y1"], 2)
    theirs.forbid_within_tier(2)
    ours = Knowledge.of(theirs, names)._stated(Columns(tuple(names)))
    for (i, a), (j, b) in permutations(enumerate(names), 2):
        assert ours.required[i, j] == theirs.is_required(node[a], node[b])
        assert bool(ours.why[i, j]) == theirs.is_forbidden(node[a], node[b])
    with pytest.raises(ValueError, match="names of the columns are needed"):
        Knowledge.of(theirs)


class Expert:
    """The attributes of pgmpy's ExpertKnowledge."""

    def __init__(self, required=(), forbidden=(), space=(), order=((),)):
        self.required_edges, self.forbidden_edges = set(required), set(forbidden)
        self.search_space, self.temporal_order = set(space), [list(tier) for tier in order]


def test_of_pgmpy():
    expert = Expert(required=[("a", "b")], forbidden=[("c", "a")], order=[["a"], ["b", "c"]])
    assert Knowledge.of(expert) == Knowledge(required=["a -> b"], forbidden=["c -> a"], tiers=[["a"], ["b", "c"]])
    assert Knowledge.of(Expert()) == Knowledge()
    space = Knowledge.of(Expert(space=[("a", "b"), ("b", "c")]), ["a", "b", "c"]).bind(["a", "b", "c"])
    assert np.argwhere(space.allowed).tolist() == [[0, 1], [1, 2]]
    with pytest.raises(ValueError, match="names of the columns are needed to read the search space"):
        Knowledge.of(Expert(space=[("a", "b")]))


def lingam_prior(d, exogenous=(), sinks=(), paths=(), no_paths=()):
    """Entry [i, j] speaks of paths from j to i."""
    prior = np.full((d, d), -1)
    for i, j in no_paths:
        prior[j, i] = 0
    for i, j in paths:
        prior[j, i] = 1
    prior[:, list(sinks)] = 0
    prior[list(exogenous), :] = 0
    np.fill_diagonal(prior, -1)
    return prior


def has_path(A, i, j):
    return bool(np.linalg.matrix_power(np.eye(len(A)) + A, len(A))[i, j] > 0)


def test_exogenous_and_sinks_of_lingam_are_exact(recwarn):
    prior = lingam_prior(4, exogenous=[1], sinks=[2])
    bound = Knowledge.of(prior, NAMES).bind(NAMES)
    for A in all_dags(4):
        agrees_with_paths = all(not has_path(A, j, i) for i, j in np.argwhere(prior == 0))
        assert bound.permits(A) == agrees_with_paths
    assert not recwarn.list


def test_paths_of_lingam_are_taken_as_far_as_edges_go():
    with pytest.warns(
        UserWarning, match="Only edges are forbidden; paths through other columns stay possible: x0 ~> x1"
    ):
        one = Knowledge.of(lingam_prior(3, no_paths=[(0, 1)]))
    assert one == Knowledge(forbidden=["x0 -> x1"])
    with pytest.warns(UserWarning, match="Paths are not required, only edges back are forbidden: x0 ~> x1"):
        two = Knowledge.of(lingam_prior(3, paths=[(0, 1)]).tolist())
    assert two == Knowledge(forbidden=["x1 -> x0"])


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        (np.eye(3), "this matrix has none: give the edges of an adjacency matrix"),
        (np.full((2, 3), -1), r"must have shape \(d, d\)"),
        (np.array([[-1, 2], [0, -1]]), "must hold -1"),
        (["a -> b"], "must be a matrix of -1, 0 and 1"),
        (np.array([[-1, 1], [1, -1]]), "a path from 'x0' to 'x1' and one back"),
    ],
)
def test_what_is_no_prior_of_lingam(matrix, sentence):
    with pytest.raises(ValueError, match=sentence):
        Knowledge.of(matrix)


# --- time -----------------------------------------------------------------------------------------------------


def test_lagged_columns_hold_the_past(rng):
    X = rng.standard_normal((7, 2))
    series = lagged(X, lags=3)
    assert series.names == ("x0", "x1", "x0[t-1]", "x1[t-1]", "x0[t-2]", "x1[t-2]", "x0[t-3]", "x1[t-3]")
    assert series.X.shape == (4, 8)
    for row, t in enumerate(range(3, 7)):
        assert np.array_equal(series.X[row], np.concatenate([X[t], X[t - 1], X[t - 2], X[t - 3]]))


@pytest.mark.parametrize("contemporaneous", [True, False])
def test_no_edge_leads_into_the_past(contemporaneous, rng):
    series = lagged(rng.standard_normal((9, 3)), lags=2, contemporaneous=contemporaneous)
    allowed = series.knowledge.bind(series.names).allowed
    expected = np.zeros((9, 9), bool)
    expected[:, :3] = True
    expected[:3, :3] = contemporaneous & ~np.eye(3, dtype=bool)
    assert np.array_equal(allowed, expected)


def test_lagged_frames_are_sorted_by_time():
    pandas = pytest.importorskip("pandas")
    days = pandas.to_datetime(["2024-03-31", "2024-01-31", "2024-02-29", "2024-04-30"])
    frame = pandas.DataFrame({"y": [3, 1, 2, 4], "when": days, "z": [30.0, 10, 20, 40]})
    series = lagged(frame, lags=1, time="when")  # ends of months: equal steps of the calendar
    assert series.names == ("y", "z", "y[t-1]", "z[t-1]")
    assert series.X.tolist() == [[2, 20, 1, 10], [3, 30, 2, 20], [4, 40, 3, 30]]
    as_text = frame.assign(when=days.strftime("%Y-%m-%d"))
    assert np.array_equal(lagged(as_text, lags=1, time="when").X, series.X)
    polars = pytest.importorskip("polars")
    same = polars.DataFrame({"y": [3, 1, 2, 4], "when": days.to_numpy(), "z": [30.0, 10, 20, 40]})
    assert np.array_equal(lagged(same, lags=1, time="when").X, series.X)
    assert np.array_equal(lagged(frame[["y", "z"]], lags=1, time=days).X, series.X)
    assert np.array_equal(lagged(frame.assign(when=days.tz_localize("UTC")), lags=1, time="when").X, series.X)
    with pytest.warns(UserWarning, match=r"from 1 day, .* to 3 days, .* \(between 2024-01-02 and 2024-01-05\)"):
        lagged(np.eye(3), lags=1, time=["2024-01-01", "2024-01-02", "2024-01-05"])


def test_lagged_arrays_are_sorted_by_time(recwarn):
    X = np.array([[0.3, 3.0], [0.1, 1.0], [0.2, 2.0]])
    series = lagged(X, lags=1, names=["t", "x"], time="t")
    assert series.X.tolist() == [[2.0, 1.0], [3.0, 2.0]]
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"unequal, from 1.0 to 3.0 \(between 2.0 and 5.0\)"):
        lagged(X, lags=1, time=[1, 2, 5])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"lags": 0}, "lags must be a whole number of at least 1, got 0"),
        ({"lags": 5}, "lags=5 needs at least 6 rows, got 4"),
        ({"names": ["x", "x[t-1]"]}, r"the columns 'x\[t-1\]' have names that past columns would get"),
        ({"time": "when"}, "time='when' is not a column; the columns are 'x0', 'x1'"),
        ({"time": [1, 2, 2, 3]}, "time has the value 2.0 more than once"),
        ({"time": [1, 2, np.nan, 3]}, "missing or infinite"),
        ({"time": [1, 2]}, r"one value for each of the 4 rows, got shape \(2,\)"),
        ({"time": ["early", "late", "later", "last"]}, "numbers or dates such as 2024-01-31, got 'early'"),
    ],
)
def test_bad_series(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        lagged(np.arange(8.0).reshape(4, 2), **{"lags": 1} | arguments)


@pytest.mark.parametrize("table", [[1, 2, 3], [[1, 2], [3]]])
def test_what_is_no_series(table):
    with pytest.raises(ValueError, match=r"table must have shape \(n, d\)"):
        lagged(table)


def test_edges_by_variable_and_lag(rng):
    series = lagged(rng.standard_normal((9, 2)), lags=2, names=["x", "y"])
    A, W = np.zeros((6, 6)), np.arange(36.0).reshape(6, 6)
    A[4, 0] = A[3, 1] = A[0, 1] = 1
    assert series.edges(A, W) == [
        {"source": "x", "lag": 2, "target": "x", "weight": 24.0},
        {"source": "x", "lag": 0, "target": "y", "weight": 1.0},
        {"source": "y", "lag": 1, "target": "y", "weight": 19.0},
    ]
    assert "weight" not in series.edges(A)[0]
    with pytest.raises(ValueError, match=r"x -> y\[t-1\], which leads into the past"):
        series.edges(A + np.eye(6, k=3))
    with pytest.raises(ValueError, match=r"A must have shape \(6, 6\)"):
        series.edges(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"weights must have the shape of A"):
        series.edges(A, np.zeros((2, 2)))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_knowing_nothing_is_saying_nothing(d):
    names = tuple(f"x{i}" for i in range(d))
    nothing, silent = Constraints.none(names), Knowledge().bind(names)
    assert nothing.trivial
    assert silent.trivial
    for mine, theirs in zip(nothing.arrays, silent.arrays, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    order = np.random.default_rng(0).permutation(d)
    assert nothing.respects(order)
    np.testing.assert_array_equal(nothing.extend(order), order)


def test_orders_are_extended_where_they_must_be():
    known = Knowledge(required=["c -> a"], tiers=[["d"], ["b"]]).bind(("a", "b", "c", "d"))
    order = np.array([0, 1, 2, 3])
    assert not known.respects(order)
    extended = known.extend(order)
    assert known.respects(extended)
    place = np.argsort(extended)
    assert place[2] < place[0]
