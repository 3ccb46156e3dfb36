"""The order of a search, in a made-up world."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import replace

import pytest
from uncaged_repair.edits.edit import Nature, SourceEdit
from uncaged_repair.edits.spans import read_source
from uncaged_repair.harness.baseline import Baseline
from uncaged_repair.harness.host import RunRequest
from uncaged_repair.harness.results import Collected, RunReport, TestResult
from uncaged_repair.localise.queue import PatchCandidate
from uncaged_repair.validation.search import Budget, search
from uncaged_repair.validation.validator import Goal, PatchValidator, PlausiblePatch

SOURCE = read_source("m.py", b"def f(a, b):\n    print(a, b)\n    return a\n")
START = SOURCE.data.index(b"return")


def result(name: str, outcome: str, cpu_s: float = 0.001) -> TestResult:
    return TestResult(
        name=name,
        outcome=outcome,
        cpu_s=cpu_s,
        error=None,
        frames=(),
        lines={},
        held=(),
        attributes={},
    )


class World:
    """Fake sandbox in which the outcome of a test depends on the text of the file alone."""

    def __init__(self, outcome: Callable[[str, str], str], cost_s: float = 0.01) -> None:
        self._outcome, self._cost_s = outcome, cost_s
        self._lock = threading.Lock()
        self.asked: list[RunRequest] = []

    def run(self, request: RunRequest) -> RunReport:
        if request.compare is not None:  # no call is observed in this world
            return RunReport(results=(), end="finished", cpu_s=self._cost_s)
        with self._lock:
            self.asked.append(request)
        text = request.files["m.py"].decode()
        results = []
        for name in request.tests:
            outcome = self._outcome(name, text)
            slow = outcome.startswith("slow ")
            outcome = (
                ("timeout" if request.cpu_s < 1 else outcome.removeprefix("slow "))
                if slow
                else outcome
            )
            results.append(result(name, outcome))
            if request.stop and outcome != "passed" and name not in request.expected:
                break
        return RunReport(results=tuple(results), end="finished", cpu_s=self._cost_s)

    def texts(self) -> list[str]:
        """Return the changed line of each candidate in the order in which they were first asked
        for.
        """
        return list(
            dict.fromkeys(
                request.files["m.py"].decode().split("\n    ")[2].strip() for request in self.asked
            )
        )


def candidate(after: str, nature: Nature = "change", before: str = "return a") -> PatchCandidate:
    edit = SourceEdit(
        path="m.py",
        start=START,
        end=START + len(before),
        before=before,
        after=after,
        kind="k",
        line=3,
        weight=1.0,
        nature=nature,
    )
    return PatchCandidate(score=1.0, edit=edit, source=SOURCE)


def goal(
    *failing: str,
    green: Collection[str] = ("g",),
    unsteady: tuple[str, ...] = (),
    excluded: Collection[tuple[str, bytes]] = (),
) -> Goal:
    names = (*failing, *green)
    outcomes = {name: "failed" if name in failing else "passed" for name in names}
    baseline = Baseline(
        collected=Collected(
            tests=names, errors=(), root="", imported=(), called=(), end="finished"
        ),
        outcomes=outcomes,
        times_s=dict.fromkeys(names, 0.001),
        failing={name: result(name, "failed") for name in failing},
        unsteady=unsteady,
        passed={name: frozenset({("m.py", 3)}) for name in green},
    )
    return Goal(primary=failing[0], group=failing, baseline=baseline, excluded=excluded)


def budget(
    cpu_s: float = 100.0,
    candidates: int = 1000,
    until: float = 1.0,
    now: Callable[[], float] = lambda: 0.0,
) -> Budget:
    return Budget(cpu_s=cpu_s, candidates=candidates, until=until, clock=now)


def ignore(tried: int, path: str) -> None:
    assert (tried > 0, path) == (True, "m.py")


def repaired_by(*good: str) -> Callable[[str, str], str]:
    """The failing tests pass with one of the lines *good*; all others pass always."""
    return lambda name, text: (
        "passed"
        if name.startswith("g") or any(f"    {line}\n" in text for line in good)
        else "failed"
    )


def find(
    world: World,
    queue: list[PatchCandidate],
    wanted: Goal,
    paid: Budget | None = None,
    hosts: int = 1,
) -> PlausiblePatch | None:
    return search([world] * hosts, queue, wanted, paid or budget(), ignore).patch


def found_line(found: PlausiblePatch | None) -> str | None:
    return None if found is None else found.candidate.edit.after


def test_the_failing_test_decides_before_any_other_runs() -> None:
    """A candidate with which it still fails costs one test; only the others see the related tests
    and a fresh suite.
    """
    world = World(repaired_by("return b"))
    found = find(world, [candidate("return a + 1"), candidate("return b")], goal("t"))
    assert found_line(found) == "return b"
    assert [(list(request.tests), request.warm) for request in world.asked] == [
        (["t"], True),
        (["t"], True),
        (["g"], True),
        (["t", "g"], False),
    ]


def test_what_changes_least_wins_even_if_it_comes_later() -> None:
    world = World(repaired_by("return b + 1 - 1", "return b + 0"))
    queue = [candidate("return b + 1 - 1"), candidate("return 5"), candidate("return b + 0")]
    assert found_line(find(world, queue, goal("t"))) == "return b + 0"


@pytest.mark.parametrize("nature", ["delete", "weaken"])
def test_what_deletes_or_weakens_comes_last(nature: Nature) -> None:
    """A patch that deletes or weakens wins only if no other passes, however small it is."""
    world = World(repaired_by("pass", "return b * 2 - b"))
    severe = candidate("pass", nature)
    assert (
        found_line(find(world, [severe, candidate("return b * 2 - b")], goal("t")))
        == "return b * 2 - b"
    )
    assert found_line(find(world, [severe, candidate("return 7")], goal("t"))) == "pass"


def test_what_leaves_a_variable_unused_comes_after_what_does_not() -> None:
    source = read_source("m.py", b"def f(a, b):\n    c = a - b\n    return c\n")
    edits = [
        SourceEdit(
            path="m.py",
            start=31,
            end=39,
            before="return c",
            after=after,
            kind="k",
            line=3,
            weight=1.0,
        )
        for after in ("return 2", "return c * 2 - c")
    ]
    world = World(
        lambda name, text: (
            "passed" if name == "g" or "return 2" in text or "return c * 2" in text else "failed"
        )
    )
    found = find(
        world, [PatchCandidate(score=1.0, edit=edit, source=source) for edit in edits], goal("t")
    )
    assert found_line(found) == "return c * 2 - c"


def test_a_candidate_that_breaks_another_test_is_dropped() -> None:
    world = World(
        lambda name, text: (
            "failed"
            if "return b" in text and name == "g"
            else "passed"
            if "return" in text
            else "failed"
        )
    )
    assert (
        found_line(find(world, [candidate("return b"), candidate("return a or b")], goal("t")))
        == "return a or b"
    )


def test_a_test_that_would_be_skipped_counts_as_broken() -> None:
    world = World(lambda name, _: "skipped" if name == "g" else "passed")
    assert find(world, [candidate("return b")], goal("t")) is None


def test_two_hosts_find_what_one_finds() -> None:
    """The order decides, not the speed of a host."""
    good = [f"return b + {number} - {number}" for number in range(5)]
    queue = [candidate(f"return a * {number}") for number in range(30)] + [
        candidate(line) for line in good
    ]
    alone = find(World(repaired_by(*good)), queue, goal("t"))
    together = find(World(repaired_by(*good)), queue, goal("t"), hosts=2)
    assert found_line(alone) == found_line(together) == good[0]


def test_the_search_goes_on_only_for_a_while_after_it_found_something() -> None:
    world = World(repaired_by("return b"))
    paid = budget()
    find(
        world,
        [candidate("return b"), *(candidate(f"return a * {number}") for number in range(500))],
        goal("t"),
        paid,
    )
    assert paid.tried == 61


@pytest.mark.parametrize(
    ("paid", "tried", "word"),
    [
        (budget(cpu_s=1.0), 4, "processor time"),
        (budget(candidates=7), 7, "7 candidates"),
        (budget(until=0.0), 0, "time for this answer"),
    ],
)
def test_a_budget_ends_the_search_and_says_which(paid: Budget, tried: int, word: str) -> None:
    world = World(lambda name, _: "failed" if name == "t" else "passed", cost_s=0.25)
    assert (
        find(world, [candidate(f"return a * {number}") for number in range(50)], goal("t"), paid)
        is None
    )
    assert paid.tried == tried
    assert word in str(paid.exhausted)


def test_text_that_is_no_python_is_not_run_and_not_counted() -> None:
    world, paid = World(repaired_by("return b")), budget()
    find(world, [candidate("return )"), candidate("return b")], goal("t"), paid)
    assert world.texts() == ["return b"]
    assert paid.tried == 1


def test_what_was_rejected_before_is_not_proposed_again() -> None:
    world = World(repaired_by("return b", "return b + 0"))
    unwanted = [("m.py", candidate("return b").result)]
    assert (
        found_line(
            find(
                world,
                [candidate("return b"), candidate("return b + 0")],
                goal("t", excluded=unwanted),
            )
        )
        == "return b + 0"
    )


def test_slow_candidates_get_more_time_when_nothing_else_passes() -> None:
    """Endless loops are cut off early; a right answer that is only slow is found in a second
    round.
    """
    world = World(
        lambda name, text: (
            "passed" if name == "g" else "slow passed" if "return b" in text else "failed"
        )
    )
    assert (
        found_line(find(world, [candidate("return a * 2"), candidate("return b")], goal("t")))
        == "return b"
    )


def test_all_failing_tests_of_the_group_have_to_pass() -> None:
    """A candidate that repairs all of them is preferred to an earlier and smaller one that repairs
    only the first.
    """
    half, whole = "return b", "return a + b + 1"
    world = World(
        lambda name, text: (
            "passed"
            if name == "g" or whole in text or (half in text and name == "t1")
            else "failed"
        )
    )
    found = find(world, [candidate(half), candidate(whole)], goal("t1", "t2"))
    assert found_line(found) == whole
    assert found is not None
    assert found.complete


def test_with_two_causes_one_of_them_is_repaired_first() -> None:
    """When nothing repairs the whole group, an edit that repairs a part and breaks nothing is
    taken, and said to be no more.
    """
    world = World(
        lambda name, text: (
            "passed" if name == "g" or ("return b" in text and name == "t1") else "failed"
        )
    )
    found = find(world, [candidate("return a * 3"), candidate("return b")], goal("t1", "t2"))
    assert found is not None
    assert (found.complete, found.fixed) == (False, ("t1",))


def test_an_unsteady_test_does_not_spoil_a_repair() -> None:
    """Where tests are known to depend on order or chance, one that fails in the suite but not alone
    is let off.
    """
    calls: list[str] = []

    def outcome(name: str, text: str) -> str:
        calls.append(name)
        return (
            "failed"
            if name == "g2" and calls.count("g2") == 2
            else "passed"
            if "return b" in text or name.startswith("g")
            else "failed"
        )

    assert (
        found_line(
            find(
                World(outcome),
                [candidate("return b")],
                goal("t", green=("g", "g2"), unsteady=("u",)),
            )
        )
        == "return b"
    )
    calls.clear()
    assert find(World(outcome), [candidate("return b")], goal("t", green=("g", "g2"))) is None


def test_a_trial_gives_a_test_a_multiple_of_what_its_neighbours_need() -> None:
    """The bound on processor time follows the tests of the same file, not one constant."""
    wanted = goal("f.py::t", green=("f.py::g", "other.py::g"))
    times = {"f.py::g": 0.5, "other.py::g": 9.0}
    baseline = Baseline(
        collected=wanted.baseline.collected,
        outcomes=wanted.baseline.outcomes,
        times_s=times,
        failing=wanted.baseline.failing,
        unsteady=(),
    )
    world = World(lambda _name, _text: "failed")
    PatchValidator(
        Goal(primary="f.py::t", group=("f.py::t",), baseline=baseline), least_cpu_s=0.2
    ).validate(world, 0, candidate("return b"))
    assert world.asked[0].cpu_s == 2.0


def test_a_host_that_is_ahead_does_not_decide_where_the_budget_ends() -> None:
    """One host hangs in the first candidate while the other runs the next ones: the same number of
    candidates counts as with one host, and a passing one beyond them does not win.
    """
    ahead = threading.Event()

    def outcome(name: str, text: str) -> str:
        if "a * 0" in text:
            assert ahead.wait(60)
        if "a * 3" in text:
            ahead.set()
        return "passed" if name == "g" or "return b" in text else "failed"

    queue = [candidate(f"return a * {number}") for number in range(4)]
    queue += [candidate("return b"), candidate("return b + 0")]
    paid = budget(cpu_s=1.0)
    world = World(outcome, cost_s=0.25)
    assert find(world, queue, goal("t"), paid, hosts=2) is None
    assert paid.tried == 4
    alone = budget(cpu_s=1.0)
    assert find(world, queue, goal("t"), alone) is None
    assert alone.tried == 4


def test_two_candidates_with_the_same_text_run_once() -> None:
    """Edits of different spans that lead to the same file are one candidate."""
    start = SOURCE.data.index(b"a\n", START)
    inner = SourceEdit(
        path="m.py",
        start=start,
        end=start + 1,
        before="a",
        after="a * 2",
        kind="l",
        line=3,
        weight=0.5,
    )
    world, paid = World(repaired_by("return b")), budget()
    again = PatchCandidate(score=0.5, edit=inner, source=SOURCE)
    find(world, [candidate("return a * 2"), again], goal("t"), paid)
    assert paid.tried == len(world.asked) == 1


def test_only_an_edit_that_hides_the_failure_passes() -> None:
    """A search ends without a patch, and a note names the edit and the reason."""
    world = World(repaired_by("return print", "return b"))
    hiding = PatchCandidate(
        score=1.0,
        edit=SourceEdit(
            path="m.py",
            start=START,
            end=START,
            before="",
            after="return b\n    ",
            kind="statement added",
            line=3,
            weight=1.0,
        ),
        source=SOURCE,
    )
    result = search([world], [hiding], goal("t"), budget(), ignore)
    assert result.patch is None
    assert "only hides the failure" in result.notes[0]
    assert "jumps over the rest of the block" in result.notes[0]
    assert "return b" in result.notes[0]
    assert found_line(find(world, [hiding, candidate("return b")], goal("t"))) == "return b"


def test_each_cost_is_charged_once() -> None:
    """The preparation and the runs of two groups make up the sum: of the first group's share, what
    is unused goes on to the second.
    """
    clock = iter([5.0, 15.0])
    whole = replace(budget(cpu_s=60.0), cpu_clock=lambda: next(clock))
    first = whole.part(0.6)
    with first.charge():
        pass
    assert (first.cpu_s, first.used_cpu_s) == (36.0, 10.0)
    world = World(repaired_by("return b"), cost_s=1.0)
    wrong = [candidate(f"return {number}") for number in range(4)]
    assert find(world, wrong, goal("t"), first, hosts=2) is None
    assert first.used_cpu_s == pytest.approx(14.0, abs=0.5)
    whole.add(first)
    second = whole.part(1.0)
    assert second.cpu_s == pytest.approx(46.0, abs=0.5)
    endless = [candidate(f"return {number}") for number in range(100)]
    assert find(world, endless, goal("t"), second, hosts=2) is None
    assert second.exhausted == f"{second.cpu_s:.0f} s of processor time"
    whole.add(second)
    assert whole.used_cpu_s == pytest.approx(60.0, abs=1.0)
    assert whole.exhausted == "60 s of processor time"


def test_an_extension_is_reported_and_leaves_the_budget_alone() -> None:
    """The search for a patch that repairs a part has its own processor time, so that the next
    group has the same budget, and the report states all.
    """
    world = World(lambda name, _: "passed" if name in ("t", "g") else "failed", cost_s=1.0)
    paid = budget(cpu_s=30.0)
    found = find(world, [candidate("return b")], goal("t", "u"), paid)
    assert found is not None
    assert not found.complete
    assert paid.used_cpu_s == pytest.approx(2.0, abs=0.5)
    assert paid.extra_cpu_s == pytest.approx(3.0, abs=0.5)
    whole = budget(cpu_s=60.0)
    whole.add(paid)
    assert whole.part(1.0).cpu_s == pytest.approx(58.0, abs=0.5)
    assert whole.extra_cpu_s == paid.extra_cpu_s


def test_a_second_host_helps_with_a_long_search_alone() -> None:
    """A short search runs on the first host; once that has worked for long, the others join."""

    def counted(count: int) -> tuple[int, int]:
        first, second = World(lambda _name, _text: "failed"), World(lambda _name, _text: "failed")
        queue = [candidate(f"return a * {number}") for number in range(count)]
        paid = budget(cpu_s=100.0)
        search([first, second], queue, goal("t"), paid, ignore, alone_s=3600.0)
        assert paid.tried == count
        return len(first.asked), len(second.asked)

    assert counted(40) == (40, 0)


def test_a_long_search_is_not_left_to_the_first_host() -> None:
    """The first host has used the time that it has alone, and waits for the second."""
    joined = threading.Event()

    def lead(_name: str, text: str) -> str:
        if "a * 3" in text:
            assert joined.wait(60)
        return "failed"

    def follow(_name: str, _text: str) -> str:
        joined.set()
        return "failed"

    first, second = World(lead, cost_s=0.25), World(follow, cost_s=0.25)
    queue = [candidate(f"return a * {number}") for number in range(8)]
    paid = budget(cpu_s=100.0)
    search([first, second], queue, goal("t"), paid, ignore, alone_s=0.7)
    assert paid.tried == 8
    assert len(first.asked) >= 4
    assert second.asked
