"""Files of bytes given to the readers and to the command line."""

import gzip
import io
import json
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from vec2dag.cli import main
from vec2dag.files.graph_writers import as_bytes
from vec2dag.files.graphs import read_graph, write_graph
from vec2dag.files.stated import FREE, Edge
from vec2dag.files.tables import read_table

from .known import check_options, known_options
from .properties import Broken, Hang, check_message, check_printable, quietly, refused
from .tables import FAIR, random_names, random_values

__all__ = ["command", "graph", "table"]

TOKENS = (
    b"nan", b"NA", b"", b"inf", b"-1e999", b"1e-320", b"0x1p3", b"1_000", b"9" * 400, b"9" * 5000, b"1,5", b'"', b"'",
    b'""', b"\x00", b"\r", b"\n", b"\r\n", b"\t", b";", b",", b" ", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"a:b",
    b"\xed\xa0\x80", b"\x1b[2J", "\u202e".encode(), "\u2028".encode(), "\u0660".encode(), b"true", b"source", b"=",
    b"target", b"{", b"}", b"[", b"]", b":", b"null", b"->", b"--", b"//", b"/*", b"#", b"\\", b"<", b">", b"&amp;",
    b"&x;", b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"subgraph", b"strict", b"1" * 30, b"NaN", b"Infinity", b"-0.0",
    b"\x93NUMPY", b"PK\x03\x04", b"PAR1",
)  # fmt: skip
NASTY_FILES = ("data", "a b", "name\x1b[31m", "line\nend", "Größe", "‮", "x" * 150)


def table(rng: Generator, folder: Path) -> tuple[str, str]:
    """Bytes into ``read_table``: a table of numbers with names, or one sentence."""
    file, described = written(rng, folder, TABLES)
    outcome, found = refused(lambda: read_table(file), (file.name[:20], file.suffix))
    if outcome == "result":
        X, names = found
        if X.ndim != 2 or X.dtype != np.float64 or X.size == 0 or X.shape[1] != len(names):
            raise Broken(f"read as {X.shape} {X.dtype} with {len(names)} names")
        if len(set(names)) < len(names) or not all(isinstance(name, str) and name.strip() for name in names):
            raise Broken(f"names are {names}")
    return outcome, described


def graph(rng: Generator, folder: Path) -> tuple[str, str]:
    """Bytes into ``read_graph``: a graph, or one sentence."""
    file, described = written(rng, folder, GRAPHS)
    outcome, found = refused(lambda: read_graph(file), (file.name[:20], file.suffix))
    if outcome == "result":
        A, names = found
        if A.ndim != 2 or A.shape[0] != A.shape[1] or A.dtype != np.uint8 or A.max(initial=0) > 1 or A.trace():
            raise Broken(f"read as {A.tolist()}")
        if names is not None and len(set(names)) != len(A):
            raise Broken(f"names are {names}")
    return outcome, described


def command(rng: Generator, folder: Path) -> tuple[str, str]:
    """Files and options into the command line: an exit code, and what was said on stderr."""
    kind = int(rng.integers(4))
    known: list[Any] = []
    if kind == 0:
        true, first = written(rng, folder, GRAPHS, whole=0.7)
        estimate, described = written(rng, folder, GRAPHS) if rng.random() < 0.5 else (true, first)
        arguments = ["evaluate", str(true), str(estimate), *some(rng, "--json", "--adjustment", "--jsn")]
        if rng.random() < 0.5:
            target = folder / f"converted.{rng.choice(['json', 'gml', 'dot', 'csv', 'txt', 'npz', 'graphml', 'x'])}"
            arguments = ["convert", str(true), str(target), *some(rng, "--dag", "--cpdag", "--json", "--too")]
    else:
        file, described = written(rng, folder, TABLES, whole=0.7)
        arguments = ["discover", str(file), "-o", str(folder / "out"), *options(rng)]
        if rng.random() < 0.3:
            more, *known = known_options(names_in(file), rng)
            arguments += more
    code, said = run(arguments)
    if code not in (0, 2, 130):
        raise Broken(f"exit code {code}: {said[-300:]!r}")
    if "Traceback" in said:
        raise Broken(f"a traceback: {said[-300:]!r}")
    lines = [line for line in said.split("\n") if line]
    for line in lines:
        check_printable(line, "stderr")
    spoken = [line for line in lines if not re.match("vec2dag: (warning|compiling)", line)]
    if code == 2:
        if not lines or not re.match("vec2dag( discover| evaluate| convert)?: ", lines[-1]):
            raise Broken(f"exit code 2 without a sentence: {said!r}")
        usage = lines[0].startswith("usage:")
        if not usage and len(spoken) != 1:
            raise Broken(f"{len(spoken)} lines on stderr: {said[:300]!r}")
        check_message(lines[-1], ("",))
    elif code == 0 and spoken:
        raise Broken(f"success, and on stderr: {said[:300]!r}")
    if known and (folder / "out" / "graph.json").exists():
        check_options(*known, *read_graph(folder / "out" / "graph.json"))
    return "result" if code == 0 else "refused", f"{arguments} with {described}"


def names_in(file: Path) -> Sequence[str]:
    """Names of the columns of a file, or what they would be if it were one."""
    outcome, found = refused(lambda: read_table(file), ("",))
    return found[1] if outcome == "result" else ("x0", "x1", "x2")


def run(arguments: list[str]) -> tuple[int, str]:
    """Exit code and stderr of the command line, in this process."""
    out, err = io.StringIO(), io.StringIO()
    try:
        with quietly(), redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(arguments)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
    except (Broken, Hang, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise Broken(f"{type(error).__name__} left the command line: {error}") from error
    return code, err.getvalue()


BUNDLES = (
    "", "", "--criterion=bic-ev", "--criterion=ls --prune=linear --prune-threshold=0.2", "--prune=ci", "--prune=bic",
    "--prune=cam --prune-alpha=0.1", "--criterion=bic-nv --gamma=0.5 --discount=2", "--standardize",
    "--drop-constant -q", "--algorithm=conditional --n-steps=3 --batch-size=4 --learning-rate=0.1",
    "--algorithm=ppo --n-steps=2 --no-refine", "--algorithm=local --n-steps=3", "--init=random --seed=3 --jobs=1",
    "--regression=gp --gp-alpha=1 --time-budget=0.2",
)  # fmt: skip
OPTIONS = (
    "--criterion", "--gamma", "--discount", "--prune", "--prune-alpha", "--prune-threshold", "--algorithm", "--n-steps",
    "--batch-size", "--learning-rate", "--init", "--time-budget", "--seed", "--jobs", "--gp-alpha", "--columns",
    "--unknown",
)  # fmt: skip
VALUES = (
    "-1", "0", "1e999", "nan", "x", "", "1e-320", "3", "0.5", "auto", "linear", "cam", "ppo", "é", "\x1b[2J", "9" * 5000
)  # fmt: skip


def options(rng: Generator) -> list[str]:
    """Options of ``discover`` that fit together, and sometimes one that does not."""
    chosen = str(rng.choice(BUNDLES)).split()
    if rng.random() < 0.3:
        chosen.append(f"{rng.choice(OPTIONS)}={rng.choice(VALUES)}")
    return chosen


def some(rng: Generator, *flags: str) -> list[str]:
    """Each with a probability of 0.07."""
    return [flag for flag in flags if rng.random() < 0.07]


# --- bytes --------------------------------------------------------------------------------------------------------


def written(
    rng: Generator, folder: Path, makers: dict[str, Callable[[Generator], bytes]], whole: float = 0.3
) -> tuple[Path, str]:
    """A file: valid, damaged, or of random bytes; and what it is."""
    suffix = str(rng.choice(list(makers)))
    if rng.random() < whole:
        file, content = folder / f"whole{suffix}", makers[suffix](rng)
        file.write_bytes(content)
        return file, f"{file.name!r}, {len(content)} bytes: {content[:300]!r}"
    content = makers[suffix](rng) if rng.random() < 0.93 else rng.bytes(int(rng.integers(200)))
    damages = int(rng.choice([0, 1, 2, 5], p=[0.1, 0.5, 0.25, 0.15]))
    for _ in range(damages):
        content = damaged(content, rng)
    if rng.random() < 0.05:
        suffix, content = suffix + ".gz", gzip.compress(content, mtime=0)
    elif rng.random() < 0.05:
        suffix = str(rng.choice([".csv", ".npz", ".json", ".CSV", ".xlsx", "", ".parquet", ".dot", ".csv.gz"]))
    stem = str(rng.choice(NASTY_FILES)) if rng.random() < 0.05 else "data"
    file = folder / f"{stem}{suffix}"
    file.write_bytes(content)
    return file, f"{file.name!r}, {damages} damages, {len(content)} bytes: {content[:300]!r}"


def damaged(content: bytes, rng: Generator) -> bytes:
    """One change of some bytes."""
    a, b = sorted(int(k) for k in rng.integers(len(content) + 1, size=2))
    b = min(b, a + int(rng.integers(1, 40)))
    token = TOKENS[int(rng.integers(len(TOKENS)))]
    match int(rng.integers(8)):
        case 0:
            return content[:a]
        case 1:
            return content[:a] + content[b:]
        case 2:
            return content[:b] + content[a:b] * int(rng.integers(1, 4)) + content[b:]
        case 3:
            return content[:a] + rng.bytes(int(rng.integers(1, 9))) + content[a:]
        case 4:
            flipped = bytearray(content)
            for k in rng.integers(max(len(content), 1), size=3) if content else ():
                flipped[k] ^= 1 << int(rng.integers(8))
            return bytes(flipped)
        case 5:
            cells = re.split(rb"([,;\t\n])", content)
            cells[int(rng.integers(len(cells)))] = token
            return b"".join(cells)
        case _:
            return content[:a] + token + content[b if rng.random() < 0.5 else a :]


def text_table(rng: Generator, delimiter: str = ",") -> bytes:
    """A table as text, in the dialect of some program."""
    X, names = plain_table(rng)
    lines = [delimiter.join(map(repr, row)) for row in X.tolist()]
    if rng.random() < 0.8:
        quote = '"' if rng.random() < 0.5 else ""
        lines.insert(0, delimiter.join(quote + name.replace('"', '""') + quote for name in names))
    if rng.random() < 0.1:
        lines = [f"{delimiter if i == 0 else f'{i - 1}{delimiter}'}{line}" for i, line in enumerate(lines)]
    if rng.random() < 0.1:
        lines = [line.replace(".", ",") for line in lines]
    text = str(rng.choice(["\n", "\r\n", "\r"], p=[0.7, 0.2, 0.1])).join(lines) + "\n" * int(rng.integers(3))
    encoding = str(rng.choice(["utf-8", "utf-8-sig", "utf-16", "latin-1"], p=[0.8, 0.1, 0.05, 0.05]))
    return text.encode(encoding, errors="replace")


def tabbed_table(rng: Generator) -> bytes:
    return text_table(rng, "\t")


def loose_table(rng: Generator) -> bytes:
    return text_table(rng, str(rng.choice([" ", ";", "  ", "|"])))


def plain_table(rng: Generator) -> tuple[np.ndarray, list[str]]:
    X, _ = random_values(rng) if rng.random() < 0.4 else (rng.normal(size=(12, 3)), "plain")
    return X, random_names(X.shape[1], rng)


def npy_table(rng: Generator) -> bytes:
    X, _ = plain_table(rng)
    kind = str(rng.choice(["f8", "f4", "f2", "i8", "u1", "?", ">f8", "c16", "U3", "longdouble", "M8[s]"]))
    file = io.BytesIO()
    with np.errstate(all="ignore"):
        whole = np.clip(np.nan_to_num(X), -99, 99).astype("i8")
        np.save(file, whole.astype(kind) if kind in ("i8", "u1", "?", "M8[s]") else X.astype(kind))
    return file.getvalue()


def npz_table(rng: Generator) -> bytes:
    X, names = plain_table(rng)
    file = io.BytesIO()
    arrays = {str(rng.choice(["X", "data"])): X}
    if rng.random() < 0.5:
        arrays["names"] = np.array(names[: int(rng.integers(1, 9))], dtype=str)
    if rng.random() < 0.2:
        arrays["more"] = X.T
    (np.savez if rng.random() < 0.5 else np.savez_compressed)(file, **arrays)
    return file.getvalue()


def parquet_table(rng: Generator) -> bytes:
    X, names = plain_table(rng)
    frame = pd.DataFrame({name: X[:, i] for i, name in enumerate(names)})
    if frame.size and rng.random() < 0.3:
        frame[frame.columns[0]] = rng.choice(np.array(["a", "b"], dtype=object), size=len(frame))
    file = io.BytesIO()
    frame.to_parquet(file)
    return file.getvalue()


def random_graph(rng: Generator) -> tuple[np.ndarray, list[str]]:
    d = int(rng.integers(1, 6))
    A = np.triu(rng.random((d, d)) < 0.5, 1).astype(np.uint8)
    return A, [str(rng.choice(FAIR)) + str(i) for i in range(d)]


def written_graph(name: str) -> Callable[[Generator], bytes]:
    """A graph as the library writes it."""

    def make(rng: Generator) -> bytes:
        A, names = random_graph(rng)
        with tempfile.TemporaryDirectory() as folder:
            write_graph(folder, A, names, weights=A * rng.normal(), free=None)
            return (Path(folder) / name).read_bytes()

    return make


def converted(form: str) -> Callable[[Generator], bytes]:
    """A graph in a format of other programs; Tetrad takes only plain names."""

    def make(rng: Generator) -> bytes:
        A, names = random_graph(rng)
        nodes = [f"n{i}" for i in range(len(names))] if form == "tetrad" else list(names)
        edges = [Edge(nodes[i], nodes[j], float(rng.normal()), FREE) for i, j in np.argwhere(A).tolist()]
        return as_bytes(edges, nodes, form)

    return make


def csv_graph(rng: Generator) -> bytes:
    A, _ = random_graph(rng)
    if rng.random() < 0.3:
        edges = "".join(f'"{i}","{j}"\n' for i, j in np.argwhere(A))
        return f"source,target\n{edges}".encode()
    if rng.random() < 0.4:
        return "\n".join(",".join(map(str, row)) for row in A.tolist()).encode()
    return written_graph("adjacency.csv")(rng)


LOOP, NOWHERE = {"source": "a", "target": "a"}, {"source": "a", "target": "z\n"}
STRANGE = (
    [], {}, None, 3, "text", {"nodes": 3, "edges": []}, {"nodes": ["a"], "edges": [3]}, {"nodes": "ab", "edges": []},
    {"nodes": [[1]], "edges": []}, {"nodes": ["a", "b"], "edges": [LOOP]}, {"version": [2], "nodes": [], "edges": []},
    {"nodes": ["a", "\x1b[2J"], "edges": [NOWHERE]}, {"nodes": ["a"], "edges": [NOWHERE]}, [[[]] * 3],
)  # fmt: skip


def json_graph(rng: Generator) -> bytes:
    if rng.random() < 0.3:
        return json.dumps(STRANGE[int(rng.integers(len(STRANGE)))]).encode()
    return b"[" * 100_000 if rng.random() < 0.03 else written_graph("graph.json")(rng)


def npy_graph(rng: Generator) -> bytes:
    file = io.BytesIO()
    np.save(file, random_graph(rng)[0].astype(str(rng.choice(["u1", "f8", "?", "U1", "c16"]))))
    return file.getvalue()


def npz_graph(rng: Generator) -> bytes:
    A, names = random_graph(rng)
    file = io.BytesIO()
    np.savez(file, **{str(rng.choice(["A", "W", "other"])): A, "names": np.array(names)})
    return file.getvalue()


def graphml(rng: Generator) -> bytes:
    if rng.random() < 0.05:
        # each entity is ten of the one before
        entities = "".join(f"<!ENTITY e{k} '{f'&e{k - 1};' * 10}'>" for k in range(1, 12))
        return f"<?xml version='1.0'?><!DOCTYPE g [<!ENTITY e0 'ha'>{entities}]><graphml>&e11;</graphml>".encode()
    return written_graph("graph.graphml")(rng)


TABLES: dict[str, Callable[[Generator], bytes]] = {
    ".csv": text_table, ".tsv": tabbed_table, ".txt": loose_table, ".npy": npy_table, ".npz": npz_table,
    ".parquet": parquet_table,
}  # fmt: skip
GRAPHS: dict[str, Callable[[Generator], bytes]] = {
    ".json": json_graph, ".csv": csv_graph, ".npy": npy_graph, ".npz": npz_graph, ".dot": written_graph("graph.dot"),
    ".graphml": graphml, ".gml": converted("gml"), ".txt": converted("tetrad"),
}  # fmt: skip
