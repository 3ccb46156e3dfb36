"""Option that a command does not know any more, with one in its help that is like it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..candidates import FixCandidate
from ..case import FixCase
from ..likeness import likely
from ..machine import Machine

__all__ = ["candidates"]

UNKNOWN = re.compile(
    r"(?i)(?:unrecogni[sz]ed|unknown|invalid|illegal|unexpected|no such)"
    r"(?: (?:command[- ]line|long))? (?:option|arguments?|flag|switch)s?:? *(?:--)? *['\"`‘]?(?P<option>--[\w][\w-]*)"
)
OPTION = re.compile(r"(?<![\w-])--[a-zA-Z][\w-]+")
COMMAND = re.compile(r"^[a-z][\w.+-]*$")


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with the option that the help shows."""
    if case.failed is None or case.language != "bash":
        return
    found = UNKNOWN.search(case.failed.message)
    if found is None or found["option"] not in case.text:
        return
    option, calls = found["option"], list(_calls(case.text, found["option"]))
    if len(calls) != 1:
        yield f"the option {option} is unknown, and {len(calls)} commands have it"
        return
    [words] = calls
    text = machine.help_of(*words)
    shown = dict.fromkeys([*OPTION.findall(text), *_hints(case.failed.message, option)])
    used = set(OPTION.findall(case.text))
    others = [one for one in shown if one != option and one not in used]
    found_by, chosen = _chosen(option, others, _hints(case.failed.message, option))
    if not chosen:
        yield f"the option {option} is unknown to {' '.join(words)}, and its help shows none that is like it"
    for other in chosen:
        changed = re.sub(rf"{re.escape(option)}(?![\w-])", other, case.text)
        why = f"{' '.join(words)} has no option {option}; {found_by.format(other)}"
        yield FixCandidate(kind="renamed-option", recipe=case.with_text(changed), why=why)


def _chosen(option: str, others: list[str], hints: list[str]) -> tuple[str, tuple[str, ...]]:
    """Return options that may be the unknown one, and what speaks for them: the error names one, or
    a name is like it, or begins with it. Past values test the result.
    """
    named = tuple(one for one in others if one in hints)
    if len(named) == 1:
        return "its error names {}", named
    if alike := likely(option, others):
        return "its help shows {}, which is like it", alike
    longer = tuple(one for one in others if one.startswith(f"{option}-"))
    return "its help shows {}, which begins with it", longer


def _calls(text: str, option: str) -> Iterator[tuple[str, ...]]:
    """Yield command and subcommand of each call with an option."""
    for line in re.split(r"[\n;|&]|\$\(|`", text.replace("\\\n", " ")):
        if not re.search(rf"{re.escape(option)}(?![\w-])", line):
            continue
        words = [word for word in line.split() if "=" not in word or word.startswith("-")]
        while words and words[0] in ("if", "then", "do", "else", "!", "while", "exec", "time", "{"):
            words = words[1:]
        plain = []
        for word in words[:2]:
            if not COMMAND.fullmatch(word):
                break
            plain.append(word)
        if plain:
            yield tuple(plain)


def _hints(message: str, option: str) -> list[str]:
    """Return the options that the error itself suggests."""
    return [one for one in OPTION.findall(message) if one not in (option, "--help")]
