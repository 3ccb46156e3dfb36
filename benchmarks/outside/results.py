"""File of results: one JSON line for each finished case. An interrupted run continues with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["ResultFile"]

Document = Mapping[str, Any]


class ResultFile:
    """Results by name; the last line of a name counts. path: None keeps nothing on disk."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.found: dict[str, Document] = {}
        if path is not None and path.is_file():
            for line in path.read_text("utf-8").split("\n")[:-1]:  # a torn last line is dropped
                document: Document = json.loads(line)
                self.found[str(document["name"])] = document

    def add(self, document: Document) -> None:
        """Append the result of a case."""
        self.found[str(document["name"])] = document
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(document) + "\n")
