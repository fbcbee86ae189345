"""The pages of the documentation: their code runs and prints what they show, and their links lead somewhere."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests import pages

ROOT = pages.ROOT
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = [*(file for file in sorted(ROOT.glob("*.md")) if file not in PAGES), *PAGES]


def runs(file):
    return any(
        (block.language == "python" or (block.language == "console" and "$ " in block.text))
        and not block.remark.startswith("not run: ")
        for block in pages.blocks(file.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize("file", [file for file in PAGES if runs(file)], ids=lambda file: str(file.relative_to(ROOT)))
def test_pages_print_what_they_show(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    ran, different = pages.run_page(file.read_text(encoding="utf-8"), tmp_path)
    assert ran or any(block.remark for block in pages.blocks(file.read_text(encoding="utf-8")))
    assert not different, "\n".join(f"shown:\n{a}\nprinted:\n{b}" for _, a, b in different)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a 1.234\n", "a   1.235", True),
        ("a 1.234\n", "a 1.334", False),
        ("3 edges", "4 edges", False),
        ("took 1.2 s", "took 99 s", True),
        ("a\n...\nb", "a\nx\ny\nb", True),
        ("a\n...\nb", "a\nx\ny", False),
        ("b -0.5", "b 0.5", False),
        ("version 0.2.0", "version 0.2.1", False),
        ("", "a", False),
    ],
)
def test_the_comparison_of_pages_sees_what_differs(shown, printed, same):
    assert pages.agree(shown, printed) is same


def test_the_runner_of_pages_finds_what_is_wrong(tmp_path):
    page = (
        "```python\nx = 1\nprint(x)\n```\n\n```output\n2\n```\n\n```console\n$ cat a |\\\n  head -1\nno\n$ ls .\n```\n"
    )
    (tmp_path / "a").write_text("yes\nno\n")
    ran, different = pages.run_page(page, tmp_path)
    assert ran == 3
    assert [(found.shown, found.printed) for found in different] == [("2\n", "1\n"), ("no\n", "yes\n")]
    right = pages.renewed(page, tmp_path)
    assert right == page.replace("\n2\n", "\n1\n").replace("no\n", "yes\n")
    assert pages.run_page(right, tmp_path) == (3, [])


def slug(heading):
    """The anchor of a heading."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", pages.FENCE.sub("", text))


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(file):
    for target in re.findall(r"\]\(([^()\s]+)\)", without_code(file.read_text(encoding="utf-8"))):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        other = (file.parent / path).resolve() if path else file
        assert other.exists(), f"{target} does not exist"
        if anchor:
            text = pages.FENCE.sub("", other.read_text(encoding="utf-8"))
            anchors = {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)}
            assert anchor in anchors, f"{target}: there is no such heading"


def test_numbers_are_those_of_the_rows():
    pytest.importorskip("experiments", reason="the experiments are not part of a source archive")
    from experiments.numbers import outdated

    assert "<!-- table " in PAGES[0].read_text(encoding="utf-8")
    files = [file.name for file, _ in outdated(PAGES)]
    assert not files, f"other numbers than the rows: python -m experiments numbers {' '.join(files)}"


def test_the_readme_has_no_result_by_hand():
    text = without_code((ROOT / "README.md").read_text(encoding="utf-8"))
    by_hand = re.sub(r"<!-- (number|table) .*?<!-- /\1 -->", "", text, flags=re.DOTALL)
    result = re.compile(r"\d ± \d")
    assert result.search(text)
    assert not result.search(by_hand)


def test_every_warning_with_advice_is_explained():
    from vec2dag.report.advice import ADVICE

    if not (ROOT / "docs").exists():
        pytest.skip("the pages are not part of a source archive")
    page = " ".join((ROOT / "docs" / "warnings.md").read_text(encoding="utf-8").split())
    fragments = [part.replace("[0-9]+", "…") for pattern, _ in ADVICE for part in pattern.split("|")]
    assert len(fragments) > 20
    missing = [fragment for fragment in fragments if fragment not in page]
    assert not missing, f"docs/warnings.md does not explain: {missing}"
