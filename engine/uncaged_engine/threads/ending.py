"""Report on a thread that stopped: exit code, message, and the next useful commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from uncaged_bundles.clean import clean, clean_line, shorten
from uncaged_bundles.errors import EngineBug, UncagedError
from uncaged_bundles.storage.registry import Registry

from ..effect_kinds import KNOWN
from ..stores.endings import UNSUCCESSFUL
from .timeline import Timeline

if TYPE_CHECKING:
    from uncaged_bundles.storage.store import Store

    from ..state.failure import BundleFailure
    from ..state.observe import ThreadSummary, ThreadView

EXIT_CODES: Mapping[str, int] = {
    "completed": 0,
    "failed": 3,
    "killed": 3,
    "unknown": 3,
    "corrupt": 3,
    "interrupted": 3,
    "limit": 6,
    "paused": 8,
    "waiting": 8,
    "running": 8,
}
EXIT_UNSUCCESSFUL = 3
EXIT_ENVIRONMENT = 4
SOURCE_COLUMNS = 200
HIGHER: Mapping[str, Callable[[float], str]] = {
    "maxRounds": lambda value: f"--max-rounds {value + 10:.0f}",
    "maxSteps": lambda value: f"--max-steps {value + 10:.0f}",
    "maxCost": lambda value: f"--max-cost {2 * value or 1:g}",
    "maxTokens": lambda value: f"--max-tokens {2 * value or 1000:.0f}",
    "maxJournalBytes": lambda value: f"--max-journal {2 * value or 1 << 20:.0f}",
    "bundleSeconds": lambda value: f"--bundle-time {max(60.0, 4 * value):.0f}s",
    "maxSeconds": lambda value: f"--max-time {2 * value or 60:.0f}s",
}
"""For each limit, the option that raises it far enough to go on. The argument is the limit, or the
amount used if that is more.
"""


NOTHING_USED: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the command prints about a thread that stopped.

    word: the status, or ``unsuccessful`` where the result says ``success: false``.
    branch: the result's branch. details: lines below the message: where the bundle failed, and its
    trace.
    """

    word: str
    exit_code: int
    message: str
    branch: str | None
    commands: tuple[str, ...]
    details: tuple[str, ...] = ()


def ending(
    *,
    thread_id: str,
    status: str,
    end: Mapping[str, object] | None,
    message: str,
    last_void: str,
    repository: str | None,
    wants_fields: bool = False,
    used: Mapping[str, float] = NOTHING_USED,
    undecided: Sequence[str] = (),
    report: Path | None = None,
    failure: BundleFailure | None = None,
    only_branch: str | None = None,
    last_outside: int = 0,
    is_merged: bool = False,
    healed: bool = False,
    fixable: bool = False,
) -> Ending:
    """Return the report on a thread.

    Args:
        end: its end record, if it has one. message: the reason without one.
        last_void: the kind of the void that closed the last intent; empty without one.
        repository: the directory for git commands; None if the caller's is inside it.
        wants_fields: it waits for an answer in a role's place, field by field.
        used: the amount used of each limit, if known.
        undecided: effects that may have been performed; *message* names them.
        report: the worker's report of an engine bug. failure: the error that ended the bundle.
        last_outside: the last step that the bundle did not make itself; a later fork ends alike.
        healed: a step of a web flow used another element than the recorded one.
        fixable: if it failed, `fix` may propose another version of its flow.
        is_merged: the checkout has the branch's commits, or the branch is gone.
        only_branch: the only branch to believe; None for any. An imported result may name another.
    """
    result = (end or {}).get("result")
    result = result if isinstance(result, Mapping) else {}
    successful = status == "completed" and result.get("success", True) is not False
    branch = _branch_of(result, only_branch)
    return Ending(
        word=UNSUCCESSFUL if status == "completed" and not successful else status,
        exit_code=_exit_code(status, successful=successful, last_void=last_void)
        if report is None
        else EngineBug.exit_code,
        message=_message(result, {} if undecided else end, message)
        if report is None
        else _bug_message(report),
        branch=branch,
        commands=_next_commands(
            thread_id=thread_id,
            status=status,
            successful=successful,
            branch=branch,
            last_void=last_void,
            end=end,
            repository=repository,
            wants_fields=wants_fields,
            used=used,
            undecided=bool(undecided),
            last_outside=last_outside,
            is_merged=is_merged,
            healed=healed,
            fixable=fixable,
        ),
        details=() if failure is None else tuple(_failure_lines(failure)),
    )


def _branch_of(result: Mapping[str, object], only_branch: str | None) -> str | None:
    """Return the branch that a result names; None for a name that git would read as an option, or
    for another thread's.
    """
    data = result.get("data")
    branch = data.get("branch") if isinstance(data, Mapping) else None
    if not isinstance(branch, str) or branch.startswith("-") or only_branch not in (None, branch):
        return None
    return clean_line(branch)


def ending_of(
    view: ThreadView, store: Store, directory: Path, *, is_merged: bool = False
) -> Ending:
    """Return the report on a thread as it is now on disk.

    Args:
        directory: the caller's working directory. is_merged: as for `ending`.
    """
    timeline = Timeline()
    for record in view.records:
        timeline.add(record)
    return ending(
        thread_id=view.summary.thread_id,
        status=view.summary.status,
        end=view.end,
        message=view.summary.message,
        last_void=timeline.last_void,
        repository=repository_elsewhere(view.start, directory),
        wants_fields="fields" in timeline.wait,
        used={"maxCost": view.summary.spent.cost, "maxTokens": view.summary.spent.tokens},
        undecided=view.summary.undecided,
        report=report_of(view.summary, store.run),
        only_branch=own_branch(view.start) if view.summary.imported else None,
        failure=view.failure,
        last_outside=timeline.last_outside,
        healed=timeline.healed,
        is_merged=is_merged,
        fixable=is_fixable(view, store),
    )


def is_fixable(view: ThreadView, store: Store) -> bool:
    """Whether a thread failed, or lacks something, and ran the present version of a flow that was
    built from a recipe, a script or a definition and is not trusted.
    """
    summary = view.summary
    failed = summary.status == "failed" or summary.success is False
    if summary.imported or not (failed or summary.status == "paused"):
        return False
    try:
        present = Registry(store).flow(summary.name)
        if present is None or present.hash != summary.hash:
            return False
        if store.load_descriptor(summary.hash, KNOWN).policy.trusted:
            return False
        # 35 ms of CPU that only a failure takes
        from uncaged_bundles.builders.recipes.recipe_flow import flow_of
        from uncaged_bundles.builders.written_definition import read_definition

        bundle = store.load_bundle(summary.hash, KNOWN)
        return flow_of(bundle) is not None or read_definition(bundle) is not None
    except UncagedError:
        return False  # the bundle is gone or damaged


def report_of(summary: ThreadSummary, directory: Path) -> Path | None:
    """Return the worker's report of the engine bug that interrupted a thread, if one did."""
    if summary.status != "interrupted":
        return None
    for path in sorted(directory.glob(f"report-*-{summary.thread_id}.txt"), reverse=True):
        written_ms = path.name.split("-")[1]
        if written_ms.isdecimal() and int(written_ms) >= summary.updated_ms:
            return path
    return None


def repository_elsewhere(start: Mapping[str, object], directory: Path) -> str | None:
    """Return the thread's repository when *directory* is not inside it."""
    workspace = start.get("workspace")
    repository = workspace.get("repository") if isinstance(workspace, Mapping) else None
    if not isinstance(repository, str) or directory.is_relative_to(repository):
        return None
    return repository


def own_branch(start: Mapping[str, object]) -> str:
    """Return the branch of a thread's workspace; empty if it has none."""
    workspace = start.get("workspace")
    return str(workspace.get("branch")) if isinstance(workspace, Mapping) else ""


def _failure_lines(failure: BundleFailure) -> Iterator[str]:
    """Yield type and place of an error, the bundle's line with its number, and the trace."""
    place = (
        f" at line {failure.line} of the bundle, in {failure.function}"
        if failure.line is not None
        else ""
    )
    yield clean_line(f"{failure.type}{place}")
    if failure.source:
        yield f"{failure.line:>6} | {shorten(failure.source, SOURCE_COLUMNS)}"
    if len(failure.trace) > 1 or failure.line is None:
        yield from (f"  {shorten(frame, SOURCE_COLUMNS)}" for frame in failure.trace)


def _exit_code(status: str, *, successful: bool, last_void: str) -> int:
    if status == "completed":
        return 0 if successful else EXIT_UNSUCCESSFUL
    if status == "paused" and last_void == "environment":
        return EXIT_ENVIRONMENT
    return EXIT_CODES.get(status, EXIT_UNSUCCESSFUL)


def _bug_message(report: Path) -> str:
    return f"the worker met a bug of ours; the report is in {report}"


def _message(result: Mapping[str, object], end: Mapping[str, object] | None, message: str) -> str:
    if result.get("message"):
        return clean(str(result["message"])).strip()
    error = (end or {}).get("error")
    if isinstance(error, Mapping):
        return (
            clean(str(error.get("message") or error.get("kind") or "")).strip()
            or clean(message).strip()
        )
    return clean(str(error or (end or {}).get("message") or message)).strip()


def _next_commands(
    *,
    thread_id: str,
    status: str,
    successful: bool,
    branch: str | None,
    last_void: str,
    end: Mapping[str, object] | None,
    repository: str | None,
    wants_fields: bool,
    used: Mapping[str, float],
    undecided: bool,
    last_outside: int,
    is_merged: bool,
    healed: bool,
    fixable: bool,
) -> tuple[str, ...]:
    program = "uncaged-workflow"
    fix = (f"{program} fix {thread_id}",) if fixable else ()
    resume = (
        f"{program} resume {thread_id}{f' {_raised(end or {}, used)}' if status == 'limit' else ''}"
    )
    resumes = (
        (f"{resume} --redo", f"{resume} --skip") if undecided or status == "unknown" else (resume,)
    )
    match status:
        case "completed" if successful:
            if healed:
                return (f"{program} proposals --all",)
            git = f"git -C {shlex.quote(repository)}" if repository else "git"
            return (f"{git} merge {shlex.quote(branch)}",) if branch and not is_merged else ()
        case "failed" if _is_replay_failure(end):
            return (f"{program} verify {thread_id}",)
        case "completed" | "failed":
            look = (
                (f"{program} thread {thread_id} --full",)
                if status == "completed" or not last_outside
                else ()
            )
            again = (f"{program} fork {thread_id} --at {last_outside - 1}",) if last_outside else ()
            return (*look, *again, *fix)
        case "corrupt":
            return (f"{program} verify {thread_id}", f"{program} fork {thread_id} --at N")
        case "paused" if last_void == "environment":
            return (f"{program} doctor", *resumes, *fix)
        case "paused" | "interrupted" | "killed" | "limit" | "unknown":
            return resumes
        case "waiting":
            return (f"{program} answer {thread_id}{'' if wants_fields else ' TEXT'}",)
        case "running":
            return (f"{program} thread {thread_id} --follow",)
        case _:
            return (f"{program} thread {thread_id}",)


def _is_replay_failure(end: Mapping[str, object] | None) -> bool:
    """Whether the bundle diverged from its journal: a fork would replay the same lines."""
    error = (end or {}).get("error")
    return isinstance(error, Mapping) and error.get("kind") == "replay"


def _raised(end: Mapping[str, object], used: Mapping[str, float]) -> str:
    """Return the option that raises the limit at which a thread stopped."""
    limit, value = str(end.get("limit")), end.get("value")
    higher = HIGHER.get(limit)
    return (
        higher(max(value, used.get(limit, 0)))
        if higher is not None and isinstance(value, int | float)
        else "--max-rounds N"
    )
