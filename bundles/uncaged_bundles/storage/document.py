"""YAML files that people edit: parsed without building objects, changed line by line, so that
comments and unknown entries survive.

Anchors and aliases are refused (a few lines of them expand to billions of values), and so is deep
nesting: the C parser's own composer recurses without a bound, so the flat stream of events is
checked first.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import yaml

from ..errors import DamagedError
from .rewriting import Rewriting, last_line

MAX_BYTES = 8 << 20
MAX_DEPTH = 48
LIBRARY_TOO_DEEP = "exceeded maximum nesting depth"
"""What PyYAML says from version 6.0.4 on, of some thousand brackets, before its first event."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_IRREGULAR = re.compile(
    rb"\r|\xc2\x85|\xe2\x80[\xa8\xa9]|^\xef\xbb\xbf|^(?:---|\.\.\.)", re.MULTILINE
)
"""Line breaks that only YAML counts, a byte order mark, document markers."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key of a section with its raw value. line: of the key, from 1."""

    key: object
    line: int
    node: yaml.Node

    def value(self) -> object:
        """Return plain data.

        Raises:
            ValueError: the value is none.
        """
        return _constructed(self.node)

    def text(self) -> str | None:
        """Return a scalar's source text; None for a mapping or a list."""
        return self.node.value if isinstance(self.node, yaml.ScalarNode) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """Places of the pairs of a document, each as the bytes of its whole lines: top-level keys, and
    the entries of sections.
    """

    top: Mapping[str, Span]
    sections: Mapping[str, Mapping[str, Span]]


def load_yaml(data: bytes, where: str) -> object:
    """Return the plain data of a YAML text, None for a blank one.

    Raises:
        DamagedError: it is no YAML; with *where* and the line.
    """
    node = _composed(data, where)
    try:
        return None if node is None else _constructed(node)
    except ValueError as exc:
        raise DamagedError(f"{where}: {exc}") from exc


class Document:
    """Syntax tree of a YAML file: a mapping of sections, each a mapping of entries. Unchanged
    entries keep their text.
    """

    def __init__(self, root: yaml.MappingNode, where: str, data: bytes = b"") -> None:
        self._root = root
        self._where = where
        self._data = data
        self._changes: list[Callable[[Rewriting], None]] = []

    @classmethod
    def parse(cls, data: bytes, where: str) -> Self:
        """Parse a text; a blank one is an empty document.

        Raises:
            DamagedError: it is no mapping; with *where* and the line.
        """
        node = _composed(data, where)
        if node is None or (
            isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"
        ):
            node = _represented({})
        if not isinstance(node, yaml.MappingNode):
            raise DamagedError(
                f"{where}:{_line(node)}: the file must hold a mapping such as 'workflows:' with entries"
            )
        document = cls(node, where, data)
        keys = Counter(entry.key for entry in document._entries(node))
        for entry in document._entries(node):
            if keys[entry.key] > 1:
                raise DamagedError(
                    f"{where}:{entry.line}: the key {entry.key!r} is there twice; join the two"
                )
        return document

    def rewritten(self) -> bytes:
        """Return the text with its changes; other lines are unchanged."""
        if not self._changes:
            return self._data
        if not self._data.strip():
            return self.encode()
        rewriting = Rewriting(
            self._data.decode("utf-8-sig"),
            lambda text: _composed(text.encode(), self._where),
            _pair_lines,
        )
        try:
            for change in self._changes:
                change(rewriting)
            node = _composed(rewriting.text.encode(), self._where)
        except (LookupError, DamagedError):
            return self._with_comments_above()
        if node is None or _shape(node) != _shape(self._root):
            return self._with_comments_above()
        return rewriting.text.encode()

    def _with_comments_above(self) -> bytes:
        """Return the library's text below all comment lines: for an entry whose style is not
        changed line by line.
        """
        comments = [
            line.strip()
            for line in self._data.decode("utf-8-sig").split("\n")
            if line.lstrip().startswith("#")
        ]
        return "".join(f"{line}\n" for line in comments).encode() + self.encode()

    def encode(self) -> bytes:
        """Return the text as the library writes it, without comments."""
        text = yaml.serialize(
            self._root, Dumper=DUMPER, allow_unicode=True, width=120, encoding="utf-8"
        )
        return text if isinstance(text, bytes) else str(text).encode()

    def top(self, name: str) -> Entry | None:
        """Return the entry of a top-level key, or None."""
        return next((entry for entry in self._entries(self._root) if entry.key == name), None)

    def section(self, name: str) -> list[Entry]:
        """Return the entries under the top-level key *name*, in file order; a repeated key is
        listed each time.
        """
        node = self._section_node(name)
        return [] if node is None else list(self._entries(node))

    def outline(self, sections: Sequence[str]) -> Outline | None:
        """Return the places of the pairs in the original text; None if a pair shares a line with
        another.

        Args:
            sections: top-level keys whose entries are located; one without entries on lines of
                their own is left out.
        """
        if self._root.flow_style or _IRREGULAR.search(self._data) or not self._data.endswith(b"\n"):
            return None
        lines = self._data.split(b"\n")
        starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
        top = _spans(self._root, lines, starts)
        if top is None:
            return None
        located = {}
        for name in sections:
            entry = self.top(name)
            if (
                entry is None
                or not isinstance(entry.node, yaml.MappingNode)
                or not entry.node.value
            ):
                continue
            spans = None if entry.node.flow_style else _spans(entry.node, lines, starts)
            if spans is None:
                return None
            located[name] = spans
        return Outline(top=top, sections=located)

    def put_top(self, name: str, value: object, *, inline: bool = False) -> None:
        """Set a top-level key. inline: a list is written in brackets, on one line."""
        new = _represented(value)
        new.flow_style = inline
        former = self.top(name)
        if former is not None and _shape(former.node) == _shape(new):
            return
        _replace(self._root, name, new)
        self._changes.append(lambda text: text.set((), name, new))

    def put(self, section: str, key: str, fields: Mapping[str, object]) -> None:
        """Set these fields of the entry; its other fields are unchanged."""
        parent = self._section_node(section)
        if parent is None:
            parent = _represented({})
            _replace(self._root, section, parent)
        parent.flow_style = False  # ``workflows: {}`` grows into lines
        entry = next((entry.node for entry in self._entries(parent) if entry.key == key), None)
        is_new = not isinstance(entry, yaml.MappingNode)
        if not isinstance(entry, yaml.MappingNode):
            entry = _represented({})
            _replace(parent, key, entry)
        changed: dict[str, yaml.Node] = {}
        for field, value in fields.items():
            new = _represented(value)
            if not any(
                _key(key_node) == field and _shape(node) == _shape(new)
                for key_node, node in entry.value
            ):
                changed[field] = new
            _replace(entry, field, new)
        if changed or is_new:
            self._changes.append(
                lambda text: _put_into(text, (section, parent), (key, entry), changed)
            )

    def put_value(self, section: str, key: str, value: object) -> None:
        """Set one key of a section; its other keys are unchanged."""
        parent = self._section_node(section)
        if parent is None:
            parent = _represented({})
            _replace(self._root, section, parent)
        parent.flow_style = False
        new = _represented(value)
        _replace(parent, key, new)
        self._changes.append(lambda text: _put_value(text, (section, parent), (key, new)))

    def drop(self, section: str, key: str) -> None:
        """Remove the entry, and any repetition of it."""
        node = self._section_node(section)
        if node is not None and any(_key(pair[0]) == key for pair in node.value):
            node.value = [pair for pair in node.value if _key(pair[0]) != key]
            self._changes.append(lambda text: _drop_from(text, (section, node), key))

    def _section_node(self, name: str) -> Any:
        entry = self.top(name)
        if entry is None or entry.node.tag == "tag:yaml.org,2002:null":
            return None
        if not isinstance(entry.node, yaml.MappingNode):
            raise DamagedError(f"{self._where}:{entry.line}: {name!r} must be a mapping")
        return entry.node

    def _entries(self, node: yaml.MappingNode) -> Iterator[Entry]:
        for key, value in node.value:
            yield Entry(key=_key(key), line=_line(key), node=value)


def _spans(
    mapping: yaml.MappingNode, lines: Sequence[bytes], starts: Sequence[int]
) -> dict[str, Span] | None:
    """Return the bytes of each pair's lines; None if a pair shares a line with another, or a key is
    no text.
    """
    found: dict[str, Span] = {}
    after = 0
    for key, value in mapping.value:
        first, last, column = key.start_mark.line, last_line(value, key), key.start_mark.column
        name = _key(key)
        if (
            not isinstance(name, str)
            or name in found
            or first < after
            or lines[first][:column].strip(b" ")
        ):
            return None
        found[name] = starts[first], starts[last + 1]
        after = last + 1
    return found


def _put_value(
    text: Rewriting, section: tuple[str, yaml.Node], entry: tuple[str, yaml.Node]
) -> None:
    """Change the entry, else the section."""
    try:
        text.set((section[0],), *entry)
    except LookupError:
        text.set((), *section)


def _put_into(
    text: Rewriting,
    section: tuple[str, yaml.Node],
    entry: tuple[str, yaml.Node],
    fields: Mapping[str, yaml.Node],
) -> None:
    """Change as few lines as possible: the fields, else the entry, else the section."""
    try:
        for field, value in fields.items():
            text.set((section[0], entry[0]), field, value)
    except LookupError:
        try:
            text.set((section[0],), *entry)
        except LookupError:
            text.set((), *section)


def _drop_from(text: Rewriting, section: tuple[str, yaml.Node], key: str) -> None:
    try:
        text.drop((section[0],), key)
    except LookupError:
        text.set((), *section)


def _pair_lines(key: str, value: yaml.Node) -> list[str]:
    """Return the lines of a pair without indentation."""
    node = yaml.MappingNode("tag:yaml.org,2002:map", [(_represented(key), value)], flow_style=False)
    return (
        str(yaml.serialize(node, Dumper=DUMPER, allow_unicode=True, width=120))
        .rstrip("\n")
        .split("\n")
    )


def _shape(node: yaml.Node) -> object:
    """Return the meaning of a node, independent of its style."""
    if isinstance(node, yaml.MappingNode):
        return [(_shape(key), _shape(value)) for key, value in node.value]
    if isinstance(node, yaml.SequenceNode):
        return [_shape(item) for item in node.value], "list"
    return node.tag, node.value


def _composed(data: bytes, where: str) -> yaml.Node | None:
    if len(data) > MAX_BYTES:
        raise DamagedError(f"{where}: {len(data):,} bytes; more than {MAX_BYTES:,} are not read")
    try:
        depth = 0
        for event in yaml.parse(data, Loader=_Loader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
                raise DamagedError(
                    f"{where}:{_line(event)}: anchors and aliases (& and *) are not read here; write the value out"
                )
            if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                depth += 1
                if depth > MAX_DEPTH:
                    raise _too_deep(where, _line(event))
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                depth -= 1
        node: yaml.Node | None = yaml.compose(data, Loader=_Loader)
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        if exc.problem == LIBRARY_TOO_DEEP:
            raise _too_deep(where, line) from exc
        raise DamagedError(f"{where}:{line}: not YAML: {exc.problem or exc}") from exc
    except (yaml.YAMLError, ValueError) as exc:
        raise DamagedError(f"{where}: not YAML: {exc}") from exc
    return node


def _too_deep(where: str, line: int) -> DamagedError:
    return DamagedError(f"{where}:{line}: nested deeper than {MAX_DEPTH} levels")


def _constructed(node: yaml.Node) -> object:
    _refuse_repeated_keys(node)
    constructor = yaml.constructor.SafeConstructor()
    try:
        return constructor.construct_document(node)
    except yaml.MarkedYAMLError as exc:
        raise ValueError(str(exc.problem)) from exc
    except (ValueError, TypeError, OverflowError) as exc:
        raise ValueError(f"a value that cannot be read: {exc}") from exc


def _refuse_repeated_keys(node: yaml.Node) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: set[object] = set()
        for key, value in node.value:
            if _key(key) in seen:
                raise ValueError(f"the key {_key(key)!r} is there twice (line {_line(key)})")
            seen.add(_key(key))
            _refuse_repeated_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_repeated_keys(item)


def _represented(value: object) -> Any:
    return yaml.representer.SafeRepresenter(
        default_flow_style=False, sort_keys=False
    ).represent_data(_plain(value))


def _plain(value: object) -> object:
    """Return a value without shared parts, which would be written as anchors, and without read-only
    mappings, which the library does not know.
    """
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def _replace(mapping: yaml.MappingNode, key: str, node: yaml.Node) -> None:
    for index, (key_node, _) in enumerate(mapping.value):
        if _key(key_node) == key:
            mapping.value[index] = (key_node, node)
            return
    mapping.value.append((_represented(key), node))


def _key(node: yaml.Node) -> object:
    """Return the text of a key; a key that is no text never equals a name."""
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.tag == "tag:yaml.org,2002:str" else (node.tag, node.value)
    return (node.tag, _line(node))


def _line(node: yaml.Node | yaml.Event) -> int:
    mark = getattr(node, "start_mark", None)
    return mark.line + 1 if mark else 1
