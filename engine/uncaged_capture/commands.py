"""Shell commands by what they do, from their syntax tree: programs, files, addresses, and whether
they only look.

What the text does not show (a program that is not in the tables) counts as a change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from uncaged_bundles.builders.inference.bash import (
    BUILTINS,
    node_text,
    nodes,
    programs_started,
    unquoted,
)
from uncaged_bundles.records import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Redirection", "SimpleCommand", "may_send", "only_looks", "parse", "unsteady_parts"]

NOWHERE = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"})
_DESCRIPTOR = re.compile(r"\d+|-")
_CHANGING_BUILTINS = frozenset({"eval", "source", ".", "exec", "trap", "kill", "coproc"})
_READER_WORDS = """
    [ arch awk base64 basename cat cd cksum cmp column comm curl cut date df diff dirname du echo egrep env
    expr false fgrep file find fold gawk git grep head hexdump hostname id join jq less ls lsof man mawk md5sum
    more nl nproc od paste printenv printf ps pwd readlink realpath rev rg sed seq sha1sum sha256sum sha512sum
    sleep sort stat strings tac tail test tr tree true uname uniq uptime wc wget which whoami xxd yq
    """
_READERS = frozenset(_READER_WORDS.split())
_GIT_WORDS = (
    "status log diff show rev-parse ls-files ls-tree blame describe grep shortlog cat-file rev-list"
)
_GIT_LOOKS = frozenset(_GIT_WORDS.split())
_WRITES_IN_AWK = re.compile(r">|\||system\s*\(|getline\s*<")
_WRITES_IN_SED = re.compile(r"(?:^|[;{}\d$/!\s])[wWe]\s*\S|s(\W).*\1.*\1\w*[we]")
_CURL_VALUES = frozenset("AbcCdDeEFHKmoPQrtTuUwxXyYz")
"""One-letter options of curl that take a value."""
_CURL_SENDS = re.compile(r"[dFTKQ]|data.*|form.*|json|upload-file|config|quote|url-query|next")
_CURL_WRITES = re.compile(
    r"[oOJcD]|output.*|remote-.*|cookie-jar|dump-header|create-dirs|etag-save"
)
_REMOTE = frozenset(
    {"ssh", "scp", "sftp", "rsync", "ftp", "nc", "telnet", "gh", "aws", "gcloud", "az"}
)
_ADDRESS = re.compile(r"\w+://")
_UNSTEADY_PROGRAMS = {
    "date": "the clock (date)",
    "uptime": "the clock (uptime)",
    "mktemp": "randomness (mktemp)",
    "uuidgen": "randomness (uuidgen)",
    "shuf": "randomness (shuf)",
    "ps": "the processes that run (ps)",
}
_UNSTEADY_VARIABLES = {
    "RANDOM": "randomness ($RANDOM)",
    "SRANDOM": "randomness ($SRANDOM)",
    "SECONDS": "the clock ($SECONDS)",
    "EPOCHSECONDS": "the clock ($EPOCHSECONDS)",
    "EPOCHREALTIME": "the clock ($EPOCHREALTIME)",
    "BASHPID": "process ids ($BASHPID)",
}
_UNSTEADY_TEXTS = {
    "/dev/urandom": "randomness (/dev/urandom)",
    "/dev/random": "randomness (/dev/random)",
    "datetime.now": "the clock (datetime.now)",
    "time.time": "the clock (time.time)",
    "import random": "randomness (random)",
    "uuid4": "randomness (uuid4)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleCommand:
    """A command of a shell line: its words without quotes, the program first. started: the names of
    the programs that it starts, such as that of `xargs`.
    """

    words: tuple[str, ...]
    started: tuple[str, ...]

    @property
    def program(self) -> str:
        return self.words[0].rpartition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirection:
    """A redirection from or to a file. operator: as in `>>`."""

    operator: str
    path: str

    @property
    def writes(self) -> bool:
        return ">" in self.operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A command line. functions: names that it defines. variables: those that it reads. whole:
    there is no syntax error.
    """

    commands: tuple[SimpleCommand, ...]
    redirections: tuple[Redirection, ...]
    functions: frozenset[str]
    variables: frozenset[str]
    whole: bool


def parse(text: str) -> Parsed:
    """Return the parts of a shell command line."""
    commands: list[SimpleCommand] = []
    redirections: list[Redirection] = []
    functions, variables, whole = set(), set(), True
    for node in nodes(text):
        match node.type:
            case "command" if words := tuple(_words(node)):
                commands.append(SimpleCommand(words=words, started=tuple(programs_started(words))))
            case "test_command":
                commands.append(SimpleCommand(words=("[",), started=("[",)))
            case "file_redirect":
                redirections += _redirection(node)
            case "function_definition" if name := node.child_by_field_name("name"):
                functions.add(node_text(name))
            case "variable_name":
                variables.add(node_text(node))
            case "ERROR":
                whole = False
            case _:
                pass
    return Parsed(
        commands=tuple(commands),
        redirections=tuple(redirections),
        functions=frozenset(functions),
        variables=frozenset(variables),
        whole=whole,
    )


def only_looks(text: str) -> bool:
    """Tell whether a command line surely changes nothing: it starts known programs only, with
    arguments that let them read.
    """
    parsed = parse(text)
    return (
        parsed.whole
        and bool(parsed.commands)
        and not parsed.functions
        and not any(one.writes and one.path not in NOWHERE for one in parsed.redirections)
        and all(_looks(one.words) for one in parsed.commands)
    )


def unsteady_parts(text: str) -> tuple[str, ...]:
    """Return what a command line uses that differs from run to run, in words."""
    parsed = parse(text)
    found = [
        *(_UNSTEADY_PROGRAMS.get(name, "") for one in parsed.commands for name in one.started),
        *(words for name, words in _UNSTEADY_VARIABLES.items() if name in parsed.variables),
        *(words for part, words in _UNSTEADY_TEXTS.items() if part in text),
    ]
    return tuple(dict.fromkeys(filter(None, found)))


def _words(node: Node) -> Iterator[str]:
    name = node.child_by_field_name("name")
    if name is not None:
        yield unquoted(name)
        yield from map(unquoted, node.children_by_field_name("argument"))


def _redirection(node: Node) -> Iterator[Redirection]:
    target = node.child_by_field_name("destination")
    operator = next((child.type for child in node.children if not child.is_named), "")
    if target is not None and not (
        operator.endswith("&") and _DESCRIPTOR.fullmatch(node_text(target))
    ):
        yield Redirection(operator=operator, path=unquoted(target))


def _looks(words: Sequence[str]) -> bool:
    name, options = words[0].rpartition("/")[2], words[1:]
    if name in BUILTINS and name not in _READERS:
        return name not in _CHANGING_BUILTINS
    if name in ("env", "xargs", "time", "timeout", "nice", "command"):
        inner = [one for one in programs_started(words) if one != words[0]]
        rest = options[options.index(inner[0]) :] if inner and inner[0] in options else ()
        return _looks(rest) if rest else name == "env"
    return name in _READERS and _LOOKS.get(name, _always)(options)


def _always(_options: Sequence[str]) -> bool:
    return True


def _without(pattern: str) -> Callable[[Sequence[str]], bool]:
    """Return a check that no argument fits a pattern."""
    unwanted = re.compile(pattern)
    return lambda options: not any(unwanted.fullmatch(one) for one in options)


def may_send(text: str) -> bool:
    """Tell whether a command line may change something at a host. Requests that only read do not,
    wherever their answer is written.
    """
    return any(_may_send(one) for one in parse(text).commands)


def _may_send(command: SimpleCommand) -> bool:
    words = command.words
    names = {name.rpartition("/")[2] for name in command.started}
    if names & _REMOTE:
        return True
    if "git" in names:
        return not {"push", "fetch", "pull", "clone", "remote", "ls-remote"}.isdisjoint(words)
    if "curl" in names:
        return any(
            _CURL_SENDS.fullmatch(name)
            or (name in ("X", "request") and value.upper() not in ("GET", "HEAD"))
            for name, value in _curl_options(
                words[words.index("curl") + 1 :] if "curl" in words else words[1:]
            )
        )
    if "wget" in names:
        return re.search(r"--post|--method|--body", " ".join(words)) is not None
    return _ADDRESS.search(" ".join(words)) is not None and not _looks(words)


def _curl_options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of curl by name, without dashes, each with its value or ""."""
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            yield name, value if equals else following
        elif word.startswith("-"):
            for index, letter in enumerate(word[1:], 2):
                if letter in _CURL_VALUES:
                    yield letter, word[index:] or following
                    break
                yield letter, ""


def _curl(options: Sequence[str]) -> bool:
    command = SimpleCommand(words=("curl", *options), started=("curl",))
    return not _may_send(command) and not any(
        _CURL_WRITES.fullmatch(name) for name, _ in _curl_options(options)
    )


def _sed(options: Sequence[str]) -> bool:
    return not any(
        one.startswith(("-i", "--in-place"))
        or re.fullmatch(r"-[nErsuz]*i.*", one)
        or _WRITES_IN_SED.search(one)
        for one in options
    )


def _wget(options: Sequence[str]) -> bool:
    joined = " ".join(options)
    return bool(
        re.search(r"(?:^|\s)-[a-zA-Z]*O\s?-(?:\s|$)|--output-document=-", joined)
    ) and not re.search(r"--post|--method|--body", joined)


_LOOKS: Mapping[str, Callable[[Sequence[str]], bool]] = {
    "awk": lambda options: not any(_WRITES_IN_AWK.search(one) for one in options),
    "gawk": lambda options: not any(_WRITES_IN_AWK.search(one) for one in options),
    "mawk": lambda options: not any(_WRITES_IN_AWK.search(one) for one in options),
    "curl": _curl,
    "date": _without(r"-s.*|--set.*"),
    "find": _without(r"-delete|-exec.*|-ok.*|-fprint.*|-fls"),
    "git": lambda options: (
        bool(options) and options[0] in _GIT_LOOKS and "--output" not in " ".join(options)
    ),
    "hostname": lambda options: not options,
    "sed": _sed,
    "sort": _without(r"-o.*|-[a-zA-Z]+o.*|--output.*|--compress-program.*"),
    "tree": _without(r"-o.*"),
    "uniq": lambda options: sum(not one.startswith("-") for one in options) < 2,
    "wget": _wget,
    "xxd": lambda options: sum(not one.startswith("-") for one in options) < 2,
    "yq": _without(r"-i.*|--in-?place"),
}
"""Programs that write with some of their arguments: whether these are none of them."""
