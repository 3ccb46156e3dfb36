"""Code that a bundle carries: the read-only view, and the loop over roles."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from typing import Any

import pytest
from uncaged_bundles import contract
from uncaged_bundles.carried import workflow as carried
from uncaged_bundles.carried.workflow import END, Items, View, drive_roles, follow_table

Run = Generator[dict[str, Any], dict[str, Any], Mapping[str, Any]]

INPUT: dict[str, Any] = {
    "prompt": "do it",
    "params": {"deep": {"list": [1, {"x": 2}]}},
    "steps": [],
}
OPTIONS: dict[str, Any] = {"threadId": "01HX5WBE00", "startedAt": 7, "seed": 1}


class EffectError(Exception):
    """As the sandbox throws it in."""

    def __init__(self, **error: object) -> None:
        super().__init__(error["message"])
        self.error = error


def a_step(role: str, **meta: object) -> dict[str, Any]:
    return {
        "seq": 1,
        "role": role,
        "content": f"{role} says",
        "meta": meta,
        "by": "agent",
        "usage": {"tokens": 3},
        "timestamp": 11,
    }


def ending(run: Run, action: Callable[[], object]) -> Mapping[str, Any]:
    with pytest.raises(StopIteration) as stop:
        action()
    result: Mapping[str, Any] = stop.value.value
    assert run.gi_frame is None  # type: ignore[attr-defined]
    return result


def test_start_and_end_are_those_of_the_contract() -> None:
    """The carried words are the descriptor's words."""
    assert (carried.START, carried.END) == (contract.START, contract.END)


def test_keys_are_attributes_at_every_depth() -> None:
    """`ctx.steps[-1].meta.status` and `ctx["steps"][-1]["meta"]["status"]` are the same thing."""
    ctx = View({"steps": [{"meta": {"status": "done", "items": [1]}}]})
    assert ctx.steps[-1].meta.status == ctx["steps"][-1]["meta"]["status"] == "done"
    assert ctx.steps[0].meta["items"] == [1]
    assert json.dumps(ctx) == '{"steps": [{"meta": {"status": "done", "items": [1]}}]}'


def test_an_unknown_attribute_names_those_there_are() -> None:
    """A slip of the pen is an AttributeError that shows the keys; `get` and `hasattr` work as
    usual.
    """
    view = View({"status": "done"})
    with pytest.raises(AttributeError, match=r"no 'state' here; there are: 'status'"):
        _ = view.state
    assert view.get("state") is None
    assert not hasattr(view, "state")


MAPPING_CHANGES: list[Callable[[Any], object]] = [
    lambda view: view.__setitem__("a", 1),
    lambda view: view.__delitem__("a"),
    lambda view: setattr(view, "a", 1),
    lambda view: delattr(view, "a"),
    lambda view: view.__ior__({"a": 1}),
    lambda view: view.clear(),
    lambda view: view.pop("a"),
    lambda view: view.popitem(),
    lambda view: view.setdefault("b", 1),
    lambda view: view.update(a=1),
]
LIST_CHANGES: list[Callable[[Any], object]] = [
    lambda items: items.__setitem__(0, 1),
    lambda items: items.__delitem__(0),
    lambda items: items.__iadd__([1]),
    lambda items: items.__imul__(2),
    lambda items: items.append(1),
    lambda items: items.clear(),
    lambda items: items.extend([1]),
    lambda items: items.insert(0, 1),
    lambda items: items.pop(),
    lambda items: items.remove({}),
    lambda items: items.reverse(),
    lambda items: items.sort(),
]


@pytest.mark.parametrize("change", MAPPING_CHANGES)
def test_no_mapping_can_be_changed(change: Callable[[Any], object]) -> None:
    """Every way to change a mapping raises, at every depth, and changes nothing."""
    ctx = View({"list": [{"a": 1}]})
    for view, before in ((ctx, {"list": [{"a": 1}]}), (ctx.list[0], {"a": 1})):
        with pytest.raises(TypeError, match="read-only"):
            change(view)
        assert view == before


@pytest.mark.parametrize("change", LIST_CHANGES)
def test_no_list_can_be_changed(change: Callable[[Any], object]) -> None:
    """Every way to change a list raises, and changes nothing."""
    view = View({"list": [{}, {}]})
    with pytest.raises(TypeError, match="read-only"):
        change(view.list)
    assert view.list == [{}, {}]


def test_every_method_that_changes_is_refused() -> None:
    """No method of dict or list is left out that another Python might bring along."""
    reading = {"copy", "count", "fromkeys", "get", "index", "items", "keys", "values"}
    for kind, plain in ((View, dict), (Items, list)):
        for name in vars(plain):
            if name not in reading and not name.startswith("__"):
                assert getattr(kind, name) is kind.refuse, name


def test_a_copy_can_be_changed() -> None:
    """`dict(view)` and `list(items)` are the author's own."""
    view = View({"a": 1, "list": [1]})
    assert dict(view) | {"a": 2} == {"a": 2, "list": [1]}
    assert [*view.list, 2] == [1, 2]


def test_the_moderator_sees_thread_start_and_true_steps() -> None:
    """ctx holds threadId, start and, per step, role, content, meta and the recorded time; not who
    answered or what it cost.
    """
    seen: list[View] = []

    def moderator(ctx: View) -> str:
        seen.append(ctx)
        return "planner" if not ctx.steps else END

    run = drive_roles(INPUT, OPTIONS, roles={"planner": {}}, moderator=moderator)
    assert next(run) == {"role": {"name": "planner"}}
    assert seen[-1] == {
        "threadId": "01HX5WBE00",
        "start": {"prompt": "do it", "params": {"deep": {"list": [1, {"x": 2}]}}},
        "steps": [],
    }
    result = ending(run, lambda: run.send(a_step("planner", status="ok")))
    assert seen[-1].steps == [
        {"role": "planner", "content": "planner says", "meta": {"status": "ok"}, "timestamp": 11}
    ]
    assert seen[-1].start.params.deep.list[1].x == 2
    assert result == {"success": True, "message": "planner says", "data": {"status": "ok"}}


def test_no_step_at_all_is_a_success_without_words() -> None:
    """A moderator may choose END at once."""
    run = drive_roles(INPUT, OPTIONS, roles=["a"], moderator=lambda _: END)
    assert ending(run, lambda: next(run)) == {"success": True, "message": "", "data": None}


def test_handed_over_role_steps_come_first() -> None:
    """The steps of another version's thread are seen like own ones; its other effects and failures
    are not.
    """
    steps = [
        a_step("a", n=1),
        {"seq": 2, "outcome": {"x": 1}, "timestamp": 5},
        {"seq": 3, "role": "a", "error": {"kind": "agent"}},
    ]
    run = drive_roles(
        {**INPUT, "steps": steps},
        OPTIONS,
        roles=["a", "b"],
        moderator=lambda ctx: "b" if len(ctx.steps) == 1 else "a",
    )
    assert next(run) == {"role": {"name": "b"}}


def test_the_result_function_has_the_last_word() -> None:
    """The value of `result` is the thread's result, unchanged."""
    run = drive_roles(
        INPUT,
        OPTIONS,
        roles=["a"],
        moderator=lambda _: END,
        result=lambda ctx: {"success": False, "message": ctx.threadId},
    )
    assert ending(run, lambda: next(run)) == {"success": False, "message": "01HX5WBE00"}


def test_a_note_goes_to_the_role_that_is_picked_and_to_no_other() -> None:
    """The note of the moderator or of `recover` is in the prompt of the selected role's step."""
    run = drive_roles(
        INPUT,
        OPTIONS,
        roles=["coder"],
        moderator=lambda ctx: (
            ("coder", f"Round {len(ctx.steps)}.") if len(ctx.steps) < 2 else "coder"
        ),
        recover=lambda _ctx, failure: ("coder", f"Last time: {failure.message}"),
    )
    assert next(run) == {"role": {"name": "coder", "prompt": "Round 0."}}
    assert run.throw(EffectError(kind="agent", message="broken")) == {
        "role": {"name": "coder", "prompt": "Last time: broken"}
    }
    assert run.send(a_step("coder")) == {"role": {"name": "coder", "prompt": "Round 1."}}
    assert run.send(a_step("coder")) == {"role": {"name": "coder"}}


@pytest.mark.parametrize(
    "choice", ["codr", "", None, 3, ["a"], ("planner", 3), ("planner", "x", "y"), ("codr", "x")]
)
def test_an_unknown_role_names_the_roles(choice: Any) -> None:
    """A moderator that picks no role of its workflow fails, and the message lists those there
    are.
    """
    run = drive_roles(INPUT, OPTIONS, roles=["planner", "coder"], moderator=lambda _: choice)
    with pytest.raises(LookupError) as caught:
        next(run)
    assert (
        str(caught.value)
        == f"moderator picked {choice!r}, which is no role here; there are: planner, coder (and END)"
    )


def test_a_failed_role_ends_the_run_without_success() -> None:
    """Without `recover`, a failed role step is the end: which role, and why."""
    run = drive_roles(
        INPUT,
        OPTIONS,
        roles=["coder"],
        moderator=lambda _: "coder",
        result=lambda _: {"success": True},
    )
    next(run)
    result = ending(
        run, lambda: run.throw(EffectError(kind="timeout", message="no answer in 600 s"))
    )
    assert result["success"] is False
    assert result["message"] == "the role 'coder' failed: no answer in 600 s"
    assert result["data"] == {"role": "coder", "kind": "timeout"}


def test_recover_goes_on_and_counts_failures_in_a_row() -> None:
    """`recover` picks the next role; `times` starts again after a step that worked."""
    seen: list[tuple[str, str, int, int]] = []

    def recover(ctx: View, failure: View) -> str:
        seen.append((failure.role, failure.kind, failure.times, len(ctx.steps)))
        return "coder" if failure.times < 2 else END

    run = drive_roles(INPUT, OPTIONS, roles=["coder"], moderator=lambda _: "coder", recover=recover)
    next(run)
    failed = EffectError(kind="agent", message="broken", exitCode=3)
    assert run.throw(failed) == {"role": {"name": "coder"}}
    assert run.send(a_step("coder")) == {"role": {"name": "coder"}}
    assert run.throw(failed) == {"role": {"name": "coder"}}
    assert ending(run, lambda: run.throw(failed))["success"] is False
    assert seen == [("coder", "agent", 1, 0), ("coder", "agent", 1, 1), ("coder", "agent", 2, 1)]


def test_recover_may_not_pick_an_unknown_role() -> None:
    """The choice of `recover` is checked like the moderator's."""
    run = drive_roles(
        INPUT, OPTIONS, roles=["coder"], moderator=lambda _: "coder", recover=lambda *_: "codr"
    )
    next(run)
    with pytest.raises(LookupError, match="recover picked 'codr'"):
        run.throw(EffectError(kind="agent", message="broken"))


def test_other_exceptions_are_not_taken_for_a_failed_role() -> None:
    """Only what carries an `error` is a failed effect; the rest goes through."""
    run = drive_roles(INPUT, OPTIONS, roles=["coder"], moderator=lambda _: "coder")
    next(run)
    with pytest.raises(ZeroDivisionError):
        run.throw(ZeroDivisionError())


def test_a_table_is_followed_by_role_and_status() -> None:
    """The next role is found by the last step's role and status; a word instead of a row holds for
    every status.
    """
    moderator = follow_table({"__start__": "a", "a": {"again": "a", "on": "b"}, "b": END})
    assert moderator(View({"steps": []})) == "a"
    assert moderator(View({"steps": [a_step("a", status="again")]})) == "a"
    assert moderator(View({"steps": [a_step("a", status="on")]})) == "b"
    assert moderator(View({"steps": [a_step("b")]})) == END


@pytest.mark.parametrize("step", [a_step("a", status="odd"), a_step("a"), a_step("c", status="on")])
def test_a_table_without_an_edge_says_which(step: dict[str, Any]) -> None:
    """A step from another version may have a role or a status that this table does not know."""
    moderator = follow_table({"__start__": "a", "a": {"on": END}})
    with pytest.raises(LookupError, match=f"no edge for role '{step['role']}' with status"):
        moderator(View({"steps": [step]}))
