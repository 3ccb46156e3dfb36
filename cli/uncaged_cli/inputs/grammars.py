"""Reading of a grammar file together with the files that it imports."""

from __future__ import annotations

from pathlib import Path

from uncaged_bundles.errors import NotFoundError
from uncaged_dispatcher.grammar import GrammarError, imported_files
from uncaged_dispatcher.grammar.limits import MAX_CHARACTERS, MAX_FILES

from .files import decode_text, read_bytes

MAX_BYTES = 4 * MAX_CHARACTERS


def read_grammar(file: Path) -> tuple[str, dict[str, str]]:
    """Return a grammar's text and the texts of imported files by their paths.

    A file that is missing or is no grammar is left out: loading the grammar reports it.

    Raises:
        NotFoundError, UsageError: *file* is missing, or a file cannot be read.
    """
    text = _read(file)
    files: dict[str, str] = {}
    waiting = _imports(text, str(file))
    while waiting and len(files) < MAX_FILES:
        path = waiting.pop()
        if path not in files:
            try:
                files[path] = _read(Path(path))
            except NotFoundError:
                continue
            waiting += _imports(files[path], path)
    return text, files


def _read(file: Path) -> str:
    return decode_text(read_bytes(file, max_bytes=MAX_BYTES), file)


def _imports(text: str, name: str) -> list[str]:
    try:
        return imported_files(text, name=name)
    except GrammarError:
        return []
