"""Differential inputs: the calls that a library's own tests make, and random variations of them,
made in the released and in the repaired repository.
"""

from __future__ import annotations

import ast
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .releases import Release
from .sandbox import INSIDE, failures, run_python, run_tests

VARIATIONS = 500
REPLAY_S = 180
MAX_DEATHS = 5
DIED = "the process died"
Outcomes = Mapping[int, tuple[bool, str | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Result of the calls. differing: how many of *compared* had another outcome. functions: which
    were called. unreadable: calls whose arguments could not be recorded. still_failing: tests that
    fail in the repaired repository and not in the released one.
    """

    functions: tuple[str, ...]
    compared: int
    differing: int
    unreadable: int
    example: str = ""
    still_failing: tuple[str, ...] = ()


def compare(
    release: Release, files: Mapping[str, str | None], already: Sequence[str]
) -> Comparison:
    """Compare the repaired *files* with the released ones."""
    wanted = [
        (str(release.repo / file), name)
        for file, text in files.items()
        if file.endswith(".py")
        for name in changed_functions(_released(release, file), text or "")
    ]
    with tempfile.TemporaryDirectory(prefix="uncaged-bench-") as name:
        scratch = Path(name)
        recorded = scratch / "recorded"
        release.restore()
        record = {"UNCAGED_RECORD": json.dumps(wanted), "UNCAGED_RECORDED": str(recorded)}
        run_tests(release, scratch, ["-p", "record_calls"], record)
        before, again = (_replay(release, scratch, recorded) for _ in range(2))
        _write(release, files)
        after = _replay(release, scratch, recorded)
        failing = set(failures(run_tests(release, scratch))) - set(already)
        unreadable = _unreadable(scratch)
    steady = [
        number
        for number, (_, outcome) in before.items()
        if outcome is not None and again.get(number) == before[number] and number in after
    ]
    differing = [number for number in steady if after[number] != before[number]]
    return Comparison(
        functions=tuple(name for _, name in wanted),
        compared=len(steady),
        differing=len(differing),
        unreadable=unreadable,
        example=_example(differing, before, after),
        still_failing=tuple(sorted(failing)),
    )


def changed_functions(released: str, repaired: str) -> list[str]:
    """Return the qualified names of the functions of *released* whose syntax trees differ; of all
    its functions if something outside of them differs.
    """
    try:
        before, after = _functions(released), _functions(repaired)
    except SyntaxError:
        return []
    names = [name for name in before if name]
    if before.get("") != after.get(""):
        return names
    return [name for name in names if before[name] != after.get(name)]


def _functions(text: str) -> dict[str, str]:
    """Return the trees of the outermost functions by qualified name; the tree without them under
    the empty name.
    """
    found: dict[str, str] = {}
    tree = ast.parse(text)
    waiting: list[tuple[str, ast.AST]] = [("", tree)]
    while waiting:
        prefix, node = waiting.pop(0)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                name = prefix + child.name
                found[name] = found.get(name, "") + ast.dump(child)
                child.body, child.decorator_list, child.returns = [], [], None
                child.args = ast.parse("def f(): ...").body[0].args  # type: ignore[attr-defined]
            else:
                inner = f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix
                waiting.append((inner, child))
    return {**found, "": ast.dump(tree)}


def _released(release: Release, file: str) -> str:
    return release.released(file) if (release.pristine / file).is_file() else ""


def _write(release: Release, files: Mapping[str, str | None]) -> None:
    for file, text in files.items():
        path = release.repo / file
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())


def _replay(release: Release, scratch: Path, recorded: Path) -> Outcomes:
    if not recorded.is_file():
        return {}
    found: dict[int, tuple[bool, str | None]] = {}
    first = 0
    for _ in range(MAX_DEATHS):
        words = [str(INSIDE / "replay_calls.py"), str(recorded), str(VARIATIONS), str(first)]
        begin = time.monotonic()
        output = run_python(release, scratch, words, REPLAY_S)
        begun = None
        for line in output.splitlines():
            record = json.loads(line)
            begun = record["number"]
            if "outcome" in record:
                found[begun] = (record["varied"], record["outcome"])
                begun = None
        if begun is None or time.monotonic() - begin >= REPLAY_S:
            break
        found[begun] = (False, DIED)
        first = begun + 1
    return found


def _unreadable(scratch: Path) -> int:
    path = scratch / "recorded.unreadable"
    return int(path.read_text()) if path.is_file() else 0


def _example(differing: Sequence[int], before: Outcomes, after: Outcomes) -> str:
    if not differing:
        return ""
    number = differing[0]
    (varied, outcome), (_, now) = before[number], after[number]
    kind = "varied" if varied else "recorded"
    return f"{kind} call {number}: {str(outcome)[:300]} → {str(now)[:300]}"
