"""Python script that fails, or whose result an example does not expect: the edits of the built-in
repair that are off by one, tried on all examples in the sandbox.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from uncaged_bundles.builders.recipes.recipe_flow import variable_of
from uncaged_bundles.builders.recipes.recipe_text import recipe_source
from uncaged_bundles.errors import BundleError, UncagedError
from uncaged_bundles.examples import Example
from uncaged_bundles.syntax import parse_module
from uncaged_engine.services.registry import KNOWN
from uncaged_engine.services.sandbox import private_directory
from uncaged_repair.edits.candidates import candidates as edits_of
from uncaged_repair.edits.edit import SourceEdit
from uncaged_repair.edits.facts import ValueFacts
from uncaged_repair.edits.spans import read_source

from ..candidates import FixCandidate
from ..case import EXAMPLE, FixCase
from ..machine import Machine

__all__ = ["candidates"]

EDITS = frozenset({"off by one", "boundary", "offset", "slice", "index", "number", "comparison"})
MAX_EDITS = 150
WRONG = re.compile(r"exit [1-9]|(?:Index|Value|Assertion|ZeroDivision)Error$")
"""Errors that a script which is off by one may end with."""
LEAST_EXAMPLES = 2
"""One example is met by too many edits."""
MAX_VARIED_BYTES = 64 << 10
HARNESS = files("uncaged_capture.fixing").joinpath("harness.py")

Run = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRun:
    """Values of an example, and the expectation."""

    example: Example
    run: Run


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the edits with which all examples pass; one of those that agree on varied values."""
    if case.language != "python" or not (case.word == EXAMPLE or WRONG.match(case.word)):
        return
    if case.limits("script").get("write") or case.limits("script").get("network"):
        yield "an example fails, and the script writes or uses the network: it is not tried again and again"
        return
    directory = private_directory()
    try:
        yield from _search(case, machine, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _search(case: FixCase, machine: Machine, directory: Path) -> Iterator[FixCandidate | str]:
    runs = [one for one in _runs(case) if one.example.expect]
    edits = list(_edits(case.text))
    texts = [case.text, *(text for _, text in edits)]
    first, *results = _results(case, machine, texts, [one.run for one in runs], directory)
    usable = [number for number, result in enumerate(first) if result is not None]
    if case.word != EXAMPLE and all(
        runs[number].example.difference(first[number]) is None for number in usable
    ):
        return  # it is another cause, or no example shows it
    if len(usable) < LEAST_EXAMPLES:
        yield f"an example fails, and {len(usable)} examples can be tried; at least {LEAST_EXAMPLES} are needed"
        return
    passing = [
        (edit, text)
        for (edit, text), found in zip(edits, results, strict=True)
        if all(
            found[number] is not None and runs[number].example.difference(found[number]) is None
            for number in usable
        )
    ]
    if not passing:
        yield f"an example fails, and none of {len(edits)} small edits meets all examples"
        return
    for edit, text in _distinct(case, machine, passing, [one.run for one in runs], directory):
        shown = f"`{edit.before}` → `{edit.after}`" if edit.before else f"`{edit.after}` added"
        why = f"{case.cause}; with {shown} in line {edit.line} of the script all {len(usable)} examples pass"
        yield FixCandidate(kind="wrong-script", recipe=case.with_text(text), why=why)


def _edits(text: str) -> Iterator[tuple[SourceEdit, str]]:
    """Yield the likeliest edits with the changed text."""
    source = read_source("script.py", text.encode())
    lines = dict.fromkeys(range(1, text.count("\n") + 2), 1.0)
    known = {ast.dump(parse_module(text))}
    for _, edit in edits_of(source, lines, ValueFacts()):
        if edit.kind not in EDITS or edit.nature != "change":
            continue
        changed = edit.apply(source.data).decode()
        try:
            shape = ast.dump(parse_module(changed))
        except (SyntaxError, ValueError):
            continue
        if shape not in known:
            known.add(shape)
            yield edit, changed
            if len(known) > MAX_EDITS:
                return


def _runs(case: FixCase) -> Iterator[ExampleRun]:
    """Yield the values of the examples."""
    known = {
        json.dumps({step.kind: step.body}, sort_keys=True): step.outcome
        for step in case.steps
        if step.error is None
    }
    script = case.recipe.get("script")
    for index, raw in enumerate(case.recipe.get("examples", [])):
        example = Example.read(raw, ("examples", index))
        defaults = {str(one["name"]): one["default"] for one in case.parameters if "default" in one}
        params = {**defaults, **(example.params or {})}
        run: dict[str, Any] = {"prompt": example.sentence, "params": params}
        if isinstance(script, Mapping):
            words = [_words(part, params) for part in script.get("arguments", [])]
            run |= {
                "task": False,
                "environment": _environment(params),
                "arguments": [word for part in words for word in part],
                "json": script.get("expectedOutputFormat") == "json",
            }
        else:
            run |= {"task": True, "known": known}
        yield ExampleRun(example=example, run=run)


def _environment(params: Mapping[str, object]) -> dict[str, str]:
    return {f"PARAM_{variable_of(name)}": _spelled(value) for name, value in params.items()}


def _words(part: object, params: Mapping[str, object]) -> list[str]:
    """Return the words of one part of a command line, as the flow's driver spells them."""
    if not isinstance(part, Mapping):
        return [str(part)]
    value = params.get(str(part["param"]))
    if value is None or (part.get("switch") and not value):
        return []
    flag = [str(part["flag"])] if part.get("flag") else []
    return flag if part.get("switch") else [*flag, _spelled(value)]


def _spelled(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _results(
    case: FixCase, machine: Machine, texts: Sequence[str], runs: Sequence[Run], directory: Path
) -> list[list[Any]]:
    """Return for each version of the script its result for each run."""
    sources = [_source(case, text) for text in texts]
    paths = {Path(str(value)) for run in runs for value in run["params"].values()}
    named = [Path(one) for one in case.limits("script").get("read", []) if one.startswith("/")]
    reads = [path for path in (*paths, *named) if path.is_absolute() and path.exists()]
    request = json.dumps({"sources": sources, "runs": list(runs)})
    text = machine.run_python(HARNESS.read_text("utf-8"), request, reads, directory)
    try:
        found = json.loads(text)
    except ValueError:
        found = []
    return found if len(found) == len(texts) else [[None] * len(runs) for _ in texts]


def _source(case: FixCase, text: str) -> str:
    """Return what the harness runs: a script, or the bundle of a task."""
    if isinstance(case.recipe.get("script"), Mapping):
        return text
    try:
        return recipe_source(case.with_text(text), case.flow, KNOWN).decode()
    except (BundleError, UncagedError):
        return "raise SystemExit(1)"


def _distinct(
    case: FixCase,
    machine: Machine,
    passing: Sequence[tuple[SourceEdit, str]],
    runs: Sequence[Run],
    directory: Path,
) -> list[tuple[SourceEdit, str]]:
    """Return one of the edits that give the same results for varied values of the examples."""
    if len(passing) == 1:
        return list(passing)
    varied = [other for run in runs for other in _varied(run, directory)]
    results = _results(case, machine, [text for _, text in passing], varied, directory)
    found: dict[str, tuple[SourceEdit, str]] = {}
    for one, result in zip(passing, results, strict=True):
        found.setdefault(json.dumps(result if varied else one[1], sort_keys=True), one)
    return list(found.values())


def _varied(run: Run, directory: Path) -> Iterator[Run]:
    """Yield the run with other values of one parameter."""
    for name, value in run["params"].items():
        for other in _others(value, directory):
            params = {**run["params"], name: other}
            more = {} if run["task"] else {"environment": _environment(params)}
            yield {**run, "params": params, **more}


def _others(value: object, directory: Path) -> Iterator[object]:
    match value:
        case bool():
            yield not value
        case int():
            # a sign that no example has is beyond what the flow is for
            yield from (value + 1, value + 2, value * 2 + 1, *((value - 1, 0) if value > 0 else ()))
        case float():
            yield from (value + 1, value - 0.5)
        case list() if value:
            yield from (value[1:], [*value, value[0]], value[:-1])
        case str() if value.lstrip("-").isdecimal():
            yield from (str(int(value) + 1), str(int(value) * 2 + 1), "0")
        case str() if value.startswith("/"):
            yield from map(str, _other_files(Path(value), directory))
        case str() if value:
            yield from (value[1:], value + value[0], f"{value} {value}")
        case _:
            pass


def _other_files(path: Path, directory: Path) -> Iterator[Path]:
    """Yield copies of a text file with a line less, and with one more."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_VARIED_BYTES:
            return
        lines = path.read_text("utf-8").splitlines(keepends=True)
    except (OSError, ValueError):
        return
    for number, changed in enumerate((lines[:-1], [*lines, *lines[-1:]], lines[:-2])):
        other = directory / f"{abs(hash(str(path)))}-{number}{path.suffix}"
        other.write_text("".join(changed), "utf-8")
        other.chmod(0o644)
        yield other
