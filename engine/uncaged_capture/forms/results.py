"""Results of earlier calls in later ones: a text that a command printed and a later call has is
read again from what the command prints in each run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from uncaged_bundles.errors import RefusedError
from uncaged_bundles.records import dataclass

from ..calls import Command, FileEdit, FileWrite, TraceCall
from ..selecting import Selection, Use
from ..values import kind_of, occurrences
from .rewriting import ShellVariable

__all__ = ["Results"]

_PATH_LIKE = re.compile(r"[\w@.+-]*[/.][\w@./+-]*|[\w-]+")
_FIELD = re.compile(r"\S+")
_LIST = "mapfile"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Binding:
    """A variable with a text of a result. lines: of shell, which set it from what was printed."""

    number: int
    variable: ShellVariable
    lines: tuple[str, ...]


class Results:
    """Variables for the results of kept calls."""

    def __init__(self, selection: Selection, variables: Sequence[ShellVariable]) -> None:
        self._bindings: dict[tuple[int, str], _Binding] = {}
        self._targets: dict[int, list[_Binding]] = {}
        known = {one.value for one in variables}
        searched = [one for one in variables if one.type == "text"]
        calls = {call.number: call for call in selection.kept}
        for use in selection.uses:
            if use.where is None or use.text in known:
                continue
            source, target = calls[use.number], calls.get(use.where)
            if target is None:
                continue
            listed = _listed(source, target) if _is_search(source, searched) else None
            if listed is None and not _is_data(use, source, target, searched):
                continue
            binding = (
                listed
                or self._bindings.get((source.number, use.text))
                or _binding(source, use.text)
            )
            if binding is None:
                covered = any(
                    use.text in other.variable.value for other in self._targets.get(use.where, ())
                )
                if covered:
                    continue
                raise RefusedError(
                    f"call {target.number} has the text {use.text!r}, which call {source.number} printed; in"
                    " another run it is another one, and where to find it then is not certain. No script"
                    " flow is made of it; let the agent do it with one command"
                )
            self._bindings[source.number, binding.variable.value] = binding
            targets = self._targets.setdefault(use.where, [])
            if binding not in targets:
                targets.append(binding)

    def variables(self) -> list[ShellVariable]:
        """Return all variables."""
        return [binding.variable for binding in self._bindings.values()]

    def variables_of(self, call: TraceCall) -> list[ShellVariable]:
        """Return the variables that a call may have texts of."""
        return [binding.variable for binding in self._targets.get(call.number, ())]

    def stored(self, call: TraceCall, line: str, *, shown: bool) -> str:
        """Return a call's line, with what sets the variables of its result.

        Args:
            shown: whether the flow prints what the call prints.
        """
        own = [one for one in self._bindings.values() if one.number == call.number]
        if not own:
            return (
                line if shown or not isinstance(call.action, Command) else f"{_grouped(line)} >&2"
            )
        if any(one.lines == (_LIST,) for one in own):
            return f"mapfile -t result{call.number} < <(\n{line}\n)"
        name = f"result{call.number}"
        lines = [f"{name}=$(\n{line}\n)"]
        if shown:
            lines.append(f"printf '%s\\n' \"${name}\"")
        lines += [part for one in own for part in one.lines]
        return "\n".join(lines)


def _grouped(line: str) -> str:
    """Return a line whose whole output can be redirected."""
    return line if line.startswith("(") else f"{{\n{line}\n}}"


def _is_search(source: TraceCall, searched: Sequence[ShellVariable]) -> bool:
    """Tell whether a command looks for a value that the caller may choose."""
    return isinstance(source.action, Command) and any(
        next(occurrences(one.value, text), None) is not None
        for one in searched
        for text in source.texts()
    )


def _listed(source: TraceCall, target: TraceCall) -> _Binding | None:
    """Return all lines of a result as words, if a later command has them one after the other."""
    lines = source.output.split("\n")[:-1]
    if not (source.is_whole and lines and isinstance(target.action, Command)):
        return None
    text = " ".join(lines)
    plain = all(re.fullmatch(r"[\w@%+=:,./-]+", line) and kind_of(line) == "path" for line in lines)
    if not plain or next(occurrences(text, target.action.text), None) is None:
        return None
    variable = ShellVariable(name=f"result{source.number}", value=text, type="text", is_list=True)
    return _Binding(number=source.number, variable=variable, lines=(_LIST,))


def _is_data(
    use: Use, source: TraceCall, target: TraceCall, searched: Sequence[ShellVariable]
) -> bool:
    """Tell whether a later call has the text because the earlier one printed it. Names of files and
    words of the code that an agent looked at are not, unless it was found by a value that the
    caller may choose.
    """
    if not isinstance(source.action, Command) or isinstance(target.action, FileEdit):
        return False
    if re.search(rf'"{re.escape(use.text)}"\s*:', source.output):
        return False  # a key, which each run has
    number = kind_of(use.text) in ("integer", "number") or _json_key(source.output, use.text)
    if number or use.text == source.output.strip() or _is_search(source, searched):
        return True
    return isinstance(target.action, FileWrite) or not _PATH_LIKE.fullmatch(use.text)


def _binding(source: TraceCall, text: str) -> _Binding | None:
    """Return how a text is found in what a command prints; None if that is not certain."""
    if not source.is_whole:
        return None
    output, name = source.output.strip("\n"), f"result{source.number}"
    if output.strip() == text:
        return _bound(source, name, text, ())
    if "\n" not in output:
        fields = _FIELD.findall(output)
        if fields.count(text) == 1 and len(list(occurrences(text, output))) == 1:
            variable = f"{name}_{fields.index(text) + 1}"
            words = " ".join("_" for _ in fields[: fields.index(text)])
            reader = f'read -r {words} {variable} _ <<< "${name}"'.replace("  ", " ")
            return _bound(source, variable, text, (reader,))
    key = _json_key(output, text)
    if key is not None:
        variable = f"{name}_{re.sub(r'[^A-Za-z0-9]', '_', key)}"
        pattern = rf'"{re.escape(key)}"[[:space:]]*:[[:space:]]*("([^"\\]*)"|-?[0-9.]+)'
        return _bound(
            source,
            variable,
            text,
            (
                f"pattern='{pattern}'",
                f"[[ ${name} =~ $pattern ]] || {{ echo 'call {source.number} gave no {key}' >&2; exit 1; }}",
                f"{variable}=${{BASH_REMATCH[2]:-${{BASH_REMATCH[1]}}}}",
            ),
        )
    return None


def _bound(source: TraceCall, name: str, text: str, lines: tuple[str, ...]) -> _Binding:
    number = kind_of(text) == "integer"
    variable = ShellVariable(name=name, value=text, type="integer" if number else "text")
    if number:
        lines += (
            f"[[ ${name} =~ ^-?[0-9]+$ ]] || {{ echo 'call {source.number} gave no number' >&2; exit 1; }}",
        )
    return _Binding(number=source.number, variable=variable, lines=lines)


def _json_key(output: str, text: str) -> str | None:
    """Return the key that alone has this value in a JSON document, and occurs in it once."""
    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        return None
    pairs = list(_pairs(document))
    keys = [key for key, value in pairs if str(value) == text and not isinstance(value, bool)]
    if len(keys) != 1 or [key for key, _ in pairs].count(keys[0]) != 1:
        return None
    return keys[0] if re.fullmatch(r"[\w-]+", keys[0]) else None


def _pairs(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _pairs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pairs(inner)
