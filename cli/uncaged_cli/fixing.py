"""Report of a fix: how a thread failed, the change that is proposed, and its evidence."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncaged_bundles.errors import UncagedError, without_thread

from .display import json_output
from .display.output import Styled, next_step, note, result
from .inputs.stores import on_same_store
from .runtime import now_ms

if TYPE_CHECKING:
    from uncaged_capture.fixing.start import StartedFix
    from uncaged_engine.api import Engine, ThreadView

EXIT_UNFIXED = 3


def fix_if_declared(engine: Engine, view: ThreadView) -> None:
    """Fix the flow of a failed thread if its descriptor says ``"onFailure": "fix"``."""
    from uncaged_engine.threads.ending import is_fixable

    if not is_fixable(view, engine.store):
        return
    if engine.bundle(view.summary.hash).descriptor.raw.get("onFailure") != "fix":
        return
    try:
        fix_thread(engine, view.summary.thread_id, agents={}, agent_settings={}, as_json=False)
    except UncagedError as exc:
        note(f"not fixed: {without_thread(exc)}")


def fix_thread(
    engine: Engine,
    thread: str,
    *,
    agents: Mapping[str, str],
    agent_settings: Mapping[str, Mapping[str, object]],
    as_json: bool,
) -> int:
    """Fix the flow of a thread, print the report, and return the exit code."""
    from uncaged_capture.fixing.start import remove_directory, result_of, start_fix
    from uncaged_tools.flows import wait

    started = start_fix(
        engine,
        thread,
        agents=agents,
        agent_settings=agent_settings,
        directory=Path.cwd(),
        environment=dict(os.environ),
        now_ms=now_ms(),
    )
    if not as_json:
        show_failure(started)
    done = wait(engine, started.thread)
    data = result_of(engine.thread(started.thread).records)
    if done.status in ("completed", "failed", "killed"):
        remove_directory(started)
    report: dict[str, Any] = data["data"] if isinstance(data.get("data"), dict) else {}
    if as_json:
        json_output.document(document(engine, started, done.message, report))
    elif report.get("proposalId"):
        show_proposal(engine, started, report)
    else:
        note(done.message)
        show_evidence(report)
        next_step(f"uncaged-workflow thread {started.thread} --full")
        if not agents:
            next_step(f"uncaged-workflow fix {started.failed.id} --agent NAME")
        next_step(f"uncaged-workflow edit {started.failed.flow} --help")
    return 0 if report.get("state") == "open" else EXIT_UNFIXED


def show_failure(started: StartedFix) -> None:
    """Print how the thread failed."""
    failed, case = started.failed, started.failed.case
    at = "at " if case.failed is not None else ""
    result(f"{failed.flow}@{failed.bundle.hash} failed {at}{case.place}: {case.word}")
    result(f"  {case.cause}")
    note(f"thread {started.thread} fixes it")


def show_proposal(engine: Engine, started: StartedFix, report: Mapping[str, Any]) -> None:
    """Print what was proposed: new permissions, the change, the evidence, the commands."""
    from uncaged_engine.services.flows import compare

    from .display.changes import coloured
    from .verbs.proposal import show_contradictions

    proposals = engine.proposals
    version = proposals.versions(proposals.find(str(report["proposalId"])))
    show_contradictions(version)
    if version.widened:
        result(Styled("It asks to be allowed more:", "yellow"))
        for sentence in version.widened:
            result(f"  - {sentence}")
    result(str(report.get("change", "")))
    for section in compare(version.before, version.after):
        result(Styled(section.title, "bright_black"))
        for line in section.lines:
            result("  ", coloured(line))
    show_evidence(report)
    result(f"proposal {version.proposal.id}, {version.proposal.state}")
    if version.proposal.state != "open":
        note("the same change was proposed before; it is not proposed again")
        return
    more = " --contradicted" if version.contradictions else ""
    next_step(f"uncaged-workflow proposal accept {version.proposal.id}{more}")
    if again := started.failed.case.done_again:
        listed = ", ".join(map(str, again))
        note(f"the fork starts at a loaded page, and does again what acted on it: step {listed}")
    next_step(finishing_command(engine, started, report))


def finishing_command(engine: Engine, started: StartedFix, report: Mapping[str, Any]) -> str:
    """Return the command that does what the failed thread did not, with the accepted version: a
    fork of it, or a new run where a default or a type was changed, since a fork keeps the values.
    """
    import json
    import shlex

    from uncaged_capture.fixing.values import changed_values, lost_values

    failed = started.failed
    proposals = engine.proposals
    version = proposals.versions(proposals.find(str(report["proposalId"])))
    changed = changed_values(failed.case.params, version.before, version.after, Path.cwd())
    if not changed:
        return f"uncaged-workflow fork {failed.id} --at {failed.case.fork_at} --on {failed.flow}"
    words = [f"uncaged-workflow run {failed.flow}"]
    if failed.case.prompt:
        words.append(f"--prompt {shlex.quote(failed.case.prompt)}")
    lost = lost_values(failed.case.params, version.before, version.after)
    written = dict.fromkeys(lost, "VALUE")  # as the caller wrote it, which is not recorded
    for name, value in {**failed.case.params, **changed, **written}.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        words.append(f"--param {shlex.quote(f'{name}={text}')}")
    return " ".join(words)


def show_evidence(report: Mapping[str, Any]) -> None:
    """Print the evidence of the last proof, if there was one."""
    from .verbs.proposal import evidence_lines

    if "evidence" not in report:
        return
    result(Styled("evidence", "bright_black"))
    for line in evidence_lines(report["evidence"]):
        result(f"  {line}")


def document(
    engine: Engine, started: StartedFix, message: str, report: Mapping[str, Any]
) -> dict[str, object]:
    """Return the report as JSON data."""
    failed, case = started.failed, started.failed.case
    return {
        "threadId": failed.id,
        "flow": failed.flow,
        "hash": failed.bundle.hash,
        "step": case.place,
        "error": case.word,
        "cause": case.cause,
        "fixThreadId": started.thread,
        "message": message,
        "change": report.get("change", ""),
        "proposalId": report.get("proposalId"),
        "problems": list(report.get("problems", [])),
        "evidence": report.get("evidence", {}),
        "finish": on_same_store(finishing_command(engine, started, report))
        if report.get("state") == "open"
        else "",
    }
