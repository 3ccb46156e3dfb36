"""What a bash script takes and needs, by its text: ``getopts``, ``$1``, ``$PARAM_NAME``, and the first word of each command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .guess import Guess, kind_of

_BUILTIN_WORDS = """
    alias bg bind break builtin caller case cd command compgen complete continue coproc declare dirs disown do done echo elif else enable
    esac eval exec exit export false fc fg fi for function getopts hash help history if in jobs kill let local logout mapfile popd printf
    pushd pwd read readarray readonly return select set shift shopt source suspend test then time times trap true type typeset ulimit umask
    unalias unset until wait while . : [ [[ ]] ] { } !
"""
BUILTINS = frozenset(_BUILTIN_WORDS.split())
CARRIERS = frozenset({"sudo", "env", "nohup", "nice", "xargs", "command", "exec", "time", "timeout", "stdbuf", "builtin"})
"""The word after these, and their options, is a command too."""
_OPENERS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time"})
_NAME = re.compile(r"[A-Za-z0-9_./+-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1[^\n]*\n.*?^\s*\2\s*$", re.MULTILINE | re.DOTALL)
_FUNCTION = re.compile(r"^\s*(?:function\s+)?([A-Za-z_][\w-]*)\s*\(\)|^\s*function\s+([A-Za-z_][\w-]*)", re.MULTILINE)
_PLACE = re.compile(r"\$(?:\{([1-9])(?::?([-=?])([^}]*))?\}|([1-9]))")
_NAMED_PLACE = re.compile(
    r"^\s*(?:local\s+|readonly\s+|declare\s+)?([A-Za-z_]\w*)=[\"']?\$(?:\{([1-9])(?::?([-=?])([^}]*))?\}|([1-9]))", re.MULTILINE
)
_VARIABLE = re.compile(r"\$(?:\{PARAM_([A-Z0-9_]+)(?::?([-=?])([^}]*))?[^}]*\}|PARAM_([A-Z0-9_]+))")
_GETOPTS = re.compile(r"\bgetopts\s+([\"']?)(:?[A-Za-z0-9:]+)\1")
_SPLIT = re.compile(r"\$\(|\|\||&&|;;|[;|&\n()`]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def parameters(text: str) -> list[Guess]:
    """Return what the script seems to take: variables, options, then places."""
    code = _without_comments(text)
    found: dict[str, Guess] = {}
    for match in _VARIABLE.finditer(code):
        name = (match[1] or match[4]).lower()
        if name not in found or found[name].default is None:
            found[name] = _guess(name, match[2], match[3])
    for options in (match[2].lstrip(":") for match in _GETOPTS.finditer(code)):
        for letter, colon in re.findall(r"([A-Za-z0-9])(:?)", options):
            name = _named_option(code, letter)
            found[name] = Guess(name=name, kind=kind_of(name) if colon else "boolean", flag=f"-{letter}", switch=not colon)
    if not any(guess.flag for guess in found.values()):
        outside = _outside_functions(code)
        places: dict[int, Guess] = {}
        for match in _NAMED_PLACE.finditer(outside):
            place = int(match[2] or match[5])
            places.setdefault(place, _guess(match[1].lower(), match[3], match[4], place))
        for match in _PLACE.finditer(outside):
            place = int(match[1] or match[4])
            places.setdefault(place, _guess(f"argument{place}", match[2], match[3], place))
        for _, guess in sorted(places.items()):
            found.setdefault(guess.name, guess)
    return list(found.values())


def commands(text: str) -> set[str]:
    """Return the programs that the script seems to start; its own functions and bash's own commands are none."""
    code = _without_comments(_HEREDOC.sub("\n", text))
    functions = {first or second for first, second in _FUNCTION.findall(code)}
    return {name for name in _first_words(code) if name not in BUILTINS and name not in functions}


def _guess(name: str, sign: str | None, text: str | None, place: int | None = None) -> Guess:
    default: object = None
    if sign in ("-", "=") and text and "$" not in text:
        word = text.strip("\"'")
        default = (float(word) if "." in word else int(word)) if _NUMBER.fullmatch(word) else word
        default = {"true": True, "false": False}.get(word, default)
    optional = sign in ("-", "=")
    return Guess(name=name, kind=kind_of(name, default), required=not optional, default=default, place=place)


def _named_option(code: str, letter: str) -> str:
    """The variable that ``letter) name=$OPTARG`` or ``letter) name=1`` sets, else the letter."""
    match = re.search(rf"^\s*{letter}\)\s*([A-Za-z_]\w*)=", code, re.MULTILINE)
    return match[1].lower() if match else letter


def _without_comments(text: str) -> str:
    return "\n".join(re.sub(r"(^|\s)#.*$", r"\1", line) for line in text.replace("\\\n", " ").split("\n"))


def _outside_functions(code: str) -> str:
    """In a function, ``$1`` is the function's own."""
    return re.sub(r"^\s*(?:function\s+)?[\w-]+\s*\(\)\s*\{.*?^\}", "", code, flags=re.MULTILINE | re.DOTALL)


def _first_words(code: str) -> Iterator[str]:
    for part in _SPLIT.split(_blanked(code)):
        words = part.split()
        while words:
            word = words.pop(0)
            if _ASSIGNMENT.match(word) or word in _OPENERS or word.startswith(("<", ">")):
                continue
            if word in ("for", "case", "select", "function", "in", "[[", "[") or word.endswith(")"):
                break
            if _NAME.fullmatch(word) and not word[0].isdigit() and not word.startswith(("-", "+")):
                yield word.rpartition("/")[2] if word.startswith("/") else word
                if word in CARRIERS:
                    while words and (words[0].startswith("-") or _ASSIGNMENT.match(words[0]) or words[0][0].isdigit()):
                        words.pop(0)
                    continue
            break


def _blanked(code: str) -> str:
    """Quoted text without what could look like a command; what stands in ``$(…)`` inside double quotes stays."""
    code = re.sub(r"'[^']*'", "''", code)
    code = re.sub(r"\$\{[^}]*\}", "$V", code)
    inside: list[str] = []

    def keep(match: re.Match[str]) -> str:
        inside.extend(re.findall(r"\$\(([^()]*)\)", match[0]))
        return '""'

    code = re.sub(r"\$\(\([^)]*\)\)", "0", code)
    code = re.sub(r"\(\(.*?\)\)", "", code)
    code = re.sub(r"\"(?:\\.|[^\"\\])*\"", keep, code)
    code = re.sub(r"\[\[.*?\]\]", "", code, flags=re.DOTALL)
    return "\n".join([re.sub(r"^\s*[^\s();]+\)", "", code, flags=re.MULTILINE), *inside])
