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
from vec2dag.cli import _parser

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "vec2dag"
MODULES = sorted(file.stem for file in PACKAGE.glob("*.py") if file.stem != "__init__")
TREES = {name: ast.parse((PACKAGE / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES}
ENVIRONMENT = os.environ | {"PYTHONPATH": str(PACKAGE.parent), "MPLBACKEND": "Agg"}

# Every layer may import itself and those above it in this list, without cycles.
LAYERS = (
    {"_kernels"},
    {"graph", "workers"},
    {"scores", "nonlinear", "metrics", "prune", "cam", "independence", "simulate", "datasets", "knowledge"},
    {"policy", "engines", "search", "orders", "refine", "discover"},
    {"sb3", "estimator", "bootstrap", "progress"},
    {"plot", "report", "cli"},
)
# Tables and files: these import only each other.
HELPERS = {"table", "moments", "io", "dot", "graphio", "cache", "lapack"}
# The search sees scores and graphs, never data.
BLIND = {"_kernels", "graph", "policy", "engines", "search", "orders", "refine", "discover"}

CORE = {"numpy", "scipy", "scikit-learn", "numba", "networkx", "joblib", "tqdm"}
# threadpoolctl is a dependency of scikit-learn.
IMPORTABLE = CORE - {"scikit-learn"} | {"sklearn", "threadpoolctl"} | sys.stdlib_module_names
# Its classes derive from theirs, so it imports them at once; nothing else may import it at import.
WITH_EXTRA = {"sb3": {"torch", "stable_baselines3", "gymnasium"}}


def internal_imports(name):
    """Modules of the package that a module imports, anywhere in its code."""
    found = set()
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1
            targets = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {target.split(".")[0] for target in targets} & set(MODULES)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            assert not any(n.split(".")[0] == "vec2dag" for n in names), "imports inside are relative"
    return found


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


@pytest.mark.parametrize("name", MODULES)
def test_import_layers(name):
    layer = {module: depth for depth, modules in enumerate(LAYERS) for module in modules}
    assert (name in layer) != (name in HELPERS), "every module has one place"
    imports = internal_imports(name)
    if name in HELPERS:
        assert imports <= HELPERS
    else:
        assert all(layer[other] <= layer[name] for other in imports - HELPERS)
    if name in BLIND:
        assert not imports & HELPERS


def test_no_import_cycles():
    graph = nx.DiGraph((name, other) for name in MODULES for other in internal_imports(name))
    assert list(nx.simple_cycles(graph)) == []


@pytest.mark.parametrize("name", MODULES)
def test_import_needs_only_the_core_dependencies(name):
    for node in executed_at_import(TREES[name].body):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        elif isinstance(node, ast.ImportFrom):
            assert not {node.module, *(alias.name for alias in node.names)} & set(WITH_EXTRA)
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
    assert vec2dag.__all__ == sorted(vec2dag.__all__)
    for name in vec2dag.__all__:
        assert inspect.getdoc(getattr(vec2dag, name)), f"{name} has no docstring"


def public_definitions(body):
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


@pytest.mark.parametrize("name", [name for name in MODULES if name != "_kernels"])
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


@pytest.mark.parametrize("name", ["__init__", *MODULES])
def test_examples_in_docstrings_run(name):
    for package in WITH_EXTRA.get(name, ()):
        pytest.importorskip(package, reason=f"vec2dag.{name} needs its extra")
    module = vec2dag if name == "__init__" else importlib.import_module(f"vec2dag.{name}")
    assert doctest.testmod(module).failed == 0


def code_blocks(language):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
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


def test_the_code_of_the_readme_runs(tmp_path):
    blocks = code_blocks("python")
    assert blocks, "README.md has no Python code"
    run_script("\n".join(blocks), tmp_path)


def parses(command):
    try:
        _parser().parse_args(command)
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


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.py")), ids=lambda file: file.name)
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
    assert PACKAGE / "cli.py" in files
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
        for extra in re.findall(r"vec2dag\[([\w-]+)\]", (PACKAGE / f"{name}.py").read_text(encoding="utf-8"))
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
    for name in ("py.typed", "data/sachs.csv", "data/README.md", *(f"{module}.py" for module in MODULES)):
        assert PACKAGE / name in known, f"version control ignores {name}"
