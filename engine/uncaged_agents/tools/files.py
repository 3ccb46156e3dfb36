"""File tools: list, read, edit and write text. An edit replaces exactly one passage unless all are
requested.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .working_directory import ToolError, WorkingDirectory

MAX_ENTRIES = 1000
MAX_LINES = 2000
MAX_CHARACTERS = 60_000
CLOSED = frozenset(
    {
        ".git",
        "node_modules",
        "__pycache__",
        ".venv",
        "venv",
        ".tox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    }
)
"""Directories that are named in a listing, but not opened by it."""


def list_directory(workdir: WorkingDirectory, arguments: Mapping[str, Any]) -> str:
    name, depth = arguments.get("path", "."), arguments.get("depth", 2)
    directory = workdir.resolve(name)
    if not directory.is_dir():
        raise ToolError(f"there is no directory {name!r}")
    entries: list[str] = []
    for entry in walk(directory, depth):
        if len(entries) == MAX_ENTRIES:
            entries.append(
                f"[… more than {MAX_ENTRIES} entries; list a directory further down, or with a smaller depth]"
            )
            break
        entries.append(entry)
    return "\n".join(entries) or "(empty)"


def walk(directory: Path, depth: int, indent: str = "") -> Iterator[str]:
    """Yield names in order: directories with a slash and their content, links with their target."""
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as exc:
        yield f"{indent}[{exc.strerror}]"
        return
    for entry in entries:
        if entry.is_symlink():
            yield f"{indent}{entry.name} -> {Path(entry.path).readlink()}"
        elif entry.is_dir(follow_symlinks=False):
            yield f"{indent}{entry.name}/"
            if depth > 1 and entry.name not in CLOSED:
                yield from walk(Path(entry.path), depth - 1, indent + "  ")
        else:
            yield f"{indent}{entry.name}"


def read_file(workdir: WorkingDirectory, arguments: Mapping[str, Any]) -> str:
    """Return the text, after a note if it is only a part of the file."""
    text = workdir.read(arguments["path"])
    lines = text.splitlines(keepends=True)
    first = arguments.get("offset", 1)
    count = min(arguments.get("limit", MAX_LINES), MAX_LINES)
    if first > max(len(lines), 1):
        raise ToolError(f"{arguments['path']!r} has only {len(lines)} lines")
    chosen = lines[first - 1 : first - 1 + count]
    while len(chosen) > 1 and sum(map(len, chosen)) > MAX_CHARACTERS:
        chosen = chosen[: len(chosen) * 3 // 4]
    part = "".join(chosen)[:MAX_CHARACTERS]
    if len(chosen) == len(lines) and len(part) == len(text):
        return text or "(empty)"
    return f"[lines {first} to {first + len(chosen) - 1} of {len(lines)}]\n{part}"


def edit_file(workdir: WorkingDirectory, arguments: Mapping[str, Any]) -> str:
    name, old, new = arguments["path"], arguments["old"], arguments["new"]
    text = workdir.read(name)
    # models write line feeds alone, whatever the file has
    if old not in text and "\r\n" in text and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    times = text.count(old) if old else 0
    if not old:
        raise ToolError("old is empty; give the text to replace, or use write for a whole file")
    if times == 0:
        raise ToolError(
            f"the text to replace is not in {name!r}, letter for letter; read the file again"
        )
    if times > 1 and not arguments.get("all", False):
        raise ToolError(
            f"the text to replace stands {times} times in {name!r}; give more of what is around it, or set all"
        )
    if old == new:
        raise ToolError("old and new are the same")
    workdir.write(name, text.replace(old, new))
    return f"{name}: {times} {'passage' if times == 1 else 'passages'} replaced"


def write_file(workdir: WorkingDirectory, arguments: Mapping[str, Any]) -> str:
    name, text = arguments["path"], arguments["text"]
    existed = workdir.resolve(name).exists()
    workdir.write(name, text)
    return f"{name} {'replaced' if existed else 'made'}, {len(text.splitlines())} lines"
