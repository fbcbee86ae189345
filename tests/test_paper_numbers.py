"""The paper's published numbers: all of them are there, once, and a sample typed by hand from the paper agrees."""

import csv
import sys
from collections import Counter
from pathlib import Path

import pytest

from vec2dag import simulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
experiments = pytest.importorskip(
    "experiments", reason="the experiments are beside the package in a checkout, not in a source archive"
)

FIELDS = ["table", "cell", "method", "pruning", "metric", "mean", "se"]
# Numbers in every table, counted from its layout: methods x columns, less the dashes.
COUNTS = {
    "dense": 8 * 6 - 2 * 3,  # RL-BIC and CORL did not run on 200 nodes
    "noise": 8 * 4,
    "gp": 8 * 6,
    "sachs": 8 * 6 - 3,  # RL-BIC is quoted, without CI pruning
    "sampling": 3 * 4,
    "role": (12 + 1) * 3,
    "samples-er8": 3 * 5 * 2 * 3,  # sizes, sample sizes, methods, metrics
    "samples-sf8": 3 * 5 * 2 * 3,
    "learning-rate": (2 + 2 * 8) * 3,
    "entropy": (2 + 2 * 2 * 5) * 3,
    "sparsity": (2 + 2 * 5) * 3,
    "pnl": 7 * 6,
    "noisy": 5 * 4,
    "hidden": 5 * 4,
    "mlp": 4 * 6,
    "constraint": 3 * 4 * 4,
    "varsortability": 5,
    "sortnregress": 3 * 3,
    "standardised": 4 * 6,
}
# Fixed sets, a real one, and the sizes of the runtime figure: not simulated by a preset of that name.
NO_PRESET = {"gp", "pnl-gp", "standardised-gp", "sachs", "d50", "d100", "d150", "d200"}
# Typed by hand while looking at the paper: first, last and awkward entries of every table.
TYPED = """
dense,dense-er8,notears,linear,shd,141.2,11.9
dense,dense-er8,dagma,linear,shd,67.6,8.0
dense,highdim-er2,rcl-og,linear,shd,1076.6,28.8
dense,highdim-er2,alias,linear,tpr,1.00,0.00
noise,noise-gumbel,dagma,linear,shd,0.2,0.2
noise,noise-uniform,rcl-og,linear,shd,57.0,23.1
gp,gp,notears-mlp,none,shd,28.4,1.4
gp,gp,rl-bic,cam,fdr,0.05,0.05
gp,gp,alias,cam,tpr,0.89,0.02
sachs,sachs,notears-mlp,ci,edges,7,
sachs,sachs,rl-bic,cam,correct,7,
sachs,sachs,corl,ci,shd,15,
sachs,sachs,alias,ci,shd,9,
sampling,d50,corl,,ms,45.7,
sampling,d200,rcl-og,,ms,915.5,
role,regular-er2-d10,adam lr=0.01 l1=0.001,linear,shd,14.0,0.6
role,regular-er2-d10,adam lr=1e-05 l1=1e-07,linear,tpr,0.51,0.08
role,regular-er2-d10,alias,linear,fdr,0.00,0.00
samples-er8,samples-er8-d20-n100,dagma,linear,shd,40.6,3.5
samples-er8,samples-er8-d30-n500,alias,linear,shd,3.8,0.6
samples-er8,samples-er8-d50-n5000,alias,linear,shd,0.7,0.5
samples-sf8,samples-sf8-d20-n100,alias,linear,shd,16.0,2.8
samples-sf8,samples-sf8-d30-n2000,dagma,linear,fdr,0.12,0.04
samples-sf8,samples-sf8-d50-n5000,dagma,linear,shd,75.0,25.1
learning-rate,dense-er8,a2c lr=1e-05,linear,shd,79.4,6.7
learning-rate,dense-er8,ppo lr=0.0005,linear,shd,0.4,0.3
learning-rate,dense-er8,ppo lr=0.05,linear,tpr,0.13,0.01
entropy,dense-er8,a2c lr=0.0001 entropy=0.1,linear,shd,28.8,7.7
entropy,dense-er8,a2c lr=0.0005 entropy=0.001,linear,shd,3.4,1.9
entropy,dense-er8,ppo lr=0.0005 entropy=1,linear,fdr,0.38,0.02
sparsity,dense-er8,corl,linear,shd,82.4,22.3
sparsity,dense-er8,a2c lambda0=0,linear,shd,8.4,4.2
sparsity,dense-er8,ppo lambda0=1e-06,linear,shd,1.2,0.6
pnl,pnl-gp,dagma-mlp,cam,fdr,0.51,0.08
pnl,pnl-gp,corl,cam,shd,4.2,0.7
noisy,noisy-er8-p1,notears,linear,shd,181.4,4.0
noisy,noisy-er8-p10,alias,linear,shd,66.0,4.0
hidden,hidden-er8-k1,cosmo,linear,shd,93.0,16.2
hidden,hidden-er8-k4,alias,linear,shd,106.6,2.5
mlp,mlp-er4,notears-mlp,none,shd,11.0,1.2
mlp,mlp-er4,cosmo-mlp,cam,tpr,0.79,0.02
constraint,sparse-er2,pc,linear,skeleton_shd,25.8,2.8
constraint,dense-er8,alias,linear,skeleton_shd,0.4,0.2
constraint,highdim-er2,rsl,linear,skeleton_f1,0.78,0.01
varsortability,varsortability-er4,paper,,varsortability,0.35,0.06
sortnregress,dense-er8,sortnregress-decreasing,linear,shd,360.2,2.2
sortnregress,dense-er8,sortnregress,linear,shd,88.2,17.7
standardised,standardised-er2,notears,linear,tpr,0.84,0.02
standardised,standardised-gp,cosmo-mlp,none,shd,30.8,4.9
standardised,standardised-gp,alias,none,shd,1.4,0.9
"""


@pytest.fixture(scope="module")
def rows():
    path = Path(experiments.__file__).with_name("paper.csv")
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == FIELDS
    assert all(len(line) == len(FIELDS) for line in lines)
    return [dict(zip(FIELDS, line, strict=True)) for line in lines]


def key(row):
    return tuple(row[name] for name in FIELDS[:5])


def test_every_number_of_every_table_once(rows):
    assert Counter(row["table"] for row in rows) == COUNTS
    assert len({key(row) for row in rows}) == len(rows)


def test_numbers_are_numbers(rows):
    for row in rows:
        assert float(row["mean"]) >= 0, row
        # No standard error is printed for the one real table and for the times.
        assert (row["se"] == "") == (row["table"] in ("sachs", "sampling")), row
        assert float(row["se"] or 0) >= 0, row
        if row["metric"] not in ("shd", "skeleton_shd", "ms", "edges", "correct"):
            assert row["metric"] in ("fdr", "tpr", "varsortability") or row["metric"].startswith("skeleton_"), row
            assert float(row["mean"]) <= 1, row


def test_tables_are_full(rows):
    """Every method of a table has the same columns as the others, but for the two dashes."""
    columns = {}
    for row in rows:
        columns.setdefault(row["table"], {}).setdefault(row["method"], set()).add(
            (row["cell"], row["pruning"], row["metric"])
        )
    for table, methods in columns.items():
        if table == "standardised":  # its linear and its nonlinear columns are of different methods
            continue
        full = set.union(*methods.values())
        short = {method for method, found in methods.items() if found != full}
        assert short == {"dense": {"rl-bic", "corl"}, "sachs": {"rl-bic"}}.get(table, set()), table


def test_cells_are_presets(rows):
    cells = {row["cell"] for row in rows}
    assert cells >= NO_PRESET
    assert cells - NO_PRESET <= set(simulate.presets())
    assert not NO_PRESET & set(simulate.presets())


def test_the_same_run_has_the_same_numbers_in_every_table(rows):
    """The paper repeats CORL and DAGMA on dense graphs, and the settings that two ablations share."""
    values = {key(row): (float(row["mean"]), float(row["se"] or 0)) for row in rows}
    for metric in ("shd", "fdr", "tpr"):
        for method in ("corl", "dagma"):
            repeated = {
                values[table, "dense-er8", method, "linear", metric]
                for table in ("dense", "learning-rate", "entropy", "sparsity")
            }
            assert len(repeated) == 1
        for method in ("dagma", "alias"):
            assert (
                values["dense", "dense-er8", method, "linear", metric]
                == values["samples-er8", "samples-er8-d30-n1000", method, "linear", metric]
            )
        for method in ("a2c lr=0.0001", "a2c lr=0.0005", "ppo lr=0.0001", "ppo lr=0.0005"):
            assert (
                values["learning-rate", "dense-er8", method, "linear", metric]
                == values["entropy", "dense-er8", f"{method} entropy=0", "linear", metric]
            )


@pytest.mark.parametrize("line", TYPED.split("\n")[1:-1])
def test_typed_by_hand(rows, line):
    typed = dict(zip(FIELDS, line.split(","), strict=True))
    (found,) = [row for row in rows if key(row) == key(typed)]
    assert (found["mean"], found["se"]) == (typed["mean"], typed["se"])


def test_every_table_has_an_entry_typed_by_hand():
    assert {line.split(",")[0] for line in TYPED.split("\n")[1:-1]} == set(COUNTS)
