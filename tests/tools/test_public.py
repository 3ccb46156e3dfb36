"""Public names of the package: those that the docs import."""

from __future__ import annotations

import re
from pathlib import Path

from uncaged_tools import flows

ROOT = Path(__file__).parent.parent.parent
IMPORT = re.compile(r"^from uncaged_tools\.(\w+) import ([\w, ]+)$", re.MULTILINE)


def test_the_docs_import_only_public_names() -> None:
    """The docs import from one module, and each name is in its `__all__`."""
    texts = [
        path.read_text("utf-8") for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    ]
    found = [match for text in texts for match in IMPORT.findall(text)]
    assert {module for module, _ in found} == {"flows"}
    assert {name for _, names in found for name in names.split(", ")} <= set(flows.__all__)


def test_the_public_module_lists_its_names() -> None:
    """Each name of `__all__` exists, and is listed once."""
    assert len(set(flows.__all__)) == len(flows.__all__)
    assert [name for name in flows.__all__ if not hasattr(flows, name)] == []
