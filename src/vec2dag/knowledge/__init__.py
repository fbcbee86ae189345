"""What is known of a graph before any data are seen: edges that are required or forbidden, tiers, and limits.

:class:`Knowledge` holds what was said, by name; :meth:`Knowledge.bind` turns it into :class:`Constraints`, the arrays
that searches and the decoder (:func:`vec2dag.graph.vec2dag`) use. :func:`lagged` makes a table of present and past
columns out of a time series, with the knowledge that time gives.
"""

from .constraints import Constraints
from .lags import Lagged, lagged
from .said import Knowledge

__all__ = ["Constraints", "Knowledge", "Lagged", "lagged"]
