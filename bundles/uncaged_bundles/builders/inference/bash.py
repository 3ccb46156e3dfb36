"""Inference for bash: the parameters that a script reads (``getopts``, ``$1``, ``$PARAM_NAME``) and
the programs that it starts.

The syntax tree is tree-sitter's; a script with syntax errors gives what can be recognized of it.
Programs that a shell inside the script starts (``sh -c '…'``) are not inferred.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import dropwhile, pairwise
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
SHELLS = frozenset({"bash", "sh", "dash"})
WRAPPERS = frozenset(
    {"command", "env", "exec", "nice", "nohup", "sudo", "time", "timeout", "xargs"}
)
"""Commands whose first plain argument is the name of another command."""
_PROGRAM = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+-]*")
_OPTION = re.compile(r"-.*|\d.*|\{\}|[A-Za-z_]\w*=.*", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_EXPANSION = re.compile(
    r"\$\{?[#!]?(?P<name>\w+|[@*])(?P<sign>:?[-=])?(?P<default>.*?)\}?", re.DOTALL
)
_BRANCH = re.compile(r"(?<![^\s(|])([A-Za-z0-9])\)\s*([A-Za-z_]\w*)\+?=")


def parameters(text: str) -> list[Guess]:
    """Return the parameters that the script seems to take: variables, options, then places."""
    found: dict[str, Guess] = {}
    for expansion, _ in _expansions(text, in_functions=True):
        if expansion["name"].startswith("PARAM_"):
            name = expansion["name"].removeprefix("PARAM_").lower()
            if name not in found or found[name].default is None:
                found[name] = _guess(name, expansion)
    options = list(_options(text))
    found |= {guess.name: guess for guess in options}
    if not options:
        for guess in _places(text):
            found.setdefault(guess.name, guess)
    return list(found.values())


def reads_all_arguments(text: str) -> bool:
    """Tell whether the script takes its arguments as a list: ``$@``, ``$*`` or ``shift``, outside
    its functions.
    """
    if any(found["name"] in ("@", "*") for found, _ in _expansions(text, in_functions=False)):
        return True
    return any(words[0] == "shift" for words in simple_commands(text, in_functions=False))


def commands(text: str) -> set[str]:
    """Return the programs that the script seems to start, without its functions and builtins."""
    functions = {
        node_text(name)
        for node in nodes(text)
        if node.type == "function_definition" and (name := node.child_by_field_name("name"))
    }
    started = {
        name.rpartition("/")[2] if name.startswith("/") else name
        for words in simple_commands(text)
        for name in programs_started(words)
        if _PROGRAM.fullmatch(name)
    }
    return started - BUILTINS - functions


def programs_started(words: Sequence[str]) -> Iterator[str]:
    """Yield a command's own name and those of the commands that it starts."""
    yield words[0]
    if words[0] == "find":
        yield from (word for action, word in pairwise(words) if action in ("-exec", "-execdir"))
    elif words[0] in WRAPPERS and (inner := list(dropwhile(_OPTION.fullmatch, words[1:]))):
        yield from programs_started(inner)


def _places(text: str) -> Iterator[Guess]:
    """Yield the places of the command line, from 1, with each place before one that is read."""
    places: dict[int, Guess] = {}
    # the name of a variable is the best name for its place
    for expansion, variable in sorted(
        _expansions(text, in_functions=False), key=lambda read: not read[1]
    ):
        if expansion["name"].isdecimal() and (place := int(expansion["name"])) > 0:
            name = variable.lower() or f"argument{place}"
            places.setdefault(place, _guess(name, expansion, place))
    for place in range(1, max(places, default=0) + 1):
        yield places.get(place) or Guess(name=f"argument{place}", required=True, place=place)


def _guess(name: str, expansion: re.Match[str], place: int | None = None) -> Guess:
    default: object = None
    if expansion["sign"] and "$" not in expansion["default"]:
        word = expansion["default"].strip("\"'")
        default = (float(word) if "." in word else int(word)) if _NUMBER.fullmatch(word) else word
        default = {"true": True, "false": False}.get(word, default)
        if default == "" and place is None:
            default = None
    kind, required = kind_of(name, default), not expansion["sign"]
    return Guess(name=name, kind=kind, required=required, default=default, place=place)


def _options(text: str) -> Iterator[Guess]:
    """Yield the options of ``getopts``, named after the variable that each one's branch sets
    at once, else by their letter.
    """
    names = {letter: name.lower() for letter, name in reversed(_BRANCH.findall(text))}
    for words in simple_commands(text):
        if words[0] == "getopts" and len(words) > 1:
            for letter, colon in re.findall(r"([A-Za-z0-9])(:?)", words[1]):
                name = names.get(letter, letter)
                kind = kind_of(name) if colon else "boolean"
                yield Guess(name=name, kind=kind, flag=f"-{letter}", switch=not colon)


def _expansions(text: str, *, in_functions: bool) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each ``$name`` or ``${name:-default}``, with the variable that it is assigned to if it
    is the whole value.
    """
    for node in nodes(text, in_functions=in_functions):
        if node.type in ("simple_expansion", "expansion"):
            # in quotes, the grammar counts the space before an expansion to it
            found = _EXPANSION.fullmatch(node_text(node).lstrip())
            if found is not None:
                yield found, _assigned(node)


def _assigned(node: Node) -> str:
    parent = node.parent
    if parent is not None and parent.type == "string" and parent.named_child_count == 1:
        parent = parent.parent
    if parent is None or parent.type != "variable_assignment":
        return ""
    name = parent.child_by_field_name("name")
    return "" if name is None else node_text(name)


def simple_commands(text: str, *, in_functions: bool = True) -> Iterator[tuple[str, ...]]:
    """Yield the words of each simple command, without their quotes."""
    for node in nodes(text, in_functions=in_functions):
        name = node.child_by_field_name("name") if node.type == "command" else None
        if name is not None:
            yield tuple(map(unquoted, (name, *node.children_by_field_name("argument"))))


def nodes(text: str, *, in_functions: bool = True) -> Iterator[Node]:
    """Yield the nodes of a script in order, then those of the expansions in its here documents."""
    pending = [text]
    while pending:
        stack = [_parser().parse(pending.pop().encode()).root_node]
        while stack:
            node = stack.pop()
            yield node
            if node.type == "heredoc_redirect":
                parts = {child.type: node_text(child) for child in node.children}
                if not parts.get("heredoc_start", "").startswith(("'", '"', "\\")):
                    # the grammar finds the first expansion of a body only: read it as quoted text
                    body = parts.get("heredoc_body", "").replace('"', " ")
                    pending.append(f'echo "{body}"')
            if node.type != "heredoc_body" and (in_functions or node.type != "function_definition"):
                stack.extend(reversed(node.children))


def node_text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def unquoted(node: Node) -> str:
    """Return a word without its quotes."""
    text = node_text(node)
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))
