"""The choice among candidates that all pass, by their behaviour on replayed calls."""

from __future__ import annotations

import pytest
from uncaged_repair.edits.edit import SourceEdit
from uncaged_repair.edits.spans import read_source
from uncaged_repair.harness.baseline import Baseline
from uncaged_repair.harness.host import RunRequest
from uncaged_repair.harness.results import (
    CallOutcome,
    Collected,
    ComparedCall,
    ComparedInput,
    RunReport,
    TestResult,
)
from uncaged_repair.localise.queue import PatchCandidate
from uncaged_repair.validation.differential import agreements, behaviours_of, choose
from uncaged_repair.validation.validator import Goal, PatchValidator, PlausiblePatch

SOURCE = read_source("m.py", b"def f(a, b):\n    return a\n")


def patch(number: int, after: str, *, kind: str = "k", unused: int = 0) -> PlausiblePatch:
    edit = SourceEdit(
        path="m.py",
        start=SOURCE.data.rindex(b"a\n"),
        end=len(SOURCE.data) - 1,
        before="a",
        after=after,
        kind=kind,
        line=2,
        weight=1.0,
    )
    return PlausiblePatch(
        number=number,
        candidate=PatchCandidate(score=1.0, edit=edit, source=SOURCE),
        fixed=("t",),
        complete=True,
        newly_unused=unused,
    )


def call(*rows: str, direct: bool = True) -> ComparedCall:
    """A call with one input for each row; a letter for each edit and, last, for the original; `-`
    for none, a capital for an exception.
    """
    inputs = [
        ComparedInput(
            arguments=f"a={number}",
            outcomes=tuple(
                None
                if letter == "-"
                else CallOutcome(
                    digest=letter,
                    text=f"gives {letter}",
                    normal=letter.islower(),
                    direct=direct,
                )
                for letter in row
            ),
        )
        for number, row in enumerate(rows)
    ]
    return ComparedCall(function="f", inputs=tuple(inputs))


class World:
    """Fake sandbox that answers a comparison with fixed calls."""

    def __init__(self, *calls: ComparedCall) -> None:
        self._calls = calls
        self.asked: list[RunRequest] = []

    def run(self, request: RunRequest) -> RunReport:
        self.asked.append(request)
        return RunReport(results=(), end="finished", cpu_s=0.5, compared=self._calls)


def validator() -> PatchValidator:
    failing = TestResult(
        name="t",
        outcome="failed",
        cpu_s=0.1,
        error=None,
        frames=(),
        lines={},
        held=(),
        attributes={},
    )
    baseline = Baseline(
        collected=Collected(
            tests=("t", "g"), errors=(), root="", imported=(), called=(), end="finished"
        ),
        outcomes={"t": "failed", "g": "passed"},
        times_s={},
        failing={"t": failing},
        unsteady=(),
        passed={"g": frozenset({("m.py", 2)})},
    )
    return PatchValidator(Goal(primary="t", group=("t",), baseline=baseline), least_cpu_s=0.2)


def chosen(world: World, *patches: PlausiblePatch) -> PlausiblePatch:
    return choose(world, validator(), patches)[0]


def test_the_behaviour_that_most_others_share_wins() -> None:
    """An edit that is smaller and earlier loses to two that agree with each other on each input
    where it is alone.
    """
    odd, first, second = patch(0, "b"), patch(1, "a + b * 2"), patch(2, "a + b + b", kind="l")
    found = chosen(World(call("xxxo", "xyyo", "xyzo")), odd, first, second)
    assert found.number == 1
    assert found.alternatives.passing == 3
    assert found.alternatives.groups == 3
    assert found.alternatives.inputs == 3


def test_ten_spellings_of_one_behaviour_count_as_one() -> None:
    """The votes of a behaviour are the places and kinds of its edits, not their number."""
    spellings = [patch(number, f"b * {number}") for number in range(10)]
    others = [patch(10, "a - b"), patch(11, "b - a", kind="l")]
    rows = ["x" * 10 + "yyo", "x" * 10 + "yzo"]
    behaviours = behaviours_of([*spellings, *others], [call(*rows)])
    assert [(len(found.patches), found.votes) for found in behaviours] == [(10, 1), (1, 1), (1, 1)]
    assert agreements(behaviours) == [0.0, 0.25, 0.25]


def test_an_exchanged_word_is_preferred_to_an_added_one() -> None:
    """Where no behaviour has a majority, `b` for `a` comes before `a` with something around it."""
    found = chosen(World(call("xyo")), patch(0, "str(a)"), patch(1, "b"))
    assert found.number == 1


def test_equal_syntax_trees_are_compared_once() -> None:
    """Spaces and parentheses make no other candidate, but each of them has passed."""
    world = World(call("xyo"))
    found = chosen(world, patch(0, "a+b"), patch(1, "(a + b)"), patch(2, "a - b"))
    asked = world.asked[0].compare
    assert asked is not None
    assert len(asked.edits) == 2
    assert (found.alternatives.passing, found.alternatives.groups) == (3, 2)
    assert found.alternatives.agreeing == 2


def test_only_an_observed_edit_agrees() -> None:
    """An edit whose code did not run in any call is not counted as agreeing."""
    patches = [patch(number, text) for number, text in enumerate(("b", "a + b", "a - b"))]
    assert chosen(World(call("xx-o", "xx-o")), *patches).alternatives.agreeing == 2
    assert chosen(World(), *patches).alternatives.agreeing == 1


def test_a_severe_edit_is_not_chosen_by_votes() -> None:
    """The order of severity comes before agreement."""
    severe = [patch(0, "5", unused=1), patch(1, "2 + 3", kind="l", unused=1)]
    found = chosen(World(call("xyxo", "xyzo")), patch(2, "a * b * 2"), *severe)
    assert found.number == 2


def test_doubtful_edits_do_not_outvote_the_others() -> None:
    """Two edits that leave a variable unused agree with one edit on an input, another edit agrees
    with the third: the third wins. Without the doubt, the first does.
    """
    calls = World(call("xyyxxo", "xyzwvo"))
    plain = [patch(0, "b"), patch(1, "a + b"), patch(2, "a * b")]
    kinds = (("a - b", "l"), ("a / b", "m"))
    for unused, winner in ((1, 1), (0, 0)):
        others = [
            patch(number, text, kind=kind, unused=unused)
            for number, (text, kind) in enumerate(kinds, 3)
        ]
        assert chosen(calls, *plain, *others).number == winner


def test_inputs_that_most_edits_refuse_count_little() -> None:
    """Agreement on results outweighs agreement on exceptions for perturbed nonsense."""
    patches = [patch(number, text) for number, text in enumerate(("b", "a + b", "a - b"))]
    behaviours = behaviours_of(patches, [call("xyyo", "XXYo", "XXYo")])
    scores = agreements(behaviours)
    assert scores[1] > scores[0] > 0
    assert scores[1] > scores[2]


def test_an_edit_elsewhere_that_did_not_run_abstains() -> None:
    """An indirect outcome that equals the original's shows nothing; another one does."""
    patches = [patch(0, "b"), patch(1, "a + b")]
    together = behaviours_of(patches, [call("xox", direct=False)])
    assert [len(found.patches) for found in together] == [2]
    assert len(behaviours_of(patches, [call("xyo", direct=False)])) == 2


@pytest.mark.parametrize("calls", [(), (call("--o"),)])
def test_without_observed_calls_the_smallest_wins(calls: tuple[ComparedCall, ...]) -> None:
    """Where nothing could be compared, the order of the patches decides, and no behaviour is
    claimed to differ.
    """
    found = chosen(World(*calls), patch(0, "a + b * 2"), patch(1, "b"))
    assert found.number == 1
    assert found.alternatives.groups == 1
    assert found.alternatives.differences == ()


def test_the_only_candidate_is_not_compared() -> None:
    """One passing candidate costs no run."""
    world = World()
    assert chosen(world, patch(3, "b")).alternatives.passing == 1
    assert world.asked == []


def test_differences_name_the_call_and_both_results() -> None:
    """Up to three inputs are reported, one of each other behaviour first, and none on which both
    raise.
    """
    patches = [patch(number, text) for number, text in enumerate(("b", "a + b", "a - b"))]
    found = chosen(World(call("XYYo", "xyyo", "xyyo", "xyzo", "xyzo")), *patches)
    shown = found.alternatives.differences
    assert found.number == 1
    assert [(entry.call, entry.chosen, entry.other) for entry in shown] == [
        ("f(a=1)", "gives y", "gives x"),
        ("f(a=3)", "gives y", "gives z"),
        ("f(a=2)", "gives y", "gives x"),
    ]
    assert shown[0].other_edit.startswith("m.py:2 k: `return a`")
