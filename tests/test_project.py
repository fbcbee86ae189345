"""The project as a whole: import layers, documentation that runs, and what is shipped."""

import ast
import doctest
import importlib
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

import networkx as nx
import pytest

import vec2dag
from vec2dag import scores
from vec2dag.cli import parser

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "vec2dag"


def module_name(file):
    """Dotted name below the package; a package is called by its folder."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(file): file for file in sorted(PACKAGE.rglob("*.py")) if file != PACKAGE / "__init__.py"}
MODULES = list(FILES)
TREES = {name: ast.parse(file.read_text(encoding="utf-8")) for name, file in FILES.items()}
ENVIRONMENT = os.environ | {"PYTHONPATH": str(PACKAGE.parent), "MPLBACKEND": "Agg"}

COMPILED = ("_kernels", "_sampling", "_smoothing", "_conditioning", "_processes")
# Every room may import itself and those above it in this list, without cycles.
LAYERS = (
    {*COMPILED, "_compiled", "_checks", "_parallel", "_settings"},
    {"graph", "knowledge", "columns", "moments", "missing", "files", "interventions"},
    {"scores", "jacobian", "metrics", "simulate", "datasets", "layout", "interop"},
    {"search"},
    {"prune", "sb3"},
    {"edges", "progress"},
    {"confidence"},
    {"estimator"},
    {"plot", "report"},
    {"cli"},
)
LAYER = {room: depth for depth, rooms in enumerate(LAYERS) for room in rooms}
# The search sees scores and graphs, never data.
UNSEEN_BY_SEARCH = {"moments", "files", "datasets", "simulate"}

CORE = {"numpy", "scipy", "scikit-learn", "numba", "networkx", "joblib", "tqdm"}
# threadpoolctl is a dependency of scikit-learn.
IMPORTABLE = CORE - {"scikit-learn"} | {"sklearn", "threadpoolctl"} | sys.stdlib_module_names
# Its classes derive from theirs, so it imports them at once; nothing else may import it at import.
WITH_EXTRA = {"sb3": {"torch", "stable_baselines3", "gymnasium"}}


def internal_imports(name):
    """Modules of the package that a module imports, anywhere in its code but where only types are checked."""
    found = set()
    package = name if FILES[name].stem == "__init__" else name.rpartition(".")[0]
    only_types = {
        id(inner)
        for node in ast.walk(TREES[name])
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(TREES[name]):
        if id(node) in only_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = package.split(".") if package else []
            base = parts[: len(parts) - node.level + 1]
            home = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{home}.{alias.name}" if home else alias.name
                found.add(inner if inner in FILES else home)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            assert not any(n.split(".")[0] == "vec2dag" for n in names), "imports inside are relative"
    return found & set(FILES)


def executed_at_import(body):
    """Statements that run when the module is imported."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "finalbody"):
                yield from executed_at_import(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                yield from executed_at_import(handler.body)


def room(name):
    return name.partition(".")[0]


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_one_way(name):
    assert room(name) in LAYER, "every module has a place"
    imports = internal_imports(name)
    assert all(LAYER[room(other)] <= LAYER[room(name)] for other in imports)
    if room(name) == "search":
        assert not {room(other) for other in imports} & UNSEEN_BY_SEARCH


def test_the_check_of_imports_sees_them():
    assert "_kernels" in internal_imports("search.descent")
    assert {"scores", "search.budget"} <= internal_imports("search.descent")
    assert "moments" in internal_imports("scores.linear")
    assert "files.atomic" in internal_imports("estimator")


def test_no_import_cycles():
    graph = nx.DiGraph((name, other) for name in MODULES for other in internal_imports(name))
    assert list(nx.simple_cycles(graph)) == []


# What a regression or a criterion is, is asked of it; only its own room may look at its type.
KINDS = {
    kind.__name__
    for name in MODULES
    if room(name) == "scores"
    for _, kind in inspect.getmembers(importlib.import_module(f"vec2dag.{name}"), inspect.isclass)
    if kind.__module__ == f"vec2dag.{name}"
    and (issubclass(kind, scores.Criterion | scores.Regression) or hasattr(kind, "bind"))
}


def test_nobody_outside_asks_for_the_type_of_a_regression_or_criterion():
    assert {"BIC", "BDeu", "Criterion", "Costed", "CountsOnTable", "Linear", "OnRows", "SklearnRegression"} <= KINDS
    seen = 0
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                seen += 1
                asked = {inner.id for inner in ast.walk(node.args[1]) if isinstance(inner, ast.Name)}
                assert room(name) == "scores" or not asked & KINDS, f"{name} line {node.lineno}"
    assert seen > 20


@pytest.mark.parametrize("name", MODULES)
def test_import_needs_only_the_core_dependencies(name):
    for node in executed_at_import(TREES[name].body):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        elif isinstance(node, ast.ImportFrom):
            assert not {node.module, *(alias.name for alias in node.names)} & set(WITH_EXTRA), "an extra"
            continue
        else:
            continue
        assert {n.split(".")[0] for n in names} <= IMPORTABLE | WITH_EXTRA.get(name, set())


def test_import_loads_nothing_heavy():
    # scikit-learn itself imports pandas where it is installed
    heavy = {
        "torch",
        "matplotlib",
        "polars",
        "dask",
        "gymnasium",
        "stable_baselines3",
        "causallearn",
        "gadjid",
    }
    code = "import sys, vec2dag; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert "vec2dag" in loaded
    assert not heavy & set(loaded)


def test_public_names():
    assert len(vec2dag.__all__) == len(set(vec2dag.__all__))
    for name in vec2dag.__all__:
        assert inspect.getdoc(getattr(vec2dag, name)), f"{name} has no docstring"


def public_definitions(body):
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


@pytest.mark.parametrize("name", [name for name in MODULES if name not in COMPILED])
def test_public_functions_are_documented_and_annotated(name):
    assert ast.get_docstring(TREES[name])
    functions = []
    for node in public_definitions(TREES[name].body):
        assert ast.get_docstring(node), f"{node.name} has no docstring"
        functions += public_definitions(node.body) if isinstance(node, ast.ClassDef) else [node]
    for function in functions:
        if isinstance(function, ast.ClassDef):
            continue
        arguments = function.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        parameters += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
        bare = [p.arg for p in parameters if p.annotation is None and p.arg not in ("self", "cls")]
        assert not bare, f"{function.name}: {bare} have no annotation"
        assert function.returns is not None, f"{function.name} has no return annotation"


@pytest.mark.parametrize("name", ["__init__", *(name for name in MODULES if not name.endswith("__main__"))])
def test_examples_in_docstrings_run(name):
    for package in WITH_EXTRA.get(name, ()):
        pytest.importorskip(package, reason=f"vec2dag.{name} needs its extra")
    module = vec2dag if name == "__init__" else importlib.import_module(f"vec2dag.{name}")
    assert doctest.testmod(module).failed == 0


def code_blocks(language, file="README.md"):
    text = (ROOT / file).read_text(encoding="utf-8")
    return re.findall(rf"^```(?:{language})[^\n]*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def run_script(code, folder):
    (folder / "script.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def parses(command):
    try:
        parser().parse_args(command)
    except SystemExit as end:
        return end.code == 0
    return True


def test_the_commands_of_the_readme_exist():
    lines = [line.removeprefix("$ ") for block in code_blocks("bash|sh|console") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("vec2dag ")]
    for command in commands:
        assert parses(command), command
    targets = {word for line in lines if line.startswith("make ") for word in line.split("#")[0].split()[1:]}
    rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert targets <= set(rules)
    assert {"demo", "test"} <= targets


# Gaussian processes and networks take their time.
LONG_EXAMPLES = ("nonlinear.py", "other_rl.py")


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.name, marks=pytest.mark.slow if file.name in LONG_EXAMPLES else ())
        for file in sorted((ROOT / "examples").glob("*.py"))
    ],
)
def test_examples_run(file, tmp_path):
    run_script(file.read_text(encoding="utf-8"), tmp_path)


def test_the_changelog_has_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## .*\b{re.escape(vec2dag.__version__)}\b", text, flags=re.MULTILINE)


def project_files(*options):
    """Files under version control, and what options of git add; in a source distribution, all files."""
    if shutil.which("git"):
        command = ["git", "ls-files", "-z", "--cached", *options]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        files = [ROOT / name for name in listed.stdout.split("\0") if name]
        if PACKAGE / "__init__.py" in files:
            return [file for file in files if file.is_file()]
    folders = ("src", "tests", "docs", "examples", "benchmarks", "experiments")
    files = [*ROOT.iterdir(), *(file for folder in folders for file in (ROOT / folder).rglob("*"))]
    return [file for file in files if file.is_file() and "__pycache__" not in file.parts]


def test_no_file_knows_the_machine_it_was_written_on():
    machine = re.compile(r"(?<![\w.:/])/(?:root|home|work|tmp|Users|opt)/\w|[A-Z]:\\\\?Users")
    index = re.compile(r"(?:extra[-_])?index[-_]url|trusted[-_]host", re.IGNORECASE)
    # an address with a port, of a bare machine or of a private network
    private = re.compile(r"https?://(?:[^\s/]+:\d|[\w-]+(?=[/\s\"')>]|$)|[\d.]+/|[\w.-]+\.(?:local|internal|lan)\b)")
    for pattern, example in (
        (machine, "see /home" + "/me/x"),
        (index, "--index" + "-url"),
        (private, "http:" + "//10.0.0.1/simple"),
        (private, "https:" + "//pypi.corp.internal/simple"),
        (private, "http:" + "//mirror:8080/"),
        (private, "http:" + "//mirror/simple"),
    ):
        assert pattern.search(example)
        assert not pattern.search("https://github.com/a/home/b and https://doi.org/10.1126/science.1105809")
    files = project_files()
    assert PACKAGE / "estimator.py" in files
    for file in files:
        if file.suffix in (".png", ".npz", ".npy"):
            continue
        text = file.read_text(encoding="utf-8")
        for pattern in (machine, index, private):
            found = pattern.search(text)
            assert found is None, f"{file.relative_to(ROOT)}: {found[0] if found else ''}"


def test_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]]
    assert sorted(names) == sorted(CORE)
    assert project["requires-python"] == ">=3.11"
    assert project["scripts"] == {"vec2dag": "vec2dag.cli:main"}
    assert callable(importlib.import_module("vec2dag.cli").main)


def test_errors_name_extras_that_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {
        extra
        for name in MODULES
        for extra in re.findall(r"vec2dag\[([\w-]+)\]", FILES[name].read_text(encoding="utf-8"))
    }
    assert "data" in named
    assert named <= set(project["optional-dependencies"])


def test_what_is_shipped():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["src/vec2dag"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/vec2dag/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+(?:\w+)?", vec2dag.__version__)
    shipped = resources.files("vec2dag")
    assert (shipped / "py.typed").is_file()
    assert (shipped / "data" / "sachs.csv").read_text(encoding="utf-8").count("\n") == 854
    # the builder leaves out what version control ignores
    known = project_files("--others", "--exclude-standard")
    for file in (PACKAGE / "py.typed", PACKAGE / "data/sachs.csv", PACKAGE / "data/README.md", *FILES.values()):
        assert file in known, f"version control ignores {file}"
