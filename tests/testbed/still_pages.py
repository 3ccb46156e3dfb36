"""Pages of threads that are written to files."""

from __future__ import annotations

import json
import re
from typing import Any


def data_of(page: str) -> Any:
    """Return the data of a page."""
    found = re.search(r'<script type="application/json" id="thread">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])
