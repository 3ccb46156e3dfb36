"""Proof of a changed flow: what a machine can check before a person decides.

A proof runs nothing for which the flow's present version has no permission: a version with a wider
policy is replayed, and tried only after a person granted it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.builders.recipes.recipe import load_json
from uncaged_bundles.clean import shorten
from uncaged_bundles.errors import BundleError
from uncaged_bundles.policy import widening
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.api import Engine
from uncaged_engine.door.effects import Cancel
from uncaged_engine.services.proposals import CONTRADICTIONS
from uncaged_engine.services.registry import KNOWN

from .case import EXAMPLE
from .failed import FLOW_FILE, FailedThread
from .past_values import PastValues, emptied, try_past_values
from .source import built_from, source_of
from .trying import SHOWN, Trials, examples, listed_examples, tried
from .values import changed_values, lost_values

__all__ = ["Proof", "changed_bundle", "prove"]

MAX_LISTED = 20
CONTENTS = frozenset(
    {"script", "steps", "code", "moderator", "graph", "roles", "policy", "examples", "parameters"}
)
"""Keys of a source whose changes are shown by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """after: the changed bundle. evidence: JSON data. problems: why the proof did not hold; none if
    it did.
    """

    after: Bundle | None
    evidence: Mapping[str, object]
    problems: tuple[str, ...]

    def document(self) -> dict[str, object]:
        """Return the proof as JSON data."""
        return {
            "held": not self.problems,
            "to": None if self.after is None else self.after.hash,
            "problems": list(self.problems),
            "evidence": dict(self.evidence),
        }


def changed_bundle(text: str, failed: FailedThread) -> Bundle:
    """Return the bundle of the text of a changed ``flow.json``.

    Raises:
        BundleError: it cannot be built, or is another flow.
    """
    name = failed.bundle.descriptor.name
    try:
        recipe = load_json(text.encode())
        source = built_from(recipe, name)
        return read_bundle(source, KNOWN, check_schemas=True)
    except BundleError as exc:
        raise BundleError(f"{FLOW_FILE}: {exc}") from exc


def prove(
    engine: Engine,
    failed: FailedThread,
    text: str,
    *,
    ignored: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    cancel: Cancel,
) -> Proof:
    """Check a changed ``flow.json`` against everything that is recorded, and try it.

    Args:
        ignored: files besides it that were changed. directory, environment: those of trials.
            cancel: ends them.
    """
    case = failed.case
    head: dict[str, object] = {"error": case.sign, "cause": shorten(case.cause, SHOWN)}
    if ignored:
        head["ignored"] = list(ignored)[:MAX_LISTED]
    try:
        after = changed_bundle(text, failed)
    except BundleError as exc:
        return Proof(after=None, evidence=head, problems=(str(exc),))
    if after.hash == failed.bundle.hash:
        return Proof(after=None, evidence=head, problems=(f"{FLOW_FILE} is unchanged",))
    if after.trusted:
        return Proof(after=None, evidence=head, problems=("a fix cannot make a flow trusted",))
    wider = widening(failed.bundle.descriptor.policy, after.descriptor.policy, KNOWN)
    may_run = not wider or engine.registry.granted(after)
    former, trials = (
        Trials(engine, bundle, directory, environment, cancel, may_run=may_run)
        for bundle in (failed.bundle, after)
    )
    replays, problem, altered = _replays(engine, failed, after)
    ran = list(examples(trials, failed.bundle, after))
    changed = changed_values(case.params, failed.bundle, after, directory)
    lost = lost_values(case.params, failed.bundle, after)
    trial, unsuccessful, message = tried(trials, case, changed, lost)
    past = PastValues() if unsuccessful else try_past_values(engine, failed, former, trials)
    empty = emptied(engine, failed, message) if message is not None else None
    contradicted = [*past.contradicted, *([empty] if empty else [])]
    refuted = [*altered, *past.refuted]
    if case.word == EXAMPLE:  # past results may be wrong as well, so a person has to decide
        contradicted, refuted = [*refuted, *contradicted], []
    found = list(_attention(failed.bundle, after))
    evidence: dict[str, object] = {
        **({CONTRADICTIONS: contradicted} if contradicted else {}),
        "policy": list(wider) or "not wider",
        **({"attention": found} if found else {}),
        **head,
        **replays,
        **({"pastValues": {"tried": past.tried, "same": past.same}} if past.tried else {}),
        "examples": ran or "none",
        "trial": trial,
    }
    problems = [
        *([problem] if problem else []),
        *refuted,
        *(
            f"the example {one['sentence']!r} fails: {one['message']}"
            for one in ran
            if one["outcome"] == "failed"
        ),
        *([unsuccessful] if unsuccessful else []),
    ]
    return Proof(after=after, evidence=evidence, problems=tuple(problems))


def _replays(
    engine: Engine, failed: FailedThread, after: Bundle
) -> tuple[dict[str, object], str | None, list[str]]:
    """Return the evidence of replays: the failed thread's steps before the failing one, and all
    other threads of the flow; how the former differ; and which threads with success would have had
    another result.
    """
    keep = failed.case.keep
    prefix: object = "not replayed"
    problem: str | None = f"thread {failed.id} could not be replayed"
    different: list[dict[str, object]] = []
    altered: list[str] = []
    others = 0
    for one in engine.check(failed.flow, after):
        if one.thread_id == failed.id:
            same = one.identical or one.step > keep
            prefix = f"{keep} step{'' if keep == 1 else 's'}, identical" if same else one.message
            problem = None if same else f"a step before the failing one changes: {one.message}"
            continue
        others += 1
        if not one.identical:
            different.append(
                {"thread": one.thread_id, "step": one.step, "how": shorten(one.message, SHOWN)}
            )
            if one.results is not None and all(map(_is_success, one.results)):
                old, new = (shorten(_shown(result), SHOWN // 3) for result in one.results)
                altered.append(f"{one.thread_id} had success with {old}; its result is {new} now")
    altered = altered[:MAX_LISTED]
    threads = {"replayed": others, "identical": others - len(different)}
    if different:
        return (
            {
                "prefix": prefix,
                "threads": {**threads, "different": different[:MAX_LISTED]},
            },
            problem,
            altered,
        )
    return {"prefix": prefix, "threads": threads}, problem, altered


def _is_success(result: object) -> bool:
    return not isinstance(result, Mapping) or result.get("success", True) is True


def _shown(result: object) -> str:
    data = result.get("message") or result.get("data") if isinstance(result, Mapping) else result
    return json.dumps(data, ensure_ascii=False)


def _attention(before: Bundle, after: Bundle) -> Iterator[str]:
    """Yield changes of what checks a flow, which a person has to see."""
    old, new = listed_examples(before), listed_examples(after)
    for raw in old:
        if raw not in new:
            yield f"an example was changed or removed: {shorten(json.dumps(raw, ensure_ascii=False), SHOWN)}"
    if not new and old:
        yield "no example is left"
    first, second = (dict(source_of(one)) for one in (before, after))
    for key in sorted({*first, *second} - CONTENTS):
        if first.get(key) != second.get(key):
            yield f"{key} was changed"
    roles = after.descriptor.roles
    for name, role in before.descriptor.roles.items():
        if name in roles and roles[name].schema != role.schema:
            yield f"what checks the answers of the role {name!r} was changed"
