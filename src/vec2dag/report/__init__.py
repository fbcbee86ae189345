"""One self-contained page about a fitted graph: the graph to explore, its edges, the data, and how it was made.

The page is a file of HTML that loads nothing: no network, no library. ``vec2dag report DIR`` makes it from a folder.
"""

from .page import page, report
from .sources import Source, of_folder, of_graph, of_model
from .summaries import summary

__all__ = ["Source", "of_folder", "of_graph", "of_model", "page", "report", "summary"]
