"""Reading of threads for display: large fields stay in their blobs, and long texts are cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from uncaged_bundles.clean import encodable
from uncaged_bundles.errors import UncagedError

from ..journal.blobs import BlobDirectory, Blobs

MAX_TEXT_CHARACTERS = 100_000
"""The longest text of a document, in characters."""
MAX_ITEMS = 2_000
"""The longest list or mapping of a document."""
MAX_DEPTH = 60
MAX_CHARACTERS = 1_000_000
"""All texts of a document together, in characters."""


class LeanBlobs(Blobs):
    """Blobs of a store that are read for a few fields alone, those of the start record and of
    intents if nothing else is said. Other fields are replaced by a sentence with the blob's size.
    """

    def __init__(
        self, directory: Path, *, fields: Collection[str] = ("intent", "parameters")
    ) -> None:
        self._blobs = BlobDirectory(directory)
        self._fields = fields

    def put(self, data: bytes) -> str:
        return self._blobs.put(data)

    def get(self, name: str) -> bytes:
        return self._blobs.get(name)

    def expand_record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        note = record.get("blob")
        if not isinstance(note, Mapping):
            return dict(record)
        if note.get("field") in self._fields:
            try:
                return self._blobs.expand_record(record)
            except (UncagedError, OSError, ValueError):
                pass  # the blob is gone; the rest of the record is shown
        fields = {key: value for key, value in record.items() if key != "blob"}
        return {**fields, str(note.get("field")): blob_sentence(note)}


def blob_sentence(note: Mapping[str, Any]) -> str:
    """Return a sentence about a field that is in a blob."""
    size = note.get("bytes")
    shown = f"{size:,} bytes" if isinstance(size, int) else "large"
    return f"({shown}, in the blob {note.get('hash')})"


class Excerpt:
    """JSON data within the bounds of one document.

    cut: ``{"path", "characters" or "items"}`` of each value that was shortened, with its full size.
    """

    def __init__(self, max_characters: int = MAX_CHARACTERS) -> None:
        self.cut: list[dict[str, object]] = []
        self._left = max_characters

    def of(self, value: object, path: str) -> Any:
        """Return *value* within the bounds. path: its name in `cut`."""
        return self._of(value, path, 0)

    def text(self, text: str, path: str) -> str:
        """Return the beginning of a text."""
        limit = max(0, min(MAX_TEXT_CHARACTERS, self._left))
        head = str(encodable(text[:limit]))
        self._left -= len(head)
        if len(text) > limit:
            self.cut.append({"path": path, "characters": len(text)})
        return head

    def _of(self, value: object, path: str, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value, path)
        if isinstance(value, Mapping | list | tuple) and (
            depth >= MAX_DEPTH or (len(value) and self._left <= 0)
        ):
            self.cut.append({"path": path, "items": len(value)})
            return {} if isinstance(value, Mapping) else []
        if isinstance(value, Mapping):
            self._note_items(len(value), path)
            return {
                self.text(str(key), path): self._of(part, f"{path}.{str(key)[:80]}", depth + 1)
                for key, part in list(value.items())[:MAX_ITEMS]
            }
        if isinstance(value, list | tuple):
            self._note_items(len(value), path)
            self._left -= min(len(value), MAX_ITEMS)
            return [
                self._of(part, f"{path}[{at}]", depth + 1)
                for at, part in enumerate(value[:MAX_ITEMS])
            ]
        return value

    def _note_items(self, count: int, path: str) -> None:
        if count > MAX_ITEMS:
            self.cut.append({"path": path, "items": count})
