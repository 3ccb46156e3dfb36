"""Access that shell commands need: programs, paths and hosts, as a script's policy has them.

Paths are those that the commands name. Inside the caller's directory, a file that is made needs the
directory that holds it; a program of which nothing is known may write in the whole directory.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from uncaged_bundles.addresses import classify, literal
from uncaged_bundles.builders.inference.bash import BUILTINS
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.records import dataclass, field

from ..commands import NOWHERE, SimpleCommand, only_looks, parse
from ..values import Parameter, spans

__all__ = [
    "Access",
    "access_of",
    "add_changed",
    "add_hosts",
    "add_made_with_directories",
    "add_written",
    "check_destruction",
]

_URL = re.compile(r"(?:https?|ftp|git)://[^\s\"'<>|)\\]+")
_OUTSIDE = re.compile(r"(?:/|~(?:/|$)|\$HOME\b|\$\{HOME\}|\.\.(?:/|$))")
_OPERANDS_WRITTEN = frozenset(
    {"rm", "mv", "touch", "mkdir", "rmdir", "tee", "truncate", "chmod", "chown", "unlink", "patch"}
)
_LAST_WRITTEN = frozenset({"cp", "ln", "install", "uniq"})
_HOMES = re.compile(
    r"(?:/|/\*|~/?|~/\*|\$\{?HOME\}?/?\*?|/home/?\*?|/home/[^/]+/?\*?|/root/?\*?|/(?:etc|usr|var|bin|lib)/?\*?)"
)
_DESTROYERS = frozenset({"rm", "rmdir", "shred", "unlink", "mv", "chmod", "chown"})
_SYSTEM = ("/usr/", "/bin/", "/lib/", "/lib64/", "/dev/")
_OWN_VARIABLES = frozenset(
    {
        "PWD",
        "OLDPWD",
        "IFS",
        "RANDOM",
        "SECONDS",
        "LINENO",
        "BASHPID",
        "UID",
        "PATH",
        "REPLY",
        "HOSTNAME",
        "SRANDOM",
    }
    | {
        "EPOCHSECONDS",
        "EPOCHREALTIME",
        "OPTARG",
        "OPTIND",
        "HOME",
        "LANG",
        "TMPDIR",
        "SHLVL",
        "BASH_REMATCH",
        "PIPESTATUS",
    }
)


@dataclass(slots=True, kw_only=True)
class Access:
    """Programs, paths, hosts and variables, each once and in order. private: a host is not public.
    parameters: paths that are their values are named by them.
    """

    parameters: Sequence[Parameter] = ()
    programs: dict[str, None] = field(default_factory=dict)
    read: dict[str, None] = field(default_factory=dict)
    write: dict[str, None] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    variables: dict[str, None] = field(default_factory=dict)
    private: bool = False

    def sandbox(self) -> dict[str, object]:
        """Return it as a recipe's sandbox."""
        return {
            "allowedCommands": list(self.programs),
            "allowedPaths": list(self.read),
            **({"writePaths": list(self.write)} if self.write else {}),
            **({"allowedDomains": list(self.hosts)} if self.hosts else {}),
            **({"privateNetwork": True} if self.private else {}),
            **({"environment": list(self.variables)} if self.variables else {}),
        }


def access_of(commands: Iterable[tuple[str, str]], parameters: Sequence[Parameter] = ()) -> Access:
    """Return what commands need.

    Args:
        commands: each with its directory, relative to that of the flow, or absolute.
    """
    found = Access(parameters=parameters, read={".": None})
    for one in parameters:
        if one.type == "path" and not one.secret:
            found.read[f"param:{one.name}"] = None
    for text, directory in commands:
        _add_command(found, text, directory)
    return found


def add_written(
    found: Access, path: str, directory: str = "", *, may_be_named: bool = True
) -> None:
    """Add a file that is made or replaced: the directory that holds it must be writable.

    Args:
        may_be_named: whether a caller may choose a path elsewhere by a parameter.
    """
    named = _named(found, path, directory) if may_be_named else ""
    holder = posixpath.dirname(path.rstrip("/")) or "."
    if named:
        found.write[f"{named}/.."] = None
    elif spans(path, found.parameters) and not _OUTSIDE.match(path):
        found.write["."] = None
    else:
        found.write[_joined(directory, holder)] = None


def add_changed(found: Access, path: str) -> None:
    """Add a file that is there before and after."""
    found.write[_named(found, path, "") or _general(found, path)] = None


def add_made_with_directories(found: Access, path: str) -> None:
    """Add a file whose directories may have to be made, too."""
    if not posixpath.dirname(path):
        add_written(found, path)
        return
    found.programs["mkdir"] = None
    outside = _OUTSIDE.match(path) is not None
    found.write[posixpath.dirname(path) if outside else "."] = None


def _named(found: Access, path: str, directory: str) -> str:
    """Return the policy's name of a path that is a parameter's value; "" if it is none."""
    if directory not in ("", "."):
        return ""
    paths = (one for one in found.parameters if one.type == "path" and not one.secret)
    return next((f"param:{one.name}" for one in paths if one.value == path), "")


def _general(found: Access, path: str) -> str:
    """Return a path of the caller's directory as that directory if it depends on a parameter."""
    if _OUTSIDE.match(path) or not spans(path, found.parameters):
        return path
    return "."


def add_hosts(found: Access, text: str) -> None:
    """Add the hosts of the addresses in a text."""
    for match in _URL.finditer(text):
        try:
            parts = urlsplit(match[0])
            host, port = parts.hostname, parts.port
        except ValueError:
            continue
        if not host or "$" in host:
            continue
        found.hosts[host if port is None else f"{host}:{port}"] = None
        address = literal(host)
        if host == "localhost" or (address is not None and classify(address).reach != "public"):
            found.private = True


def check_destruction(commands: Iterable[str]) -> None:
    """Refuse commands that would remove or take over a home or a directory of the system.

    Raises:
        RefusedError: one does.
    """
    for text in commands:
        for command in parse(text).commands:
            names = {name.rpartition("/")[2] for name in command.started}
            if names & _DESTROYERS and any(_HOMES.fullmatch(word) for word in command.words[1:]):
                raise RefusedError(
                    f"the command {' '.join(command.words)!r} removes or changes a whole home or a directory"
                    " of the system; no flow is made of it"
                )


def _add_command(found: Access, text: str, directory: str) -> None:
    parsed = parse(text)
    for command in parsed.commands:
        for name in command.started:
            if (
                name not in BUILTINS
                and name not in parsed.functions
                and re.match(r"[\w./]", name)
                and "$" not in name
            ):
                found.programs[name] = None
        _add_paths(found, command, directory)
    for redirection in parsed.redirections:
        if redirection.path in NOWHERE or "$" in redirection.path.replace("$HOME", ""):
            continue
        if redirection.writes:
            add_written(found, redirection.path, directory)
        else:
            _add_read(found, redirection.path, directory)
    add_hosts(found, text)
    for name in sorted(parsed.variables - _OWN_VARIABLES):
        if name.isupper() and not name.startswith("PARAM_") and not re.search(rf"\b{name}=", text):
            found.variables[name] = None
    if not only_looks(text) and any(_is_unknown(one) for one in parsed.commands):
        found.write[_joined(directory, ".")] = None


def _add_paths(found: Access, command: SimpleCommand, directory: str) -> None:
    operands = [word for word in command.words[1:] if not word.startswith("-")]
    written: Sequence[str] = ()
    program = command.program
    if program in _OPERANDS_WRITTEN:
        written = operands[1:] if program in ("chmod", "chown") else operands
    elif program in _LAST_WRITTEN or (program == "sed" and not only_looks(" ".join(command.words))):
        written = operands[-1:]
    elif program in ("sort", "curl", "wget"):
        written = list(_values_of(command.words, ("-o", "-O", "--output")))
        if program == "wget" and not written:
            written = ["./x"]
    elif program == "dd":
        written = [word.removeprefix("of=") for word in operands if word.startswith("of=")]
    for word in written:
        if word not in NOWHERE and word != "-" and "$(" not in word:
            # no caller may let a flow remove what is elsewhere, such as a home
            add_written(found, word, directory, may_be_named=program not in _DESTROYERS)
    for word in operands:
        _add_read(found, word, directory)


def _values_of(words: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(words):
        if word in options and at + 1 < len(words):
            yield words[at + 1]
        elif word.startswith("--output="):
            yield word.removeprefix("--output=")


def _add_read(found: Access, word: str, directory: str) -> None:
    if (
        _OUTSIDE.match(word)
        and word not in NOWHERE
        and not word.startswith(_SYSTEM)
        and not re.search(r"[\s|;()]", word)
    ):
        if _named(found, word, directory):
            return
        glob = re.search(r"[*?\[]", word)
        path = word if glob is None else posixpath.dirname(word[: glob.start()] + "x")
        found.read[_joined(directory, path)] = None


def _is_unknown(command: SimpleCommand) -> bool:
    """Tell whether a command may change files that it does not name."""
    known = _OPERANDS_WRITTEN | _LAST_WRITTEN | {"sed", "sort", "curl", "wget", "dd"}
    return any(
        name not in BUILTINS
        and name.rpartition("/")[2] not in known
        and not only_looks(f"{name} x")
        for name in command.started
    ) or (command.program in ("find", "git", "awk") and not only_looks(" ".join(command.words)))


def _joined(directory: str, path: str) -> str:
    if not directory or path.startswith(("/", "~", "$")):
        return posixpath.normpath(path) if not path.startswith(("~", "$")) else path
    return posixpath.normpath(posixpath.join(directory, path))
