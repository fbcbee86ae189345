"""Numbers of other pages: found by address, written between markers, and told when they are not those of the rows."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
pytest.importorskip(
    "experiments", reason="the experiments are beside the package in a checkout, not in a source archive"
)
from experiments.__main__ import main
from experiments.numbers import Numbers, refresh
from experiments.store import Store
from experiments.tables import UsageError


@pytest.fixture
def rows(tmp_path):
    """Five sets of one cell, and two of a method beside it."""
    store = Store(tmp_path / "rows")
    row = {"data": "dense-er8", "status": "ok", "seconds": 9.0, "cpu_seconds": 1.25, "peak_mb": 300.0}
    for seed, shd in enumerate((2.0, 3.0, 4.0, 5.0, 6.0)):
        metrics = {"shd": shd, "fdr": 0.0, "tpr": 1.0, "cpdag_shd": shd}
        fields = {"seed": seed, "metrics": {"none": metrics, "linear": metrics}}
        store.add({**row, **fields, "method": "vec2dag", "settings": {"criterion": "bic-ev"}})
        if seed < 2:
            store.add({**row, **fields, "method": "nocurl", "settings": {}})
    return store


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("dense/dense-er8/vec2dag/shd", "4.0 ± 0.7"),
        ("dense/dense-er8/vec2dag/tpr@linear", "1.00 ± 0.00"),
        ("dense/dense-er8/vec2dag/paper-shd", "0.2 ± 0.2"),
        ("dense/dense-er8/vec2dag/seconds", "1.2"),
        ("dense/dense-er8/nocurl/sets", "2"),
        ("dense/dense-er8/nocurl/shd", "2.5 ± 0.5"),
        ("dense/dense-er8/dagma/shd", "-"),
        ("verdict/met", "0"),
        ("verdict/cells", "1"),
    ],
)
def test_a_number_has_an_address(rows, address, text):
    assert Numbers(rows).text(address) == text


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nothing/dense-er8/vec2dag/shd", "no table 'nothing'"),
        ("dense/elsewhere/vec2dag/shd", "no row for 'elsewhere'"),
        ("dense/dense-er8/vec2dag/shd@cam", "pruning 'cam'"),
        ("dense/dense-er8", "TABLE/CELL/METHOD/WHAT"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(rows, address, message):
    with pytest.raises(UsageError, match=message):
        Numbers(rows).text(address)


def test_pages_are_written_and_checked(rows, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(
        "SHD <!-- number dense/dense-er8/vec2dag/shd -->9<!-- /number --> here.\n\n"
        "<!-- table dense cells=dense-er8 names=ER-8, 30 nodes methods=vec2dag what=shd,sets -->\n<!-- /table -->\n"
        "Not a number: 9.\n".replace("ER-8, 30", "ER-8 with 30")
    )
    command = ["numbers", str(page), "--results", str(rows.folder)]
    assert main([*command, "--check"]) == 1
    assert "other numbers" in capsys.readouterr().out
    assert main(command) == 0
    written = page.read_text()
    assert "-->4.0 ± 0.7<!-- /number --> here" in written
    assert "| ER-8 with 30 nodes | vec2dag | 4.0 ± 0.7 | 5        |" in written
    assert "Not a number: 9." in written
    assert main([*command, "--check"]) == 0
    assert refresh(written, rows) == written
    page.write_text(written.replace("-->4.0", "-->4.1"))
    assert main([*command, "--check"]) == 1
