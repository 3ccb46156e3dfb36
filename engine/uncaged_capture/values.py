"""Values of a prompt that recur in what was done, as parameters typed by their form, and secrets.

A value is a whole word, path, address or phrase of the prompt, never a part of another word.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal
from urllib.parse import urlsplit

from uncaged_bundles.records import dataclass

__all__ = ["Kind", "Parameter", "Span", "kind_of", "occurrences", "parameters_of", "secrets_in"]

Kind = Literal["integer", "number", "path", "url", "date", "text"]

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,14})")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d*[1-9]")
"""A number whose text stays the same when it is read and written again."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PATH = re.compile(
    r"(?:~|\.{1,2})?/[^\s]*|[\w@+-][\w@+./-]*/[\w@+./-]*|[\w@+-][\w@+.-]*\.[A-Za-z]\w{0,9}"
)
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_NAMED = re.compile(r"secret:(?P<name>[A-Za-z_][\w-]*)")
_SECRET = re.compile(
    r"""(?x)
    (?<![\w-])(?P<token>
      sk-[\w-]{16,} | gh[pousr]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,} | xox[abprs]-[\w-]{10,}
      | AKIA[0-9A-Z]{16} | AIza[\w-]{30,} | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*
    )
    | (?i:bearer|token|basic)[ ](?P<bearer>[\w.~+/=-]{12,})
    | ://[^/\s:@]+:(?P<login>[^/\s:@$]{3,})@
    | (?!secret:[A-Za-z_])(?i:pass(?:word|wd)?|secret|token|api_?key|access_?key)["']?\s*[:=]\s*["']?(?P<value>[^\s"'&;,]{6,})
    """
)
_SUFFIX = re.compile(
    r"\.(?:py|js|mjs|ts|tsx|jsx|txt|md|rst|csv|tsv|jsonl?|ya?ml|toml|ini|cfg|html?|css|sh|log|xml|rs|go|c|h|java|rb|php|sql"
    r"|pdf|png|jpe?g|svg|zip|tar|gz|tgz|bak|dat)(?![\w-])"
)
"""End of a name of a file, whose stem is a word of its own."""
_WORD = re.compile(r"\S+")
_EDGE = " \t\r\n,;:!?()[]{}<>\"'`„“”‘’«»"
_QUOTED = re.compile(r"\"([^\"\n]+)\"|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)|“([^”\n]+)”|«([^»\n]+)»")
_PHRASE_WORDS = 12
_NO_VALUE_WORDS = """
    a about add all also an and any append are as at be by can change contains contain content contents copy count create
    current data date delete dir directory do document does each every execute export fetch file files find first folder for from get give
    has have how i if in input into is it its last line lines list make many me most move my name named names new not number
    of on one only or out output path please print project put read remove rename replace report request result run save
    script search send set show size sort start sum tell text than that the their them then there these this to top total
    up update url use user value values what where which who whole with within word words write you your
    """
_NO_VALUES = frozenset(_NO_VALUE_WORDS.split())
"""Words that name what a task is about or what is to be done, and are no values of it."""
_NAMES: Mapping[Kind, str] = {
    "integer": "number",
    "number": "number",
    "path": "path",
    "url": "url",
    "date": "date",
    "text": "text",
}
_DIRECTIONS = {"to": "target", "into": "target", "from": "source"}
_NOUN = re.compile(r"([A-Za-z][A-Za-z_]{1,30})\W*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A value that a caller of the flow may choose. secret: the name of the secret; "" if it is
    none.
    """

    name: str
    value: str
    type: Kind
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A passage of a text that is the value of a parameter."""

    start: int
    end: int
    parameter: Parameter


def parameters_of(
    texts: Iterable[str], prompt: str, chosen: Mapping[str, str] | None = None
) -> tuple[Parameter, ...]:
    """Return the parameters, those with the longest values first.

    Args:
        texts: of the kept calls, without names of programs. chosen: values by name, instead of
            those that are found in the prompt; secrets are found in any case.
    """
    among = list(texts)
    secrets = list(_secret_parameters(among))
    hidden = [one.value for one in secrets]
    if chosen:
        plain = [
            Parameter(name=name, value=value, type=kind_of(value))
            for name, value in chosen.items()
            if value not in hidden
            and any(next(occurrences(value, text), None) is not None for text in among)
        ]
    else:
        plain = list(_plain_parameters(among, prompt, hidden))
    return tuple(sorted((*secrets, *plain), key=lambda one: (-len(one.value), one.name)))


def kind_of(value: str) -> Kind:
    """Return the type of a value by its form."""
    if _INTEGER.fullmatch(value):
        return "integer"
    if _NUMBER.fullmatch(value):
        return "number"
    if _DATE.fullmatch(value):
        try:
            datetime.date.fromisoformat(value)
        except ValueError:
            return "text"
        return "date"
    if is_url(value):
        return "url"
    if _PATH.fullmatch(value) and not _MAIL.fullmatch(value):
        return "path"
    return "text"


def is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in ("http", "https", "ftp") and bool(parts.netloc) and " " not in value


def occurrences(value: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where a value is in a text as a whole word or path, from left to right."""
    if not value:
        return
    number = value.isdecimal()
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if _begins(text, at, value, number=number) and _ends(text, end, value):
            yield at, end
            at = text.find(value, end)
        else:
            at = text.find(value, at + 1)


def spans(text: str, parameters: Sequence[Parameter]) -> list[Span]:
    """Return where the values of parameters are in a text, from left to right; where two
    overlap, the longer one counts.
    """
    found: list[Span] = []
    for parameter in sorted(parameters, key=lambda one: -len(one.value)):
        for start, end in occurrences(parameter.value, text):
            if not any(start < span.end and span.start < end for span in found):
                found.append(Span(start=start, end=end, parameter=parameter))
    return sorted(found, key=lambda span: span.start)


def secrets_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the secrets in a text, by their form: name and value. Those that the trace has as
    `secret:NAME` have that text as value.
    """
    for found in _NAMED.finditer(text):
        yield found["name"], found[0]
    for found in _SECRET.finditer(text):
        value = next(one for one in found.groupdict().values() if one)
        if not value.startswith(("secret:", "$")):
            name = "PASSWORD" if found["login"] or found[0][:4].lower() == "pass" else "TOKEN"
            yield name, value


def _secret_parameters(texts: Sequence[str]) -> Iterator[Parameter]:
    names: dict[str, str] = {}
    for text in texts:
        for name, value in secrets_in(text):
            if value not in names:
                names[value] = _free(name, names.values())
                yield Parameter(
                    name=names[value].lower(), value=value, type="text", secret=names[value]
                )


def _plain_parameters(
    texts: Sequence[str], prompt: str, hidden: Sequence[str]
) -> Iterator[Parameter]:
    used: list[tuple[int, int]] = []
    chosen: list[tuple[int, int]] = []
    for start, end in sorted(_candidates(prompt), key=lambda one: (one[0] - one[1], one[0])):
        value = prompt[start:end]
        if any(start < other_end and other < end for other, other_end in used):
            continue
        if any(value in secret or secret in value for secret in hidden):
            continue
        if any(next(occurrences(value, text), None) is not None for text in texts):
            used += [(start, end), *occurrences(value, prompt)]
            chosen.append((start, end))
    names: list[str] = []
    for start, end in sorted(chosen):
        kind = kind_of(prompt[start:end])
        names.append(_free(_name_before(prompt[:start], kind), names))
        yield Parameter(name=names[-1], value=prompt[start:end], type=kind)


def _candidates(prompt: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of a prompt that may be values: what is quoted, and runs of words without
    words at the ends that name no value.
    """
    seen = set()
    for found in _QUOTED.finditer(prompt):
        span = found.span(found.lastindex or 0)
        seen.add(span)
        yield span
    words = list(_WORD.finditer(prompt))
    for first in range(len(words)):
        for last in range(first, min(first + _PHRASE_WORDS, len(words))):
            start, end = words[first].start(), words[last].end()
            while start < end and prompt[start] in _EDGE:
                start += 1
            while end > start and (prompt[end - 1] in _EDGE or prompt[end - 1] == "."):
                end -= 1
            if start < end and (start, end) not in seen and _may_be_value(prompt[start:end]):
                seen.add((start, end))
                yield start, end


def _may_be_value(text: str) -> bool:
    words = text.split()
    if any(end.strip(_EDGE + ".").lower() in _NO_VALUES | _NOUNS for end in (words[0], words[-1])):
        return False
    return any(map(str.isalnum, text)) and (len(text) > 1 or text.isdecimal())


def _begins(text: str, at: int, value: str, *, number: bool) -> bool:
    before = text[at - 1] if at else " "
    if not (value[0].isalnum() or value[0] == "_"):
        return not (value[0] in "/.~" and (before.isalnum() or before in "_./~-"))
    if number and re.search(r"(?:^|[\s'\"])-[A-Za-z]?$", text[:at]):
        return True  # an option, as in `head -3` and `head -n3`
    if before.isalnum() and text[at - 2 : at - 1] == "\\":
        return not number  # a mark of a pattern, as in `\bword\b`
    if before == "." and not number:
        return not text[at - 2 : at - 1].isalnum()  # as in `*.txt` and `from .name import`
    return not (before.isalnum() or before in "_.-@$%\\")


def _ends(text: str, end: int, value: str) -> bool:
    if not (value[-1].isalnum() or value[-1] == "_"):
        return True
    after = text[end] if end < len(text) else " "
    if after == ".":
        is_stem = not value.isdecimal() and _SUFFIX.match(text, end) is not None
        return is_stem or not text[end + 1 : end + 2].isalnum()
    return not (after.isalnum() or after in "_-@")


def _name_before(text: str, kind: Kind) -> str:
    """Return a parameter's name: the noun before the value, or the kind of the value."""
    found = _NOUN.search(text[-60:])
    word = found[1].lower() if found else ""
    if kind in ("path", "url") and word in _DIRECTIONS:
        return _DIRECTIONS[word]
    useful = word in _NOUNS and not (kind in ("integer", "number") and word in ("file", "path"))
    return word if useful else _NAMES[kind]


_NOUN_WORDS = """
    author branch city class code column comment country count customer date day dir directory email field file filter folder
    format function host id key label language level limit line message method month name number order owner page password
    path pattern port prefix price product project query repository role size status suffix tag target team text ticket time
    title topic type url user username value variable version word year
    """
_NOUNS = frozenset(_NOUN_WORDS.split())


def _free(name: str, used: Iterable[str]) -> str:
    others, number, free = {one.lower() for one in used}, 1, name
    while free.lower() in others:
        number += 1
        free = f"{name}{number}"
    return free
