"""Shell text in which values are replaced by variables.

A variable is always quoted, so its value is one word or a part of one, never syntax. In the text of
another program (`sed`, `awk`, `python3 -c`, a file of code) a value may be replaced only if it is a
number, or within a literal; the caller must then restrict its characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from uncaged_bundles.builders.inference.bash import node_text, nodes, unquoted
from uncaged_bundles.records import dataclass, field

from ..values import Kind, Parameter, Span, occurrences, spans
from .pieces import Piece, descendants, pieces_of

__all__ = [
    "Replacements",
    "ShellVariable",
    "is_code_file",
    "literal_texts",
    "opened_documents",
    "quoted",
    "rewrite_command",
    "rewrite_text",
]

_CODE_FILES = re.compile(
    r"(?:.*/)?(?:Makefile|Dockerfile|.*\.(?:py|sh|bash|js|mjs|ts|rb|pl|php|lua|sql|awk|sed|jq|mk|c|h|cc|cpp|rs|go|java|ps1))"
)
_WITH_SUBCOMMANDS = frozenset(
    {"git", "npm", "pip", "docker", "cargo", "go", "apt", "kubectl", "systemctl"}
)
_DATA_FILES = re.compile(r".*\.(?:json|jsonl|ya?ml|toml|ini|cfg|conf|env|xml|html?|svg|csv|tsv)")
"""Files whose form a value with quotes, line feeds or other marks would change."""
_JSON = re.compile(r"\s*[\[{].*\".*[\]}]\s*", re.DOTALL)
_EMPTY_QUOTES = re.compile(r"''(?=\"\$(?:PARAM_|result))")
_NUMBERS: tuple[Kind, ...] = ("integer", "number")
_GLOB = re.compile(r"[*?\[\]{}]")
_NAME = re.compile(r"[A-Za-z]\w*")
_PLAIN = re.compile(r"[\w .,@:+%/-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellVariable:
    """A shell variable that has a parameter's value, or a text of an earlier result. is_list: it is
    an array, whose elements are words of their own.
    """

    name: str
    value: str
    type: Kind
    is_list: bool = False

    def parameter(self) -> Parameter:
        return Parameter(name=self.name, value=self.value, type=self.type)


@dataclass(slots=True, kw_only=True)
class Replacements:
    """Replaced values by the names of their variables.

    used: those that replaced a value. named: those in names of a file of code. literal: those
    within a literal of another program, or in data, whose values must be plain. leading: those that
    begin a word of a command, whose values must not look like options. stuck: where a value could
    not be replaced, in words.
    """

    used: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    literal: set[str] = field(default_factory=set)
    leading: set[str] = field(default_factory=set)
    stuck: dict[str, str] = field(default_factory=dict)


def rewrite_command(text: str, variables: Sequence[ShellVariable], found: Replacements) -> str:
    """Return a command with the values of variables replaced."""
    text = _with_lists(text, variables, found)
    variables = [variable for variable in variables if not variable.is_list]
    data = text.encode()
    pieces = sorted(pieces_of(text), key=lambda piece: piece.start)
    rebuilt, at = bytearray(), 0
    for piece in pieces:
        if piece.start < at:
            continue
        rebuilt += data[at : piece.start]
        rebuilt += _rewritten(
            data[piece.start : piece.end].decode(), piece, variables, found
        ).encode()
        at = piece.end
    return _tidy((bytes(rebuilt) + data[at:]).decode())


def _with_lists(text: str, variables: Sequence[ShellVariable], found: Replacements) -> str:
    """Return a command in which runs of words are replaced by arrays."""
    for variable in (one for one in variables if one.is_list):
        reference = f'"${{{variable.name}[@]}}"'
        for start, end in reversed(list(occurrences(variable.value, text))):
            changed = text[:start] + reference + text[end:]
            words = [node_text(node) for node in nodes(changed) if node.type == "string"]
            if reference in words:
                text = changed
                found.used.add(variable.name)
            else:
                found.stuck[variable.name] = f"{variable.value!r} is a part of another word"
    return text


def literal_texts(text: str) -> list[str]:
    """Return the texts of a command in which values may be: neither names of programs, nor those of
    subcommands.
    """
    data = text.encode()
    hidden = {
        arguments[0].start_byte
        for node in nodes(text)
        if node.type == "command"
        and (name := node.child_by_field_name("name")) is not None
        and unquoted(name) in _WITH_SUBCOMMANDS
        and (arguments := node.children_by_field_name("argument"))
    }
    return [
        data[piece.start : piece.end].decode()
        for piece in pieces_of(text)
        if piece.start not in hidden
    ]


def rewrite_text(
    text: str, variables: Sequence[ShellVariable], found: Replacements, *, path: str = ""
) -> str:
    """Return a text as one quoted word of a command, with the values of variables replaced.

    Args:
        path: of the file that the text is for; that of a program makes it code.
    """
    code = path if is_code_file(path) else ""
    inner = text.replace("'", "'\\''")
    is_data = _DATA_FILES.fullmatch(path) is not None
    piece = Piece(start=0, end=0, form="single", code=code, is_data=is_data)
    return _tidy("'" + _rewritten(inner, piece, variables, found) + "'")


def quoted(text: str) -> str:
    """Return a text as one word of a shell command."""
    return text if re.fullmatch(r"[\w@%+=:,./-]+", text) else "'" + text.replace("'", "'\\''") + "'"


def _tidy(text: str) -> str:
    """Return a command without the empty quotes beside variables."""
    return re.sub(r"(\"\$(?:PARAM_|result)\w*\")''", r"\1", _EMPTY_QUOTES.sub("", text))


def is_code_file(path: str) -> bool:
    return _CODE_FILES.fullmatch(path) is not None


def _rewritten(
    text: str, piece: Piece, variables: Sequence[ShellVariable], found: Replacements
) -> str:
    by_name = {variable.name: variable for variable in variables}
    rebuilt, at = "", 0
    parameters = [variable.parameter() for variable in variables]
    for span in _spans(text, parameters, piece):
        variable = by_name[span.parameter.name]
        problem = _problem(text, span.start, variable, piece)
        if problem:
            found.stuck.setdefault(variable.name, problem)
            continue
        found.used.add(variable.name)
        is_data = piece.is_data or _JSON.fullmatch(text) is not None
        if (piece.code or is_data) and variable.type not in _NUMBERS:
            found.literal.add(variable.name)
        if is_code_file(piece.code) and not _in_literal(text, span.start, piece.code):
            found.named.add(variable.name)
        if piece.leading and not text[: span.start].strip("'\""):
            found.leading.add(variable.name)
        rebuilt += text[at : span.start] + _reference(variable, piece.form)
        at = span.end
    return rebuilt + text[at:]


def _spans(text: str, parameters: Sequence[Parameter], piece: Piece) -> list[Span]:
    """Return where values are in a piece: also as the number of a field of awk (`$3`) or of a line
    of sed (`3p`), and within braces (`{1..3}`).
    """
    found = spans(text, parameters)
    pattern = ""
    if piece.code.endswith("awk"):
        pattern = r"(?<=\$){}(?!\w)"
    elif piece.code == "sed":
        pattern = r"(?<![\w.$]){}(?=[pdq](?!\w))"
    elif piece.form == "fixed":
        pattern = r"(?<![\w]){}(?!\w)"
    for parameter in parameters if pattern else ():
        if parameter.type in _NUMBERS:
            for match in re.finditer(pattern.format(re.escape(parameter.value)), text):
                span = Span(start=match.start(), end=match.end(), parameter=parameter)
                if not any(span.start < one.end and one.start < span.end for one in found):
                    found.append(span)
    return sorted(found, key=lambda span: span.start)


def _reference(variable: ShellVariable, form: str) -> str:
    name = variable.name
    match form:
        case "bare":
            return f'"${name}"'
        case "double" | "document":
            return f"${{{name}}}"
        case "arithmetic":
            return name
        case _:
            return f"'\"${name}\"'"


def _problem(text: str, at: int, variable: ShellVariable, piece: Piece) -> str:
    """Return why a value cannot be replaced; "" if it can."""
    number = variable.type in _NUMBERS
    if piece.form == "fixed":
        return f"{variable.value!r} is a part of the command's syntax"
    if piece.form == "arithmetic" and variable.type != "integer":
        return f"{variable.value!r} is a part of a calculation"
    if piece.form == "bare" and _GLOB.search(variable.value):
        return f"the shell replaces {variable.value!r} by names of files"
    if (piece.is_data or _JSON.fullmatch(text)) and not (
        number or _PLAIN.fullmatch(variable.value)
    ):
        return f"{variable.value!r} has marks that mean something in data"
    if piece.code and not number and not _may_be_in_code(text, at, variable.value, piece.code):
        return f"{variable.value!r} is a part of the code of {piece.code}"
    return ""


def _may_be_in_code(text: str, at: int, value: str, code: str) -> bool:
    """Tell whether a plain value may be at a place of code: within a literal, or as a name in a
    file of code.
    """
    if is_code_file(code) and _NAME.fullmatch(value):
        return True
    return _PLAIN.fullmatch(value) is not None and _in_literal(text, at, code)


def _in_literal(text: str, at: int, code: str) -> bool:
    """Tell whether a place of a program's code is within quotes, or a pattern of sed or awk."""
    before = text[:at].replace("'\\''", "'")
    if code == "sed":
        return True
    if code.endswith("awk") and before.rfind("/") > max(before.rfind('"'), before.rfind("}")):
        return before.count("/") % 2 == 1
    line = before.rpartition("\n")[2]
    return any(len(re.findall(rf"(?<!\\){mark}", line)) % 2 == 1 for mark in "\"'`")


def opened_documents(text: str) -> str:
    """Return a command whose quoted here documents are unquoted, with their text escaped, so that
    variables can be put into them.
    """
    data = text.encode()
    changes: list[tuple[int, int, bytes]] = []
    for node in (next(nodes(text)), *descendants(next(nodes(text)))):
        if node.type != "heredoc_redirect":
            continue
        parts = {child.type: child for child in node.children}
        start, body = parts.get("heredoc_start"), parts.get("heredoc_body")
        if start is None or body is None or node_text(start)[:1] not in ("'", '"'):
            continue
        changes.append((start.start_byte, start.end_byte, unquoted(start).encode()))
        escaped = re.sub(r"[\\$`]", r"\\\g<0>", node_text(body))
        changes.append((body.start_byte, body.end_byte, escaped.encode()))
    for begin, end, new in sorted(changes, reverse=True):
        data = data[:begin] + new + data[end:]
    return data.decode()
