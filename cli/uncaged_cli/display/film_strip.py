"""Page that shows a thread: its steps with durations and answers, and the pictures of those that
acted in a browser. The page is one file, without scripts, and loads nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from hashlib import sha256
from html import escape
from typing import TYPE_CHECKING

from uncaged_bundles.clean import clean
from uncaged_engine.threads.ending import Ending
from uncaged_engine.threads.timeline import Record, Row, Timeline

from .costs import spell_spent
from .durations import clock_time, spell
from .header import header_line
from .step_details import step_details
from .step_labels import add_record

if TYPE_CHECKING:
    from uncaged_engine.api import ThreadView

STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:64em;padding:0 1em;color:#222;background:#fff}"
    "h1{font-size:1.25em;overflow-wrap:anywhere}ol{list-style:none;padding:0}"
    "li{border-left:4px solid #9ab;margin:0 0 1em;padding:.2em 0 .2em 1em}"
    "li.failed{border-color:#b33}li.void,li.control,li.attempt{border-color:#ccc;color:#666}"
    ".seq,.time{color:#678}.time{float:right}p,pre{margin:.3em 0;white-space:pre-wrap;overflow-wrap:anywhere}"
    "pre{font-size:.85em;background:#f4f6f8;padding:.5em}img{max-width:100%;border:1px solid #ccd;margin-top:.4em}"
)
PNG = b"\x89PNG\r\n\x1a\n"
MAX_DETAIL_CHARACTERS = 20_000
Picture = Callable[[str], bytes | None]
Redact = Callable[[str], str]


class FilmStrip:
    """The page of one thread. pictures: how many it shows."""

    def __init__(self, view: ThreadView, ending: Ending, picture: Picture, redact: Redact) -> None:
        """Args:
        picture: returns the bytes of a blob; None if the store does not have it.
        redact: replaces the values of secrets.
        """
        self.pictures = 0
        self._view = view
        self._ending = ending
        self._picture = picture
        self._redact = redact

    def text(self) -> str:
        """Return the page as HTML."""
        digest = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
        policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        title = self._shown(header_line(self._view.start))
        lines = [
            '<!doctype html><html lang="en"><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width">',
            f"<title>{title}</title><style>{STYLE}</style>",
            f"<h1>{title}</h1>",
            *self._head(),
            "<ol>",
            *self._steps(),
            "</ol>",
            *self._end(),
            "</html>",
        ]
        return "\n".join(lines) + "\n"

    def _head(self) -> Iterator[str]:
        summary = self._view.summary
        yield f"<p>{self._shown(summary.status)}, started {clock_time(summary.started_ms)}</p>"
        parameters = self._view.start.get("parameters")
        prompt = parameters.get("prompt") if isinstance(parameters, dict) else None
        if prompt:
            yield f"<pre>{self._shown(str(prompt))}</pre>"

    def _steps(self) -> Iterator[str]:
        timeline = Timeline()
        for record in self._view.records:
            row = add_record(timeline, record)
            if row is not None:
                yield from self._step(row, record)

    def _step(self, row: Row, record: Record) -> Iterator[str]:
        took = (
            "" if row.duration_ms is None else f'<span class="time">{spell(row.duration_ms)}</span>'
        )
        by = f" ({self._shown(row.by)})" if row.by else ""
        yield f'<li class="{row.mark}">{took}<span class="seq">{self._shown(row.seq)}</span> <b>{self._shown(row.label)}</b>{by}'
        if row.detail:
            yield f"<p>{self._shown(row.detail)}</p>"
        details = "\n".join(step_details(record))[:MAX_DETAIL_CHARACTERS]
        if details:
            yield f"<pre>{self._shown(details)}</pre>"
        yield from self._shot(record, row.label)
        yield "</li>"

    def _shot(self, record: Record, label: str) -> Iterator[str]:
        """Yield the picture of a step, or why there is none."""
        error = record.get("error")
        holder = error if isinstance(error, dict) else record
        name, problem = holder.get("screenshot"), holder.get("screenshotProblem")
        if problem is not None:
            yield f"<p>no picture: {self._shown(str(problem))}</p>"
        if not isinstance(name, str):
            return
        data = self._picture(name)
        if data is None or not data.startswith(PNG):
            yield "<p>the picture is not in this store</p>"
            return
        self.pictures += 1
        source = base64.b64encode(data).decode()
        yield f'<img src="data:image/png;base64,{source}" alt="{self._shown(label)}">'

    def _end(self) -> Iterator[str]:
        ending = self._ending
        if self._view.summary.status != "running":
            yield f"<h2>{self._shown(ending.word)}</h2><p>{self._shown(ending.message)}</p>"
            if ending.details:
                yield f"<pre>{self._shown(chr(10).join(ending.details))}</pre>"
        if used := spell_spent(self._view.spent):
            yield f"<p>used: {self._shown(used)}</p>"

    def _shown(self, text: str) -> str:
        return escape(clean(self._redact(text)))
