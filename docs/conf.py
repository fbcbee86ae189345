"""The documentation site: ``make docs`` builds it in build/docs, without a network; warnings are errors.

The sources are the pages of the whole repository, where they lie: links between them work here and in an editor alike.
"""

import contextlib
import io
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import vec2dag  # noqa: E402
from vec2dag.cli import main as command_line  # noqa: E402

project = "vec2dag"
author = "The vec2dag developers"
copyright = "the vec2dag developers, MIT licence"
version = release = vec2dag.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "benchmarks/results/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RESULTS.md",
    "VISION.md",
    "src/vec2dag/data/README.md",
]
exclude_patterns = ["**/__pycache__", "**/.*"]
source_suffix = {".md": "markdown"}
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
# Anchors of headings, by the same rule as elsewhere on the web: links to them are checked.
myst_heading_anchors = 3
# Links to files that are no pages (code, rows of results) are copied beside them.
nitpicky = True
# Types of other packages: their pages cannot be looked up without a network.
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|np|scipy|sklearn|networkx|pandas|polars|matplotlib|torch|gymnasium|stable_baselines3)(\..*)?"),
    ("py:.*", r"(collections|typing|pathlib|os|types|argparse|concurrent)\..*"),
    # Inner types, which have no page of their own.
    ("py:.*", r"vec2dag\.(scores|search|files|knowledge|_kernels)(\.\w+)*"),
    ("py:.*", r"(Axes|Constraints|dict\[str|NormalWishart(OnTable)?(\.\w+)?)"),
    ("py:.*", r"(Any|Callable|Sequence|Mapping|Iterable|Iterator|Path|NDArray|ArrayLike|Generator|Self|TypeVar)"),
]

autodoc_member_order = "bysource"
# What scikit-learn adds to every estimator.
autodoc_default_options = {"exclude-members": "set_fit_request, set_score_request, set_predict_request"}
# Docstrings say the types, in words.
autodoc_typehints = "none"
python_maximum_signature_line_length = 100
# The extra is large, and its signatures need no torch.
autodoc_mock_imports = ["torch", "stable_baselines3", "gymnasium"]
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "furo"
html_title = f"vec2dag {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
templates_path = ["_templates"]
# The first page has an address of its own at the top of the folder.
html_additional_pages = {"index": "redirect.html"}
html_math_renderer = "mathml"
pygments_style = "friendly"
pygments_dark_style = "github-dark"
# Of a session the commands are copied, without prompts and what they print.
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
copybutton_selector = "div.highlight-python pre, div.highlight-console pre, div.highlight-bash pre"


class CommandHelp(SphinxDirective):
    """``{command-help} discover``: what ``vec2dag discover --help`` prints."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
            command_line([*self.arguments, "--help"])
        block = nodes.literal_block(text.getvalue(), text.getvalue())
        block["language"] = "text"
        return [block]


def inline_math(writer: Any, node: nodes.math) -> None:
    """Formulas as MathML, which browsers draw themselves: no script from a network."""
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def display_math(writer: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own."""
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def widen(app: Sphinx, page: str, *_: Any) -> None:
    """Tables of results have many columns."""
    if page == "RESULTS" or page.startswith(("docs/results/", "benchmarks/results/")):
        app.add_css_file("wide.css")


def setup(app: Sphinx) -> None:
    """What this site adds to Sphinx."""
    app.connect("html-page-context", widen)
    app.add_directive("command-help", CommandHelp)
    app.add_html_math_renderer("mathml", (inline_math, None), (display_math, None))
