"""``python -m vec2dag.cli``."""

import sys

from . import main

sys.exit(main())
