"""Syntax tree of the sentence grammar, as the parser makes it and as the loader links it.

Every ``at`` is an offset in characters into the text of the file that holds the node;
`SourceText.position` turns it into a line and a column. Nodes compare by identity of content, and
``at`` does not count: two equal phrases of different files are equal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from enum import Enum, StrEnum
from functools import lru_cache

from uncaged_bundles.records import dataclass, field


class Spacing(StrEnum):
    """Rule for separators between two neighbouring parts or words of an alternative."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    NONE = "none"
    AUTO = "auto"

    # That of an enumeration is slow, and searches look up by spacing.
    __hash__ = str.__hash__


class Repeat(StrEnum):
    """How often a group occurs; the value is the mark behind its closing bracket."""

    ONCE = ""
    OPTIONAL = "?"
    ANY = "*"
    SOME = "+"


FREE_TYPES = frozenset({"string", "wildcard", "word"})
"""The names of the free capture; a capture without a type has the first."""
NUMBER_TYPE = "number"


def _offset() -> int:
    """Define the field of a node's offset."""
    return field(default=0, compare=False)


# Parts of an alternative


@dataclass(frozen=True, slots=True)
class Literal:
    """Words of a sentence.

    ``words`` are the texts between two places with space or a comment in the file;
    escapes are resolved, so a word may hold an escaped space, and punctuation. Case is the
    author's. There is at least one word, and none is empty.
    """

    words: tuple[str, ...]
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Capture:
    """``$(variable:type)``: a free capture, a number or an entity; ``optional`` with ``?``.

    ``type`` is the name as the author wrote it: one of `FREE_TYPES`, `NUMBER_TYPE`, the name of an
    entity, or a type that the file imports from a schema.
    """

    variable: str
    type: str = "string"
    optional: bool = False
    at: int = _offset()
    type_at: int = _offset()

    @property
    def free(self) -> bool:
        """Return whether the capture takes any text and the text is its value."""
        return self.type in FREE_TYPES

    @property
    def number(self) -> bool:
        """Return whether the capture takes a number."""
        return self.type == NUMBER_TYPE


@dataclass(frozen=True, slots=True)
class RuleCapture:
    """``$(variable:<rule>)``: the value of a rule; ``optional`` with ``?``.

    ``rule`` is the name without its brackets.
    """

    variable: str
    rule: str
    optional: bool = False
    at: int = _offset()
    rule_at: int = _offset()


@dataclass(frozen=True, slots=True)
class RuleRef:
    """``<rule>``: a rule in place; its value counts only where an alternative has no other."""

    rule: str
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Group:
    """``( … )`` with its repetition; captures inside belong to the alternatives of the group."""

    alternatives: tuple[Alternative, ...]
    repeat: Repeat = Repeat.ONCE
    at: int = _offset()


Part = Literal | Capture | RuleCapture | RuleRef | Group


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to say a rule: its parts in order, and its value.

    As parsed: ``spacing`` is None without an annotation of its own, ``value`` without ``->``.
    As linked: ``spacing`` is always set (its own, else that of the rule or of the alternative
    around its group), and ``value`` is None only where there is no value: an implicit value is a
    `Variable` (the only variable) or a `PartValue` (without variables, the only group or reference,
    or the only part).
    """

    parts: tuple[Part, ...]
    spacing: Spacing | None = None
    value: Expression | None = None
    at: int = _offset()


# Value expressions


class Undefined(Enum):
    """The value of something absent, as in JavaScript; `UNDEFINED` is the only one."""

    UNDEFINED = "undefined"

    def __bool__(self) -> bool:
        return False


UNDEFINED = Undefined.UNDEFINED


@dataclass(frozen=True, slots=True)
class Constant:
    """A text, a number, ``true``, ``false``, ``null`` (None) or ``undefined`` (`UNDEFINED`)."""

    value: object
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Variable:
    """The value of a capture; absent when the capture was optional and not taken."""

    name: str
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class PartValue:
    """The value of the alternative's part at ``index``; only the loader makes it.

    A literal's value is its words joined by one space; a group's or a reference's is the value of
    the alternative that was read.
    """

    index: int
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Spread:
    """``...value`` in an object, a list or a call."""

    value: Expression
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Property:
    """``name: value`` of an object; ``name`` alone is parsed as ``name: name``."""

    name: str
    value: Expression
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class ObjectValue:
    """``{ … }``; a property whose value is absent is left out."""

    entries: tuple[Property | Spread, ...]
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class ArrayValue:
    """``[ … ]``."""

    items: tuple[Expression | Spread, ...]
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Template:
    """A template literal: ``texts`` has one item more than ``values``, which go between."""

    texts: tuple[str, ...]
    values: tuple[Expression, ...]
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Unary:
    """``-``, ``!`` or ``typeof`` before an operand."""

    operator: str
    operand: Expression
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between two operands; ``at`` is the operator's place."""

    operator: str
    left: Expression
    right: Expression
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Ternary:
    """``condition ? then : otherwise``."""

    condition: Expression
    then: Expression
    otherwise: Expression
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Member:
    """``object.name``, or ``object?.name`` when ``optional``; ``at`` is the name's place."""

    object: Expression
    name: str
    optional: bool = False
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Element:
    """``object[index]``, or ``object?.[index]`` when ``optional``."""

    object: Expression
    index: Expression
    optional: bool = False
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class MethodCall:
    """``object.name(…)``, or ``object?.name(…)`` when ``optional``."""

    object: Expression
    name: str
    arguments: tuple[Expression | Spread, ...]
    optional: bool = False
    at: int = _offset()


Expression = (
    Constant
    | Variable
    | PartValue
    | ObjectValue
    | ArrayValue
    | Template
    | Unary
    | Binary
    | Ternary
    | Member
    | Element
    | MethodCall
)


# Files


@dataclass(frozen=True, slots=True)
class Rule:
    """One definition ``export? <name> [spacing=…]? (: types)? = …;`` of a file."""

    name: str
    alternatives: tuple[Alternative, ...]
    spacing: Spacing | None = None
    types: tuple[Name, ...] = ()
    exported: bool = False
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class Name:
    """A name with its place."""

    text: str
    at: int = _offset()


@dataclass(frozen=True, slots=True)
class ImportStatement:
    """One import: ``source`` is None for entities, ``names`` is None for ``*``."""

    names: tuple[Name, ...] | None
    source: str | None
    at: int = _offset()
    source_at: int = _offset()


@dataclass(frozen=True, slots=True)
class SourceText:
    """A file's name and text."""

    name: str
    text: str

    def position(self, at: int) -> tuple[int, int]:
        """Return line and column of an offset, both from 1."""
        starts = _line_starts(self.text)
        line = bisect_right(starts, at)
        return line, at - starts[line - 1] + 1


@lru_cache(maxsize=8)
def _line_starts(text: str) -> list[int]:
    """Return the place of each line's first character."""
    starts = [0]
    place = text.find("\n")
    while place >= 0:
        starts.append(place + 1)
        place = text.find("\n", place + 1)
    return starts


@dataclass(frozen=True, slots=True)
class File:
    """A parsed file: its imports and its rules in the author's order."""

    source: SourceText
    imports: tuple[ImportStatement, ...]
    rules: tuple[Rule, ...]


# Linked rules


@dataclass(frozen=True, slots=True)
class LinkedRule:
    """A rule of one file with the alternatives of all its definitions.

    ``targets`` maps each rule name in the file of this rule to the place of that rule in
    `LinkedRules.rules`; it is shared by all rules of a file.
    """

    name: str
    alternatives: tuple[Alternative, ...]
    targets: Mapping[str, int]
    source: SourceText


@dataclass(frozen=True, slots=True)
class LinkedRules:
    """Checked rules of a grammar: no name is missing, no rule can loop without taking text.

    ``start`` is the place of ``<Start>`` in ``rules``. Rules that the start cannot reach are left
    out. The built-in phrase sets are ordinary rules here, one alternative for each phrase, longest
    first. ``entities`` are the capture types that are neither free nor `NUMBER_TYPE`.
    """

    rules: tuple[LinkedRule, ...]
    start: int
    entities: frozenset[str]
