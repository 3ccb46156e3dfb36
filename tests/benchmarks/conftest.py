"""The benchmarks are run from a checkout and are no part of the distribution, so their package is
found by its place.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)
