"""Draft of ``workflow.yaml``: its text during a change, with the rows of its index.

An entry is changed in a window of the text: its own lines and those of its neighbors, parsed and
written as a small document. The rest of the text is not parsed again, so the cost depends on the
entry alone. A text with an entry that cannot be read, or that shares a line with another, is parsed
and changed as a whole.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ..errors import DamagedError
from ..ids import BundleHash
from .document import Document, Span
from .entries import flow_of, flow_row, grant_row
from .index import (
    MOST_FORMER,
    MOST_NAMES,
    Index,
    IndexHead,
    IndexRow,
    Stamp,
    digest,
    encode_rows,
)
from .snapshot import (
    FLOWS,
    GRANTS,
    REMOVED,
    SEEDED,
    Flow,
    read_document,
    removed_names,
    seeded_keys,
)

Language = Callable[[BundleHash], str | None]
_BATCH = 8
"""New entries in one window: 2,000 flows and grants are added to as many in 4 s, not in 12 s as one
by one.
"""
_GAP = re.compile(rb"(?:[ \t]*(?:#[^\n]*)?\n)*")
"""Blank lines and comments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """Facts about a text. rows: in file order. The other fields: see `IndexHead`."""

    rows: tuple[IndexRow, ...]
    regular: bool
    top: Mapping[str, Span]
    problems: tuple[str, ...]
    unreadable: Mapping[str, str]
    removed: tuple[str, ...] | None
    seeded: tuple[str, ...]


class RegistryDraft:
    """A text during a change. language: returns the language of an unsupported bundle, see
    `Flow.unsupported`.
    """

    def __init__(
        self, text: bytes, where: str, language: Language, contents: Contents | None = None
    ) -> None:
        self.text = text
        self._where = where
        self._language = language
        self._contents = contents or parse(text, where, language)
        self._head: IndexHead | None = None
        self._changed: set[str] = set()

    @classmethod
    def of(cls, text: bytes, where: str, language: Language, index: Index) -> RegistryDraft:
        """Start from the index of the text.

        Raises:
            IndexMismatch: the index was damaged.
        """
        head = index.head
        contents = Contents(
            rows=tuple(
                sorted((*index.rows(GRANTS), *index.rows(FLOWS)), key=lambda row: row.start)
            ),
            regular=head.regular,
            top=head.top,
            problems=head.problems,
            unreadable=head.unreadable,
            removed=head.removed,
            seeded=head.seeded,
        )
        draft = cls(text, where, language, contents)
        draft._head = head
        return draft

    def flow(self, name: str) -> Flow | None:
        """Return the entry of a flow."""
        row = next(
            (row for row in self._contents.rows if (row.section, row.key) == (FLOWS, name)), None
        )
        return None if row is None else flow_of(row)

    def names(self) -> set[str]:
        """Return the names of all flows, unreadable entries included."""
        return {row.key for row in self._contents.rows if row.section == FLOWS} | set(
            self._contents.unreadable
        )

    def unreadable(self, name: str) -> str | None:
        """Return the problem of a flow's entry, if it has one."""
        return self._contents.unreadable.get(name)

    def removed(self) -> frozenset[str]:
        """Return the names of flows that a person removed.

        Raises:
            DamagedError: the list cannot be read, and so not be changed.
        """
        if self._contents.removed is None:
            return removed_names(Document.parse(self.text, self._where), self._where)
        return frozenset(self._contents.removed)

    def seeded(self) -> frozenset[str]:
        """Return the keys of the shipped flows that were added."""
        return frozenset(self._contents.seeded)

    def put(self, section: str, key: str, fields: Mapping[str, object]) -> None:
        """Set these fields of an entry."""
        self._change_entry(section, key, lambda document: document.put(section, key, fields))

    def put_all(
        self,
        entries: Sequence[tuple[str, str, Mapping[str, object]]],
        *,
        top: Mapping[str, object],
    ) -> None:
        """Set fields of several entries, given as (section, key, fields), and top-level keys to
        lists; a blank text is written once.
        """
        if self.text.strip():
            for entry in entries:
                self.put(*entry)
            for name, value in top.items():
                self.put_top(name, value)
            return

        def change(document: Document) -> None:
            for entry in entries:
                document.put(*entry)
            for name, value in top.items():
                document.put_top(name, value)

        self._change_whole(change)

    def add_entries(self, section: str, entries: Mapping[str, Mapping[str, object]]) -> None:
        """Add entries, given as fields by key, that the section does not have."""
        new = list(entries.items())
        for start in range(0, len(new), _BATCH):
            self._add(section, new[start : start + _BATCH])

    def _add(self, section: str, batch: Sequence[tuple[str, Mapping[str, object]]]) -> None:
        def change(document: Document) -> None:
            for key, fields in batch:
                document.put(section, key, fields)

        self._change_entry(section, batch[0][0], change)

    def drop(self, section: str, key: str) -> None:
        """Remove an entry."""
        self._change_entry(section, key, lambda document: document.drop(section, key))

    def put_top(self, name: str, value: object) -> None:
        """Set a top-level key to a list."""
        span = self._contents.top.get(name)
        if span is None:
            self._change_whole(lambda document: document.put_top(name, value))
            return
        document = Document.parse(self.text[slice(*span)], self._where)
        document.put_top(name, value)
        self._splice(span, document.rewritten(), ())
        removed, seeded = _lists(
            Document.parse(self.text[slice(*self._contents.top[name])], self._where), self._where
        )
        if name == REMOVED:
            self._contents = replace(self._contents, removed=removed)
        elif name == SEEDED:
            self._contents = replace(self._contents, seeded=seeded)

    def as_index(self) -> Index:
        """Return an index of this text in memory."""
        return Index.of(*self.index((0, 0, 0, 0)), self.text)

    def index(self, stamp: Stamp) -> tuple[IndexHead, bytes]:
        """Return head and rows of an index of this text; see `Index.of`."""
        rows = encode_rows(self._contents.rows)
        known = {
            name: getattr(self._contents, name)
            for name in ("regular", "top", "problems", "unreadable", "removed", "seeded")
        }
        head = IndexHead(
            stamp=stamp,
            text=digest(self.text),
            rows=digest(rows),
            former=self._former(),
            **known,
        )
        return head, rows

    def _former(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the former texts from which the changes are known; see `IndexHead`."""
        head = self._head
        if head is None or len(self._changed) > MOST_NAMES:
            return ()
        return (*head.former, (head.text, tuple(sorted(self._changed))))[-MOST_FORMER:]

    def _change_entry(self, section: str, key: str, change: Callable[[Document], None]) -> None:
        window = self._window(section, key)
        if not window:
            self._change_whole(change)
            return
        # what follows may become a part of a block scalar that is the last one then
        gap = _GAP.match(self.text, window[-1].end)
        span = window[0].start, window[-1].end if gap is None else gap.end()
        heading = f"{section}:\n".encode()
        document = Document.parse(heading + self.text[slice(*span)], self._where)
        change(document)
        changed = document.rewritten()
        found = parse(changed, self._where, self._language)
        if changed.startswith(heading) and found.regular and not found.top:
            self._splice(
                span,
                changed.removeprefix(heading),
                [row.moved(span[0] - len(heading)) for row in found.rows],
            )
        else:  # the last entry went, or one was written in braces
            self._change_whole(change)

    def _window(self, section: str, key: str) -> tuple[IndexRow, ...]:
        """Return the rows of an entry and its neighbors; of the last entry, if there is none of
        this key; none if the text has no regular lines.
        """
        rows = (
            [row for row in self._contents.rows if row.section == section]
            if self._contents.regular
            else []
        )
        at = next((number for number, row in enumerate(rows) if row.key == key), len(rows))
        return tuple(rows[max(0, at - 1) : at + 2])

    def _note(self, former: Sequence[IndexRow], rows: Sequence[IndexRow]) -> None:
        """Note the flows among former rows and those in their place that are not in both."""
        seals = {row.seal for row in former} ^ {row.seal for row in rows}
        self._changed.update(
            row.key for row in (*former, *rows) if row.section == FLOWS and row.seal in seals
        )

    def _change_whole(self, change: Callable[[Document], None]) -> None:
        document = Document.parse(self.text, self._where)
        change(document)
        self.text = document.rewritten()
        former = self._contents.rows
        self._contents = parse(self.text, self._where, self._language)
        self._note(former, self._contents.rows)

    def _splice(self, span: Span, lines: bytes, rows: Sequence[IndexRow]) -> None:
        """Replace the lines of a window, and its rows."""
        start, end = span
        by = len(lines) - (end - start)
        self.text = self.text[:start] + lines + self.text[end:]
        before = [row for row in self._contents.rows if row.end <= start]
        after = [row.moved(by) for row in self._contents.rows if row.start >= end]
        self._note(
            [row for row in self._contents.rows if start < row.end and row.start < end], rows
        )
        top = {
            name: (first + by * (first >= end), last + by * (last >= end))
            for name, (first, last) in self._contents.top.items()
        }
        self._contents = replace(self._contents, rows=(*before, *rows, *after), top=top)


def parse(text: bytes, where: str, language: Language) -> Contents:
    """Read a whole text.

    Raises:
        DamagedError: it is no YAML, or a section is no mapping.
    """
    with collector_paused():
        return _parsed(text, where, language)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the garbage collector: parsing ten thousand entries makes no garbage, and collections
    double the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _parsed(text: bytes, where: str, language: Language) -> Contents:
    document = Document.parse(text, where)
    outline = document.outline((FLOWS, GRANTS))
    snapshot, grants = read_document(document, where)
    found = {FLOWS: snapshot.flows.keys(), GRANTS: grants.keys()}
    if (
        outline is None
        or snapshot.problems
        or any(outline.sections.get(name, {}).keys() != keys for name, keys in found.items())
    ):
        outline = None
    rows = _rows(
        text, snapshot.flows.values(), grants, {} if outline is None else outline.sections, language
    )
    removed, seeded = _lists(document, where)
    return Contents(
        rows=tuple(sorted(rows, key=lambda row: row.start)),
        regular=outline is not None,
        top={}
        if outline is None
        else {name: span for name, span in outline.top.items() if name not in found},
        problems=snapshot.problems,
        unreadable=snapshot.unreadable,
        removed=removed,
        seeded=seeded,
    )


def _lists(document: Document, where: str) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Return the names that a person removed, None if they cannot be read, and the keys of shipped
    flows.
    """
    seeded = tuple(sorted(seeded_keys(document)))
    try:
        return tuple(sorted(removed_names(document, where))), seeded
    except DamagedError:
        return None, seeded


def _rows(
    text: bytes,
    flows: Iterable[Flow],
    grants: Mapping[BundleHash, str],
    sections: Mapping[str, Mapping[str, Span]],
    language: Language,
) -> Iterator[IndexRow]:
    """Yield the rows of all entries; one without lines of its own has its number as place."""
    for number, flow in enumerate(flows):
        span = sections[FLOWS][flow.name] if sections else (number, number)
        yield flow_row(replace(flow, unsupported=language(flow.hash)), span, text[slice(*span)])
    for number, (hash, granted) in enumerate(grants.items()):
        span = sections[GRANTS][hash] if sections else (number, number)
        yield grant_row(hash, granted, span, text[slice(*span)])
