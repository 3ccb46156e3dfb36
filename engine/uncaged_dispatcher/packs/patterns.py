"""Rules of a flow: one rule of the sentence grammar for each of its patterns, as text.

A rule can only call the flow whose pattern it is made of: a pattern with a value, a second rule or
an import is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from uncaged_bundles.contract import FOR_PEOPLE
from uncaged_bundles.records import dataclass

from ..grammar.problems import GrammarError, Problem
from ..grammar.syntax import FREE_TYPES, NUMBER_TYPE

_CAPTURE = re.compile(r"\$\(\s*([A-Za-z_][A-Za-z0-9_-]*)\s*(?::\s*([A-Za-z]+)\s*)?\)")
_SKIPPED = re.compile(r"\\.|//[^\n]*|/\*.*?\*/|\$\([^()]*\)", re.DOTALL)
_PATH = "path"
"""A kind of capture in recipes: free text that names a file."""
_FREE = frozenset({*FREE_TYPES, NUMBER_TYPE, _PATH})
MAX_EXPANDED = 64
"""Alternatives that groups with captures may make of one."""
_HYPHEN = re.compile(r"(?<=\w)-(?=\w)")
_ENDS_RULE = re.compile(r"->|;")


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternRule:
    """One pattern of a flow as a grammar. name: of its rule; alias: a person added the pattern;
    imports: the line that names its types; ways: its alternatives with the JSON of their params.
    """

    name: str
    flow: str
    pattern: str
    alias: bool
    imports: str
    ways: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The grammar, whose value is a call of the flow."""
        return self._grammar(self.name, f"flow: {json.dumps(self.flow)}, ")

    @property
    def common_text(self) -> str:
        """The grammar without the names of rule and flow: that of all flows with this pattern."""
        return self._grammar("Pattern", "")

    def _grammar(self, name: str, flow: str) -> str:
        ways = "\n  | ".join(f"{way} -> {{ {flow}params: {params} }}" for way, params in self.ways)
        return f"{self.imports}<Start> = <{name}>;\n<{name}> [spacing=auto] = {ways};\n"


def pattern_rules(flow: str, descriptor: Mapping[str, object]) -> tuple[PatternRule, ...]:
    """Return the rules of a flow's patterns; a flow without patterns is read by its name.

    A pattern that is no rule is found later, by `check_pattern`.
    """
    aliases = _texts(descriptor.get("aliases"))
    patterns = _texts(descriptor.get("patterns"))
    parameters = _properties(descriptor)
    if not patterns:
        patterns = [default_pattern(flow, descriptor)]
    return tuple(
        _rule(flow, number, pattern, parameters, alias=pattern in aliases)
        for number, pattern in enumerate(dict.fromkeys(patterns), 1)
    )


def pattern_rule(flow: str, pattern: str, parameters: Iterable[str]) -> PatternRule:
    """Return the rule of one pattern of a flow with these parameters."""
    return _rule(flow, 1, pattern, parameters, alias=False)


def default_pattern(flow: str, descriptor: Mapping[str, object]) -> str:
    """Return the pattern of a flow that declares none: a verb, its name, and its parameters."""
    required = descriptor.get("parameters", {})
    names = required.get("required", ()) if isinstance(required, Mapping) else ()
    words = flow.replace("-", " ")
    captures = [
        f"$({name}{_kind(part)}){'' if name in names else '?'}"
        for name, part in _properties(descriptor).items()
        if not (isinstance(part, Mapping) and part.get(FOR_PEOPLE))
    ]
    return " ".join(["(run | execute | apply)", words, *captures])


def check_pattern(pattern: str) -> None:
    """Refuse a pattern that holds more than the parts of one rule.

    Raises:
        GrammarError: it has a value, or ends the rule to begin another.
    """
    if _ENDS_RULE.search(_SKIPPED.sub("", pattern)):
        raise GrammarError(
            [Problem("pattern", 1, 1, "a pattern has parts only, no value and no second rule")]
        )


def rule_name(flow: str, number: int) -> str:
    """Return the name of a rule: ``listFiles1`` for the first pattern of ``list-files``."""
    first, *rest = flow.split("-")
    return f"{first}{''.join(part.capitalize() for part in rest)}{number}"


def _rule(
    flow: str, number: int, pattern: str, parameters: Iterable[str], *, alias: bool
) -> PatternRule:
    declared = {parameter.lower(): parameter for parameter in parameters}
    types = {found[2] for found in _CAPTURE.finditer(pattern) if found[2]} - _FREE
    return PatternRule(
        name=rule_name(flow, number),
        flow=flow,
        pattern=pattern,
        alias=alias,
        imports=f"import {{ {', '.join(sorted(types))} }};\n" if types else "",
        ways=tuple(
            (_normal(way), _params(way, declared))
            for alternative in alternatives(pattern)
            for way in expanded(alternative)
        ),
    )


def alternatives(pattern: str) -> Iterator[str]:
    """Yield the alternatives of a pattern's top level."""
    depth = start = place = 0
    while place < len(pattern):
        skipped = _SKIPPED.match(pattern, place)
        if skipped is not None:
            place = skipped.end()
            continue
        depth += {"(": 1, ")": -1}.get(pattern[place], 0)
        if pattern[place] == "|" and depth == 0:
            yield pattern[start:place].strip()
            start = place + 1
        place += 1
    yield pattern[start:].strip()


def expanded(way: str) -> list[str]:
    """Return the alternatives of an alternative without groups that hold captures: a capture in a
    group belongs to the group, but in a pattern it is a parameter.

    ``a (in $(x))? b`` is ``a b`` and ``a in $(x) b``. Too many alternatives are not expanded.
    """
    found, pending = [], [way]
    while pending:
        text = pending.pop(0)
        group = _group_with_capture(text)
        if group is None:
            found.append(text)
            continue
        start, end = group
        after = text[end + 1 :]
        parts = list(alternatives(text[start + 1 : end]))
        if after.startswith("?"):
            parts, after = [*parts, ""], after[1:]
        pending[:0] = [f"{text[:start]}{part}{after}" for part in parts]
        if len(found) + len(pending) > MAX_EXPANDED:
            return [way]
    return [" ".join(text.split()) if len(found) > 1 else text for text in found]


def _group_with_capture(text: str) -> tuple[int, int] | None:
    """Return the places of the brackets of the first group that holds a capture and is not
    repeated.
    """
    opened: list[int] = []
    place = 0
    while place < len(text):
        skipped = _SKIPPED.match(text, place)
        if skipped is not None:
            place = skipped.end()
            continue
        if text[place] == "(":
            opened.append(place)
        elif text[place] == ")" and opened:
            start = opened.pop()
            is_repeated = text[place + 1 : place + 2] in ("*", "+")
            if not opened and not is_repeated and _CAPTURE.search(text, start + 1, place):
                return start, place
        place += 1
    return None


def _normal(way: str) -> str:
    """Return an alternative with names of variables and types that the grammar knows, and hyphens
    inside words escaped.
    """

    def capture(found: re.Match[str]) -> str:
        kind = found[2]
        kind = "wildcard" if kind == _PATH else kind
        return f"$({_variable(found[1])}{f':{kind}' if kind else ''})"

    pieces, place = [], 0
    for skipped in _SKIPPED.finditer(way):
        pieces += [_HYPHEN.sub(r"\\-", way[place : skipped.start()]), skipped[0]]
        place = skipped.end()
    pieces.append(_HYPHEN.sub(r"\\-", way[place:]))
    return _CAPTURE.sub(capture, "".join(pieces))


def _params(way: str, declared: Mapping[str, str]) -> str:
    """Return the object of an alternative's captures; a parameter that is not declared keeps its
    name, so that the flow refuses it.
    """
    names = dict.fromkeys(found[1] for found in _CAPTURE.finditer(way))
    fields = [f"{json.dumps(declared.get(n.lower(), n))}: {_variable(n)}" for n in names]
    return f"{{ {', '.join(fields)} }}" if fields else "{}"


def _variable(name: str) -> str:
    return name.replace("-", "_")


def _kind(part: object) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return ":number" if kind in ("number", "integer") else ""


def _properties(descriptor: Mapping[str, object]) -> Mapping[str, object]:
    schema = descriptor.get("parameters")
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
