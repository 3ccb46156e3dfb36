"""Page that shows one thread, as a single file: the timeline and the steps of the web page with
their data, for reading without a server and without a network.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import NotFoundError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass
from uncaged_engine.api import Engine
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.documents import (
    RowCount,
    StepReader,
    lean_view,
    summary_document,
    thread_document,
)
from uncaged_engine.services.journal import journal_bytes

from .images import media_type

__all__ = ["StillPage", "inlined", "still_page"]

FOLDER = Path(__file__).parent / "page"
STEP_CHARACTERS = 200_000
"""Texts of one step together, in characters."""
MAX_CHARACTERS = 30_000_000
"""Texts of all steps together, in characters."""
MAX_PICTURE_BYTES = 50_000_000
_IMPORT = re.compile(r'^import \{(?P<names>[^}]*)\} from "(?P<path>[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (?P<name>\w+))", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class StillPage:
    """The page. pictures: how many it shows. note: what it leaves out; empty if nothing."""

    text: str
    pictures: int
    note: str


def still_page(
    engine: Engine,
    place: tuple[BundleHash, ThreadId, Path],
    *,
    environment: Mapping[str, str],
    redact: Callable[[object], object],
) -> StillPage:
    """Return the page of a thread.

    Args:
        environment: for git. redact: replaces the values of secrets in JSON data.
    Raises:
        DamagedError: not even the thread's start can be read.
    """
    store, (bundle, thread, path) = engine.store, place
    found = lean_view(store, place)
    count = RowCount()
    rows = [row for record in found.records if (row := count.add(record)) is not None]
    reader = StepReader(
        store, bundle, thread, journal_bytes(path), start=found.start, environment=environment
    )
    steps, left_out = _steps(reader, [str(row["seq"]) for row in rows if row["seq"]])
    pictures = _pictures(BlobDirectory(store.blobs), steps)
    note = f"{left_out} steps are not in this file, which would be too large." if left_out else ""
    document = {
        "thread": {**summary_document(found.summary), **thread_document(store, place, found)},
        "rows": rows,
        "steps": steps,
        "note": note,
    }
    data = {**_mapping(redact(document)), "pictures": pictures}
    title = f"{found.summary.name or 'thread'} {thread}"
    return StillPage(text=_page(title, data), pictures=len(pictures), note=note)


def inlined(entry: Path) -> str:
    """Return a module with all that it imports as one classic script.

    The modules use `import {…} from "./…"` and `export` before a function, class or constant.
    """
    order: dict[Path, str] = {}
    _visit(entry.resolve(), order)
    return '"use strict";\n' + "".join(order.values())


def _visit(path: Path, order: dict[Path, str]) -> None:
    if path in order:
        return
    source = path.read_text("utf-8")
    for match in _IMPORT.finditer(source):
        _visit((path.parent / match["path"]).resolve(), order)

    def bound(match: re.Match[str]) -> str:
        names = ", ".join(match["names"].replace(",", " ").split())
        return f"const {{ {names} }} = {_name(path.parent / match['path'])};\n"

    exports = ", ".join(match["name"] for match in _EXPORT.finditer(source))
    body = _EXPORT.sub("", _IMPORT.sub(bound, source))
    order[path] = f"const {_name(path)} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"


def _name(path: Path) -> str:
    relative = path.resolve().relative_to(FOLDER.resolve()).with_suffix("")
    return "_".join(("module", *relative.parts))


def _steps(reader: StepReader, places: list[str]) -> tuple[dict[str, Any], int]:
    """Return the steps by place, and how many are left out because of their size."""
    found: dict[str, Any] = {}
    left = MAX_CHARACTERS
    wanted = dict.fromkeys([one.partition(".")[0] for one in places] + places)
    for number, place in enumerate(wanted):
        if left <= 0:
            return found, len(wanted) - number
        with suppress(NotFoundError):
            found[place] = reader.read(place, min(left, STEP_CHARACTERS))
            left -= len(json.dumps(found[place]))
    return found, 0


def _pictures(blobs: BlobDirectory, steps: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    left = MAX_PICTURE_BYTES
    for step in steps.values():
        for picture in step["pictures"]:
            name = picture["hash"]
            with suppress(UncagedError, OSError):
                data = blobs.get(name) if name and name not in found else b""
                kind = media_type(data)
                if kind.startswith("image/") and len(data) <= left:
                    left -= len(data)
                    found[name] = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return found


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _page(title: str, data: Mapping[str, Any]) -> str:
    style = (FOLDER / "style.css").read_text("utf-8")
    script = inlined(FOLDER / "modules" / "still.js")
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(clean_line(title))}</title>",
            f"<style>{style}</style>\n</head>\n<body>",
            '<main id="main" tabindex="-1"></main>',
            "<noscript>This file needs JavaScript, which it brings itself.</noscript>",
            f'<script type="application/json" id="thread">{_json(data)}</script>',
            f"<script>{script}</script>\n</body>\n</html>\n",
        )
    )


def _json(data: Mapping[str, Any]) -> str:
    """Return data as JSON in ASCII that no element can end."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"
