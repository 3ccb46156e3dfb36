"""Summary of what coders did: the repaired tests, other edits that pass as well, and what a person
should look at. It only reads the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..task import Task
from ..validation.validator import PlausiblePatch
from .phases import metas

FINISHED = ("phase-done", "all-done")
DOUBTFUL = {
    "hide": "The edit may only keep the test from the failing line",
    "delete": "The only edit that passes deletes code",
    "weaken": "The only edit that passes weakens a condition or a value",
}


def alternatives_of(patch: PlausiblePatch) -> Iterator[str]:
    """Yield sentences on the other edits that pass all tests, and where they behave differently."""
    other = patch.alternatives
    if other.passing < 2:
        return
    if not other.inputs:
        yield f"{other.passing} edits pass all tests; they could not be compared with other arguments."
    elif other.groups < 2:
        yield f"{other.passing} edits pass all tests, and they behave alike on {other.inputs} other calls."
    else:
        yield (
            f"{other.passing} edits pass all tests; on {other.inputs} other calls they behave in {other.groups} ways. "
            f"The chosen one agrees with {other.agreeing} of {other.passing}."
        )
    for difference in other.differences:
        yield (
            f"They differ for {difference.call}: {difference.chosen} with the chosen edit, {difference.other} with {difference.other_edit}."
        )


def doubts_of(patch: PlausiblePatch) -> Iterator[str]:
    """Yield what makes a patch doubtful: no majority for it, or the kind of edit that it is."""
    other = patch.alternatives
    if other.groups > 1 and 2 * other.agreeing <= other.passing:
        yield "The edits that pass behave differently, and none has a majority"
    if (words := DOUBTFUL.get(patch.candidate.edit.nature)) is not None:
        yield words
    if patch.judgement.doubt:
        yield f"The edit {patch.judgement.doubt}"
    if patch.newly_unused:
        yield "The edit leaves a variable unused"


def summaries(task: Task) -> list[str]:
    """Return the summaries of all finished coder steps."""
    return [summary for meta in _finished(task) if (summary := str(meta.get("summary", "")))]


def texts(task: Task, key: str) -> list[str]:
    """Return the texts under *key* in the data of all finished coder steps, each once."""
    found = [str(text) for meta in _finished(task) for text in _list(meta.get(key))]
    return list(dict.fromkeys(found))


def doubts(task: Task) -> list[str]:
    """Return what a person should look at before the change is merged."""
    return [f"{text}: review this change." for text in texts(task, "doubts")]


def relations(task: Task) -> list[str]:
    """Return how the prompt is related to the planned tests, each way once."""
    found = []
    for phase in _list(task.last_meta("planner").get("phases")):
        relation = phase.get("relation") if isinstance(phase, Mapping) else None
        if isinstance(relation, Mapping):
            found.append(str(relation.get("text")))
    return list(dict.fromkeys(found))


def _finished(task: Task) -> list[Mapping[str, object]]:
    return [meta for meta in metas(task, "coder") if meta.get("status") in FINISHED]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
