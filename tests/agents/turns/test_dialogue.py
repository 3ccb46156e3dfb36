"""Dialogue with an agent until its answer is usable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from testbed.roles import SCHEMA, request
from uncaged_agents.turns.dialogue import RoleReply, ask_until_usable
from uncaged_agents.usage import add_usage
from uncaged_engine.door.agents import AgentAnswer, AgentFailed, AgentRequest
from uncaged_engine.door.effects import Cancel
from uncaged_models.prompts.extract import checker

GOOD = 'Done.\n```json\n{"status": "done"}\n```'
BAD = 'Done.\n```json\n{"status": "finished"}\n```'
PROBLEM = "status: 'finished' is not one of ['done', 'stuck']"


class Listed:
    """Gives its answers in turn and keeps what it was asked; an exception among them is raised."""

    name = "listed"

    def __init__(self, *answers: AgentAnswer | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[AgentRequest] = []

    def answer(self, request: AgentRequest) -> AgentAnswer:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def run(agent: Listed, tmp_path: Path, **more: Any) -> tuple[RoleReply, list[Mapping[str, object]]]:
    recorded: list[Mapping[str, object]] = []
    return ask_until_usable(
        agent, request(tmp_path, **more), checker(SCHEMA), recorded.append
    ), recorded


def test_an_answer_that_fits_is_asked_for_once(tmp_path: Path) -> None:
    """A usable first answer leaves no attempt in the journal."""
    agent = Listed(AgentAnswer(text=GOOD, usage={"tokens": 5}))
    asked, recorded = run(agent, tmp_path)
    assert asked == RoleReply(
        content="Done.", meta={"status": "done"}, problems=(), usage={"tokens": 5}, calls=1
    )
    assert (len(agent.asked), recorded) == (1, [])


def test_a_repaired_answer_takes_two_calls(tmp_path: Path) -> None:
    """The unusable answer is recorded first; the second question holds the first, the answer, the
    problem and the session.
    """
    agent = Listed(
        AgentAnswer(text=BAD, usage={"tokens": 5}, session="s1"),
        AgentAnswer(text=GOOD, usage={"tokens": 7}),
    )
    asked, recorded = run(agent, tmp_path, calls=3, role_calls=1)
    assert (asked.meta, asked.calls, asked.usage) == ({"status": "done"}, 2, {"tokens": 12})
    assert recorded == [{"answer": BAD, "problem": PROBLEM, "usage": {"tokens": 5}}]
    again = agent.asked[1]
    assert again.prompt.startswith("Do it.")
    assert PROBLEM in again.prompt
    assert "finished" in again.prompt
    assert (again.session, again.calls, again.role_calls) == ("s1", 4, 2)
    assert again.repair is not None
    assert (again.repair.answer, again.repair.problem) == (BAD, PROBLEM)


def test_the_record_comes_before_the_question(tmp_path: Path) -> None:
    """A crash while the agent corrects its answer leaves the answer in the journal."""
    order: list[str] = []

    class Noting(Listed):
        def answer(self, request: AgentRequest) -> AgentAnswer:
            order.append("asked")
            return super().answer(request)

    agent = Noting(AgentAnswer(text=BAD), AgentAnswer(text=GOOD))
    ask_until_usable(agent, request(tmp_path), checker(SCHEMA), lambda _: order.append("recorded"))
    assert order == ["asked", "recorded", "asked"]


def test_two_repairs_and_no_more(tmp_path: Path) -> None:
    """Three answers that cannot be used are the end; all three are recorded, and nothing is made
    up.
    """
    agent = Listed(*(AgentAnswer(text=text) for text in (BAD, "no block", BAD, GOOD)))
    asked, recorded = run(agent, tmp_path)
    assert (asked.meta, asked.calls, len(agent.asked)) == (None, 3, 3)
    assert asked.problems == (PROBLEM, "there is no fenced json block in the answer", PROBLEM)
    assert [record["answer"] for record in recorded] == [BAD, "no block", BAD]
    assert "no block" in agent.asked[2].prompt
    assert agent.asked[2].prompt.count("# Your answer could not be used") == 1, (
        "each repair starts from the question itself"
    )


def test_a_failure_to_answer_is_not_repaired(tmp_path: Path) -> None:
    """HTTP 500 or an exit code: one call. The failure says how many answers the step took, and what
    all of them used up.
    """
    agent = Listed(AgentFailed("HTTP 500"))
    with pytest.raises(AgentFailed) as caught:
        run(agent, tmp_path)
    assert (len(agent.asked), caught.value.more["calls"]) == (1, 1)
    agent = Listed(
        AgentAnswer(text=BAD, usage={"tokens": 5}),
        AgentFailed("HTTP 500", more={"usage": {"tokens": 7}}),
    )
    with pytest.raises(AgentFailed) as caught:
        run(agent, tmp_path)
    assert (len(agent.asked), caught.value.more) == (2, {"calls": 2, "usage": {"tokens": 12}})


def test_followers_hear_what_a_step_used_up_in_all(tmp_path: Path) -> None:
    """A limit looks at it while a repair is still under way."""
    told: list[Mapping[str, object]] = []
    agent = Listed(AgentAnswer(text=BAD, usage={"tokens": 5}), AgentAnswer(text=GOOD))
    run(agent, tmp_path, progress=told.append)
    agent.asked[1].progress({"usage": {"tokens": 2}})
    assert told[-1] == {"usage": {"tokens": 7}}


def test_no_correction_is_requested_after_a_kill(tmp_path: Path) -> None:
    """The agent was stopped in the middle of its answer."""
    cancel = Cancel()
    cancel.request()
    agent = Listed(AgentAnswer(text=BAD), AgentAnswer(text=GOOD))
    asked, _ = run(agent, tmp_path, cancel=cancel)
    assert (asked.meta, len(agent.asked)) == (None, 1)


def test_half_a_character_does_not_reach_the_journal(tmp_path: Path) -> None:
    """An agent written in Python can return text that no file can hold."""
    asked, _ = run(Listed(AgentAnswer(text=f"\ud800 {GOOD}")), tmp_path)
    assert asked.content == "\\ud800 Done."


def test_usage_adds_up_by_name() -> None:
    """Numbers add; a word, such as the model's name, is the last one said."""
    total: dict[str, object] = {}
    add_usage(total, {"tokens": 1, "model": "a", "cost": 0.5})
    add_usage(total, {"tokens": 2, "model": "b"})
    assert total == {"tokens": 3, "model": "b", "cost": 0.5}
