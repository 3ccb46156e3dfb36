"""Differential stage: candidates that pass the whole suite, compared on the calls that the tests
make and on perturbed ones. The behaviour that most others share on an input is taken to be right.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from uncaged_bundles.syntax import parse_module

from ..harness.baseline import RequestRunner
from ..harness.host import Comparison, RunRequest
from ..harness.results import CallOutcome, ComparedCall
from .alternatives import MAX_DIFFERENCES, Alternatives, Difference
from .validator import PatchValidator, PlausiblePatch

MAX_TESTS = 24
COMPARE_CPU_S = 6.0
MAX_VOTES = 3
"""Largest weight of one behaviour, so that many spellings of it do not decide alone."""
DOUBTFUL_VOTE = 0.25
"""Weight of a behaviour to which only doubtful edits lead."""
EXCEPTION_WEIGHT = 0.25
"""Weight of an input on which most edits raise: mostly it is no valid one."""


@dataclass(slots=True, kw_only=True)
class Behaviour:
    """Patches with equal outcomes on all inputs, best first. outcomes: by input; None where they
    could not be observed.
    """

    patches: list[PlausiblePatch]
    outcomes: list[CallOutcome | None]

    @property
    def votes(self) -> float:
        """Return the number of places and kinds of edits that lead to this behaviour, limited. The
        doubtful ones do not count.
        """
        edits = [patch.candidate.edit for patch in self.patches if not patch.severity]
        places = {(edit.path, edit.line, edit.kind) for edit in edits}
        return min(MAX_VOTES, len(places)) or DOUBTFUL_VOTE


def choose(
    host: RequestRunner, validator: PatchValidator, patches: Sequence[PlausiblePatch]
) -> tuple[PlausiblePatch, float]:
    """Return the best of the passing *patches* with its alternatives, and the processor time that
    the comparison used.
    """
    ordered = sorted(patches, key=lambda patch: patch.key)
    spellings = _distinct(ordered)
    distinct = [same[0] for same in spellings]
    if len(distinct) == 1:
        alternatives = Alternatives(passing=len(patches), agreeing=len(patches))
        return replace(ordered[0], alternatives=alternatives), 0.0
    run = host.run(_request(validator, distinct))
    behaviours = behaviours_of(distinct, run.compared)
    scores = agreements(behaviours)
    best = min(
        range(len(behaviours)),
        key=lambda index: (
            behaviours[index].patches[0].key[:2],
            -scores[index],
            behaviours[index].patches[0].key,
        ),
    )
    alternatives = Alternatives(
        passing=len(patches),
        groups=len(behaviours),
        agreeing=_agreeing(behaviours[best], spellings, run.compared),
        inputs=sum(len(call.inputs) for call in run.compared),
        differences=_differences(behaviours, best, run.compared),
    )
    return replace(behaviours[best].patches[0], alternatives=alternatives), run.cpu_s


def behaviours_of(
    patches: Sequence[PlausiblePatch], compared: Sequence[ComparedCall]
) -> list[Behaviour]:
    """Group *patches*, which are sorted, by their outcomes. A patch that could not be observed
    joins the first group.
    """
    found: list[Behaviour] = []
    for number, patch in enumerate(patches):
        outcomes = [_visible(entry.outcomes, number) for call in compared for entry in call.inputs]
        for behaviour in found:
            if all(
                left is None or right is None or left.digest == right.digest
                for left, right in zip(behaviour.outcomes, outcomes, strict=True)
            ):
                behaviour.patches.append(patch)
                behaviour.outcomes = [
                    left or right for left, right in zip(behaviour.outcomes, outcomes, strict=True)
                ]
                break
        else:
            found.append(Behaviour(patches=[patch], outcomes=outcomes))
    return found


def agreements(behaviours: Sequence[Behaviour]) -> list[float]:
    """Return for each behaviour the mean share of the others' votes that agree with it, over the
    inputs on which they differ.
    """
    totals, weights = [0.0] * len(behaviours), [0.0] * len(behaviours)
    for outcomes in zip(*(behaviour.outcomes for behaviour in behaviours), strict=True):
        seen = [index for index, outcome in enumerate(outcomes) if outcome is not None]
        if len({outcomes[index].digest for index in seen}) < 2:
            continue
        normal = sum(behaviours[index].votes for index in seen if outcomes[index].normal)
        every = sum(behaviours[index].votes for index in seen)
        weight = 1.0 if 2 * normal >= every else EXCEPTION_WEIGHT
        for index in seen:
            agree = sum(
                behaviours[other].votes
                for other in seen
                if other != index and outcomes[other].digest == outcomes[index].digest
            )
            totals[index] += weight * agree / (every - behaviours[index].votes)
            weights[index] += weight
    return [
        round(total / weight, 3) if weight else 0.0
        for total, weight in zip(totals, weights, strict=True)
    ]


def _distinct(patches: Sequence[PlausiblePatch]) -> list[list[PlausiblePatch]]:
    """Group the patches whose syntax trees are equal, the best first."""
    found: dict[tuple[str, str], list[PlausiblePatch]] = {}
    for patch in patches:
        edit, source = patch.candidate.edit, patch.candidate.source
        key = edit.path, ast.dump(parse_module(edit.apply(source.data)))
        found.setdefault(key, []).append(patch)
    return list(found.values())


def _agreeing(
    chosen: Behaviour, spellings: Sequence[list[PlausiblePatch]], compared: Sequence[ComparedCall]
) -> int:
    """Return how many patches were observed to behave like the chosen one, itself included."""
    members = {patch.number for patch in chosen.patches}
    return sum(
        len(same)
        for index, same in enumerate(spellings)
        if same[0].number == chosen.patches[0].number
        or (same[0].number in members and _observed(index, compared))
    )


def _observed(number: int, compared: Sequence[ComparedCall]) -> bool:
    return any(
        _visible(entry.outcomes, number) is not None for call in compared for entry in call.inputs
    )


def _request(validator: PatchValidator, patches: Sequence[PlausiblePatch]) -> RunRequest:
    goal = validator.goal
    related = (name for patch in patches for name in validator.related(patch.candidate))
    tests = list(dict.fromkeys([*patches[0].fixed, *goal.group, *related]))
    fixed = [name for name in tests if name not in goal.group or name in patches[0].fixed]
    return RunRequest(
        tests=fixed[:MAX_TESTS],
        cpu_s=max(20.0, 4 * validator.cpu_s),
        wall_s=300.0,
        total_s=900.0,
        stop=True,
        compare=Comparison(
            edits=[(patch.candidate.edit.path, patch.candidate.result) for patch in patches],
            cpu_s=COMPARE_CPU_S,
        ),
    )


def _visible(outcomes: Sequence[CallOutcome | None], number: int) -> CallOutcome | None:
    """Return the outcome of an edit; None if it is the original's and the edited code may not have
    run.
    """
    outcome, original = outcomes[number], outcomes[-1]
    if outcome is None or outcome.direct:
        return outcome
    return None if original is None or outcome.digest == original.digest else outcome


def _differences(
    behaviours: Sequence[Behaviour], best: int, compared: Sequence[ComparedCall]
) -> tuple[Difference, ...]:
    """Return inputs on which the chosen behaviour differs from others, one for each of these
    first.
    """
    chosen = behaviours[best]
    calls = [f"{call.function}({entry.arguments})" for call in compared for entry in call.inputs]
    found: list[tuple[int, int, Difference]] = []
    for index, other in enumerate(behaviours):
        turn = 0
        for call, mine, its in zip(calls, chosen.outcomes, other.outcomes, strict=True):
            if index == best or mine is None or its is None or mine.digest == its.digest:
                continue
            if mine.text == its.text or not (mine.normal or its.normal):
                continue
            candidate = other.patches[0].candidate
            difference = Difference(
                call=call,
                chosen=mine.text,
                other=its.text,
                other_edit=candidate.edit.describe(candidate.source),
            )
            found.append((turn, index, difference))
            turn += 1
    found.sort(key=lambda item: item[:2])
    return tuple(difference for _, _, difference in found[:MAX_DIFFERENCES])
