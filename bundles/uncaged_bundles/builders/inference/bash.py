"""Inference for bash: the parameters that a script reads (``getopts``, ``$1``, ``$PARAM_NAME``) and
the programs that it starts.

The syntax tree is tree-sitter's; a script with syntax errors gives what can be recognised of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from .guess import Guess, kind_of

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_BUILTIN_WORDS = """
    alias bg bind break builtin caller case cd command compgen complete continue coproc declare dirs disown do done echo elif else enable
    esac eval exec exit export false fc fg fi for function getopts hash help history if in jobs kill let local logout mapfile popd printf
    pushd pwd read readarray readonly return select set shift shopt source suspend test then time times trap true type typeset ulimit umask
    unalias unset until wait while . : [ [[ ]] ] { } !
"""
BUILTINS = frozenset(_BUILTIN_WORDS.split())
CARRIERS = frozenset(
    {
        "sudo",
        "env",
        "nohup",
        "nice",
        "xargs",
        "command",
        "exec",
        "time",
        "timeout",
        "stdbuf",
        "builtin",
    }
)
"""Commands whose first plain argument is the name of another command."""
SHELLS = frozenset({"bash", "sh", "dash"})
FIND_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_NAME = re.compile(r"[A-Za-z0-9_./+-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_OPTIONAL_SIGNS = (":-", "-", ":=", "=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expansion:
    """One ``$name`` or ``${name:-default}``. variable: the one that it is assigned to, if it is the
    whole value.
    """

    name: str
    sign: str
    default: str
    variable: str


def parameters(text: str) -> list[Guess]:
    """Return what the script seems to take: variables, options, then places."""
    found: dict[str, Guess] = {}
    outside = list(_expansions(text, in_functions=False))
    for expansion in _expansions(text, in_functions=True):
        if expansion.name.startswith("PARAM_"):
            name = expansion.name.removeprefix("PARAM_").lower()
            if name not in found or found[name].default is None:
                found[name] = _guess(name, expansion)
    for guess in _options(text):
        found[guess.name] = guess
    if not any(guess.flag for guess in found.values()):
        places: dict[int, Guess] = {}
        # an assignment names a place best
        for expansion in sorted(outside, key=lambda one: not one.variable):
            if expansion.name.isdecimal() and (place := int(expansion.name)) > 0:
                places.setdefault(
                    place,
                    _guess(expansion.variable.lower() or f"argument{place}", expansion, place),
                )
        # a place between two that are read has to be filled, too
        for place in range(1, max(places, default=0) + 1):
            guess = places.get(place) or Guess(name=f"argument{place}", required=True, place=place)
            found.setdefault(guess.name, guess)
    return list(found.values())


def reads_all_arguments(text: str) -> bool:
    """Return whether the script takes its arguments as a list: ``$@``, ``$*`` or ``shift``, outside
    its functions.
    """
    if any(expansion.name in ("@", "*") for expansion in _expansions(text, in_functions=False)):
        return True
    return any(name == "shift" for name, _ in _commands(text, in_functions=False))


def commands(text: str) -> set[str]:
    """Return the programs that the script seems to start; its own functions and bash's own commands
    are none.
    """
    defined = (
        node.child_by_field_name("name")
        for node in _nodes(text)
        if node.type == "function_definition"
    )
    functions = {_text(node) for node in defined if node is not None}
    started = {
        program for name, arguments in _commands(text) for program in _started(name, arguments)
    }
    return started - BUILTINS - functions


def _started(name: str, arguments: Sequence[str]) -> Iterator[str]:
    """Yield a command's own name and those of the commands that it starts."""
    while True:
        if not _NAME.fullmatch(name) or name[0].isdigit() or name.startswith(("-", "+")):
            return
        yield name.rpartition("/")[2] if name.startswith("/") else name
        for action, started in pairwise(arguments):
            if name == "find" and action in FIND_ACTIONS and _NAME.fullmatch(started):
                yield from _started(started, ())
        if name not in CARRIERS:
            return
        plain = next((n for n, word in enumerate(arguments) if not _is_option(word)), None)
        if plain is None:
            return
        name, arguments = arguments[plain], arguments[plain + 1 :]


def _is_option(word: str) -> bool:
    return (
        word.startswith("-")
        or word[:1].isdigit()
        or word == "{}"
        or _ASSIGNMENT.match(word) is not None
    )


def _guess(name: str, expansion: Expansion, place: int | None = None) -> Guess:
    optional = expansion.sign in _OPTIONAL_SIGNS
    default: object = None
    if optional and "$" not in expansion.default:
        word = expansion.default.strip("\"'")
        default = (float(word) if "." in word else int(word)) if _NUMBER.fullmatch(word) else word
        default = {"true": True, "false": False}.get(word, default)
        if default == "" and place is None:
            default = None
    return Guess(
        name=name, kind=kind_of(name, default), required=not optional, default=default, place=place
    )


def _options(text: str) -> Iterator[Guess]:
    """Yield the options of ``getopts``, named after the variable that each one's branch sets
    first.
    """
    named: dict[str, str] = {}
    for node in _nodes(text):
        value = node.child_by_field_name("value") if node.type == "case_item" else None
        variable = (
            next((child for child in _below([node]) if child.type == "variable_assignment"), None)
            if value
            else None
        )
        if value is not None and variable is not None:
            named.setdefault(_text(value), _text(variable).partition("=")[0].lower())
    for name, arguments in _commands(text):
        if name == "getopts" and arguments:
            for letter, colon in re.findall(r"([A-Za-z0-9])(:?)", arguments[0].lstrip(":")):
                option = named.get(letter, letter)
                yield Guess(
                    name=option,
                    kind=kind_of(option) if colon else "boolean",
                    flag=f"-{letter}",
                    switch=not colon,
                )


def _expansions(text: str, *, in_functions: bool) -> Iterator[Expansion]:
    for node in _nodes(text, in_functions=in_functions):
        if node.type not in ("simple_expansion", "expansion"):
            continue
        place = next(
            (n for n, child in enumerate(node.children) if child.type.endswith("variable_name")),
            None,
        )
        if place is None:
            continue
        rest = node.children[place + 1 :]
        sign = _text(rest[0]) if rest and rest[0].type != "}" else ""
        default = b"".join(child.text or b"" for child in rest[1:] if child.type != "}").decode()
        yield Expansion(
            name=_text(node.children[place]), sign=sign, default=default, variable=_assigned(node)
        )


def _assigned(node: Node) -> str:
    """Return the variable whose whole value *node* is, perhaps in quotes."""
    parent = node.parent
    if parent is not None and parent.type == "string" and parent.named_child_count == 1:
        parent = parent.parent
    if parent is None or parent.type != "variable_assignment":
        return ""
    name = parent.child_by_field_name("name")
    return "" if name is None else _text(name)


def _commands(text: str, *, in_functions: bool = True) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each simple command's name and its arguments, without their quotes."""
    for node in _nodes(text, in_functions=in_functions):
        name = node.child_by_field_name("name") if node.type == "command" else None
        if name is not None:
            yield _plain(name), tuple(map(_plain, node.children_by_field_name("argument")))


def _nodes(text: str, *, in_functions: bool = True) -> Iterator[Node]:
    """Yield the nodes of a script in order, those of scripts inside it included: ``sh -c '…'`` and
    a shell's here document.
    """
    left_out = {"heredoc_body"} if in_functions else {"heredoc_body", "function_definition"}
    pending = [text]
    while pending:
        root = _parser().parse(pending.pop().encode()).root_node
        for node in _below([root], into=lambda node: node.type not in left_out):
            yield node
            pending.extend(_inner_scripts(node))


def _inner_scripts(node: Node) -> Iterator[str]:
    """Yield the scripts that a node holds as text."""
    match node.type:
        case "command":
            words = [_plain(child) for child in node.children]
            if words and words[0].rpartition("/")[2] in SHELLS and "-c" in words[:-1]:
                yield words[words.index("-c") + 1]
        case "redirected_statement":
            command = node.child_by_field_name("body")
            name = (
                command.child_by_field_name("name")
                if command is not None and command.type == "command"
                else None
            )
            for redirect in (child for child in node.children if child.type == "heredoc_redirect"):
                parts = {child.type: _text(child) for child in redirect.children}
                body = parts.get("heredoc_body", "")
                if name is not None and _plain(name).rpartition("/")[2] in SHELLS:
                    yield body
                elif not parts.get("heredoc_start", "").startswith(("'", '"', "\\")):
                    # bash expands it like text in double quotes
                    yield ('echo "' + body.replace('"', " ") + '"')
        case _:
            pass


def _below(nodes: Iterable[Node], into: Callable[[Node], bool] = lambda _: True) -> Iterator[Node]:
    """Yield nodes in the order of the text, each before its children. into: says whether the
    children follow.
    """
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        if into(node):
            stack.extend(reversed(node.children))


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _plain(node: Node) -> str:
    """Return a word without its quotes."""
    text = _text(node)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
