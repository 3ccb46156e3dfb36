"""JSON document of one step of a thread: its effect, its outcome, and its lines of the journal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from uncaged_bundles.errors import NotFoundError, UncagedError
from uncaged_bundles.ids import BundleHash, ThreadId
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store

from ..effect_kinds import KNOWN, handler_for
from ..journal import chain
from ..journal.blobs import BlobDirectory
from ..journal.codec import decode
from ..journal.labels import intended
from .lean import MAX_CHARACTERS, Excerpt, blob_sentence
from .rows import RowCount, Words, handler_words
from .step_traces import traces_of

MAX_BLOB_BYTES = 16 << 20
"""The largest blob that is read for a step."""
MAX_LINE_CHARACTERS = 20_000
_SEQ = re.compile(rb'\{(?P<wait>"control":"wait",)?"seq":(?P<seq>[1-9][0-9]{0,8}),')
_ANSWER = b'{"control":"answer"'
OWN_KEYS = frozenset(
    (
        *("seq", "sub", "role", "content", "meta", "by", "usage", "outcome", "error", "timestamp"),
        *("ranMs", "blob", "trace", "screenshot", "screenshotProblem", "snapshot", "gitPack"),
    )
)
"""Keys of a step's record that have a place of their own in the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLine:
    """Line of a journal. number: from 1, the start record. follows: it continues the chain."""

    number: int
    text: bytes
    follows: bool

    def record(self) -> dict[str, Any] | None:
        """Return the line as a record without its chain; None if it is no JSON object."""
        with suppress(ValueError, RecursionError):
            found = decode(self.text[:-1])
            if isinstance(found, dict):
                found.pop("chain", None)
                return found
        return None


def lines_by_step(
    data: bytes, bundle: BundleHash, thread: ThreadId
) -> Mapping[int, list[JournalLine]]:
    """Return the lines of each step by its number, damaged ones included. A question and its answer
    belong to the step that asks.
    """
    found: dict[int, list[JournalLine]] = {}
    asking = 0
    previous = chain.seed(bundle, thread)
    for number, text in enumerate(data.split(b"\n")[:-1], start=1):
        line = text + b"\n"
        digest = chain.check(previous, line)
        # behind a damaged line the chain goes on from what that line states
        previous = digest or chain.stated(line) or previous
        owner = 0
        if (match := _SEQ.match(line)) is not None:
            owner = int(match["seq"])
            asking = owner if match["wait"] else asking
        elif line.startswith(_ANSWER):
            owner, asking = asking, 0
        if owner:
            found.setdefault(owner, []).append(
                JournalLine(number=number, text=line, follows=digest is not None)
            )
    return found


class StepReader:
    """Steps of one thread as documents.

    Args:
        data: the journal's bytes. start: the start record as this machine uses it. environment: for
            git.
    """

    def __init__(
        self,
        store: Store,
        bundle: BundleHash,
        thread: ThreadId,
        data: bytes,
        *,
        start: Mapping[str, Any],
        environment: Mapping[str, str],
        words: Words = handler_words,
    ) -> None:
        self._store, self._bundle, self._thread = store, bundle, thread
        self._start, self._environment, self._words = start, environment, words
        self._lines = lines_by_step(data, bundle, thread)
        self._blobs = BlobDirectory(store.blobs)

    def read(self, place: str, max_characters: int = MAX_CHARACTERS) -> dict[str, Any]:
        """Return one step.

        Args:
            place: ``3``, or ``3.1`` for a part of step 3. max_characters: of all texts together.
        Raises:
            NotFoundError: the journal has no such step.
        """
        seq, part = parse_place(place)
        every = [(line, line.record()) for line in self._lines.get(seq, ())]
        own = [(line, record) for line, record in every if _is_of(record, part)]
        if not own:
            raise NotFoundError(f"thread {self._thread} has no step {place!r}")
        excerpt = Excerpt(max_characters)
        records = [_expanded(record, self._blobs) for _, record in every if record is not None]
        rows = RowCount(self._words)
        shown = [(record, rows.add(record)) for record in records]
        mine = [(record, row) for record, row in shown if _is_of(record, part)]
        kind, body = _effect(records, part)
        last: dict[str, Any] = next(
            (one for one, _ in reversed(mine) if _is_finished(one, part)), {}
        )
        row = next((row for one, row in reversed(mine) if row and (one is last or not last)), None)
        begun = next((one for one in records if "intent" in one), {})
        error = last.get("error")
        holder = error if isinstance(error, Mapping) else last
        role = str(last.get("role") or (body.get("name") if _is_role(kind, body) else "") or "")
        content = last.get("content")
        more = {key: value for key, value in last.items() if key not in OWN_KEYS}
        return {
            "threadId": self._thread,
            "place": place,
            "kind": kind or ("role" if role else ""),
            "mark": row["mark"] if row and last else "open",
            "label": row["label"] if row and last else _open_label(rows),
            "by": excerpt.text(str(last.get("by", "")), "by"),
            "startedMs": begun.get("timestamp"),
            "tookMs": row["tookMs"] if row else None,
            "answer": excerpt.text(content, "answer") if isinstance(content, str) else None,
            "data": excerpt.of(last.get("meta", last.get("outcome")), "data"),
            "error": excerpt.of(error, "error"),
            "prompts": list(self._prompts(role, body, mine, excerpt)),
            "effect": excerpt.of(body, "effect"),
            "more": excerpt.of(more, "more"),
            "attempts": [excerpt.of(one, "attempt") for one, _ in mine if "attempt" in one],
            "voids": [excerpt.of(one, "void") for one, _ in mine if "void" in one],
            "usage": excerpt.of(holder.get("usage"), "usage"),
            "pictures": list(_pictures(holder)),
            "parts": [one for record, one in shown if part is None and "sub" in record and one],
            "blobs": [
                excerpt.of(record["blob"], "blob")
                for _, record in own
                if record and "blob" in record
            ],
            "trace": self._trace(last, excerpt),
            "changes": self._changes(kind, last, excerpt),
            "lines": [_line(line, excerpt) for line, _ in own],
            "cut": excerpt.cut,
        }

    def _prompts(
        self,
        role: str,
        body: object,
        mine: Sequence[tuple[Mapping[str, Any], object]],
        excerpt: Excerpt,
    ) -> Iterator[dict[str, str]]:
        """Yield title and text of what the agent or the person was asked."""
        prompt = body.get("prompt") if isinstance(body, Mapping) else None
        if isinstance(prompt, str) and prompt:
            yield {"title": "Prompt of this step", "text": excerpt.text(prompt, "prompt")}
        for record, _ in mine:
            if record.get("control") == "wait":
                text = record.get("prompt") or record.get("question")
                if isinstance(text, str):
                    yield {"title": "Question", "text": excerpt.text(text, "question")}
        if role:
            with suppress(UncagedError):
                found = self._store.load_descriptor(self._bundle, KNOWN).roles.get(role)
                if found is not None:
                    system = excerpt.text(found.system_prompt, "systemPrompt")
                    yield {"title": f"Role {role}", "text": system}

    def _trace(self, record: Mapping[str, Any], excerpt: Excerpt) -> Mapping[str, object] | None:
        """Return the tool calls of the step's agent, or why they cannot be read; None without
        any.
        """
        try:
            traces = traces_of(self._store, [record])
        except UncagedError as exc:
            return {"problem": str(exc), "calls": [], "leftOut": 0}
        if not traces:
            return None
        found: Mapping[str, object] = excerpt.of(traces[0].document(), "trace")
        return {"problem": None, **found}

    def _changes(
        self, kind: str, record: Mapping[str, Any], excerpt: Excerpt
    ) -> Mapping[str, object] | None:
        """Return the changes of files, or why they cannot be shown; None if the step made none."""
        if not record or "sub" in record:
            return None
        try:
            handler = handler_for(kind)
        except UncagedError:
            return None  # no package here performs the kind
        try:
            found = handler.file_changes(
                self._store, self._thread, self._start, record, self._environment
            )
        except (UncagedError, OSError, KeyError, ValueError) as exc:
            return {"problem": str(exc), "files": [], "patch": ""}
        return None if found is None else {"problem": None, **excerpt.of(found, "changes")}


def parse_place(place: str) -> tuple[int, int | None]:
    """Return the number of the step, and of its part.

    Raises:
        NotFoundError: it is no place of a step.
    """
    seq, dot, part = place.partition(".")
    for number in (seq, part) if dot else (seq,):
        if not (number.isascii() and number.isdecimal() and len(number) < 10):
            raise NotFoundError(f"{place[:40]!r} is no place of a step, such as 3 or 3.1")
    return int(seq), int(part) if dot else None


def _is_of(record: Mapping[str, Any] | None, part: int | None) -> bool:
    """Whether a line is the step's own: of a part only its lines, of a step all of them."""
    return part is None or (record is not None and record.get("sub") == part)


def _expanded(record: Mapping[str, Any], blobs: BlobDirectory) -> dict[str, Any]:
    note = record.get("blob")
    if not isinstance(note, Mapping):
        return dict(record)
    size = note.get("bytes")
    with suppress(UncagedError, OSError, ValueError, KeyError):
        if isinstance(size, int) and size <= MAX_BLOB_BYTES:
            return blobs.expand_record(record)
    fields = {key: value for key, value in record.items() if key != "blob"}
    return {**fields, str(note.get("field")): blob_sentence(note)}


def _is_finished(record: Mapping[str, Any], part: int | None) -> bool:
    """Whether a record is the outcome of the step, or of its part."""
    is_outcome = "outcome" in record or "error" in record or "role" in record
    return is_outcome and "attempt" not in record and record.get("sub") == part


def _effect(records: Sequence[Mapping[str, Any]], part: int | None) -> tuple[str, Any]:
    """Return kind and body of the step's effect, or of its part."""
    intent = next((one["intent"] for one in reversed(records) if "intent" in one), None)
    if intent is None:
        return "", None
    kind, body = intended(intent)
    if part is None:
        return kind, body
    inner = body.get("effects") if isinstance(body, Mapping) else None
    return intended(inner[part] if isinstance(inner, list) and part < len(inner) else None)


def _is_role(kind: str, body: object) -> bool:
    return kind == "role" and isinstance(body, Mapping)


def _open_label(rows: RowCount) -> str:
    found = rows.open_step()
    return str(found["label"]) if found is not None else "step"


def _pictures(holder: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    name, problem = holder.get("screenshot"), holder.get("screenshotProblem")
    if isinstance(name, str):
        yield {"hash": name[:64], "problem": None}
    elif problem is not None:
        yield {"hash": None, "problem": str(problem)[:1000]}


def _line(line: JournalLine, excerpt: Excerpt) -> dict[str, object]:
    text = line.text[:-1].decode("utf-8", "replace")
    shown = excerpt.text(text[:MAX_LINE_CHARACTERS], f"line {line.number}")
    if len(text) > MAX_LINE_CHARACTERS:
        excerpt.cut.append({"path": f"line {line.number}", "characters": len(text)})
    return {"number": line.number, "text": shown, "follows": line.follows}
