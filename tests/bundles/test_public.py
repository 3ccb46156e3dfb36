"""Public names of the package: those that docs, starter files and other distributions import."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from uncaged_templates import starter

ROOT = Path(__file__).parent.parent.parent
PUBLIC = ("authoring", "builders", "contract", "errors", "limits", "rights", "shapes")
IMPORT = re.compile(r"^from uncaged_bundles\.\w+ import [\w, ]+$", re.MULTILINE)
DOTTED = re.compile(r"`uncaged_bundles\.(\w+)\.(\w+)`")


def sources() -> Iterator[str]:
    """Yield the texts in which other distributions learn what to import, and one that does."""
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        text = path.read_text("utf-8")
        yield "\n".join(IMPORT.findall(text))
        yield "\n".join(
            f"from uncaged_bundles.{module} import {name}" for module, name in DOTTED.findall(text)
        )
    for path in (ROOT / "tests" / "templates" / "outside").rglob("*.py"):
        yield path.read_text("utf-8")
    yield starter.DEFINITION
    yield starter.TESTS


def test_the_docs_import_only_public_names() -> None:
    """A module that is recommended to other distributions is public, and so is each name."""
    used: dict[str, set[str]] = {}
    for source in sources():
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.ImportFrom) or node.module is None:
                continue
            package, _, module = node.module.partition(".")
            for alias in node.names if package == "uncaged_bundles" else ():
                used.setdefault(module or alias.name, set())
                if module:
                    used[module].add(alias.name)
    assert {"authoring", "builders", "errors", "limits", "rights", "shapes"} <= set(used)
    assert set(used) <= set(PUBLIC)
    for module, names in used.items():
        assert names <= set(importlib.import_module(f"uncaged_bundles.{module}").__all__), module


@pytest.mark.parametrize("module", PUBLIC)
def test_a_public_module_lists_its_names(module: str) -> None:
    """Each name of `__all__` exists, once, without a leading underscore."""
    loaded = importlib.import_module(f"uncaged_bundles.{module}")
    names = loaded.__all__
    assert len(set(names)) == len(names) > 0
    assert [name for name in names if name.startswith("_") or not hasattr(loaded, name)] == []
