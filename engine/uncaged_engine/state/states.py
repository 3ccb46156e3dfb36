"""A thread's life cycle is this table: in a state, an event leads to a state or is refused.

The state itself is never stored: `status` derives it from what the journal ends with and from who holds its lock.
"""

from __future__ import annotations

from typing import Literal

from uncaged_bundles.records import dataclass

State = Literal["running", "paused", "waiting", "interrupted", "unknown", "completed", "failed", "killed", "limit", "corrupt"]
Event = Literal["pause", "resume", "kill", "answer", "return", "raise", "cut", "lack", "wait", "crash", "remove", "fork"]

COMMANDS: tuple[Event, ...] = ("pause", "resume", "kill", "answer", "remove", "fork")
"""Events that a person causes; the others happen to a thread while it runs."""

GONE = "gone"
SAME = "same"

TABLE: dict[State, dict[Event, str]] = {
    "running": {
        "pause": "paused",
        "kill": "killed",
        "return": "completed",
        "raise": "failed",
        "cut": "limit",
        "lack": "paused",
        "wait": "waiting",
        "crash": "interrupted",
        "fork": SAME,
    },
    "paused": {"resume": "running", "kill": "killed", "remove": GONE, "fork": SAME},
    "waiting": {"answer": "running", "pause": "paused", "kill": "killed", "remove": GONE, "fork": SAME},
    "interrupted": {"resume": "running", "pause": "paused", "kill": "killed", "remove": GONE, "fork": SAME},
    "unknown": {"resume": "running", "kill": "killed", "remove": GONE, "fork": SAME},
    "completed": {"remove": GONE, "fork": SAME},
    "failed": {"remove": GONE, "fork": SAME},
    "killed": {"resume": "running", "remove": GONE, "fork": SAME},
    "limit": {"resume": "running", "remove": GONE, "fork": SAME},
    "corrupt": {"remove": GONE, "fork": SAME},
}

NEXT_STEP: dict[State, str] = {
    "running": "pause or kill it first",
    "paused": "`resume` continues it",
    "waiting": "`answer` continues it",
    "interrupted": "`resume` continues it",
    "unknown": "`resume --redo` performs it again, `resume --skip` goes on without it",
    "completed": "`fork` starts a new thread from one of its steps",
    "failed": "`fork` starts a new thread from one of its steps",
    "killed": "`resume` continues it",
    "limit": "`resume` with a higher limit continues it",
    "corrupt": "`fork --at N` keeps the steps before the damage",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a journal says of itself at its end.

    end: the word of an end record that nothing followed. paused, waiting: the last control that is still in force.
    lacking: the last line is a void of the environment.
    undecided: an effect may have been performed, and only a person can decide about it.
    """

    end: str | None = None
    paused: bool = False
    waiting: bool = False
    lacking: bool = False
    undecided: bool = False
    unsettled: bool = False
    corrupt: bool = False


def status(facts: Facts, *, locked: bool) -> State:
    """The state of a thread, from its journal and from whether somebody holds the journal's lock."""
    if facts.corrupt:
        return "corrupt"
    if facts.end is not None:
        return _ended(facts.end)
    if locked:
        return "running"
    if (facts.undecided and not facts.lacking) or facts.unsettled:
        return "unknown"
    if facts.paused or facts.lacking:  # before waiting: a pause that came while the question was put is still in force
        return "paused"
    if facts.waiting:
        return "waiting"
    return "interrupted"


def _ended(word: str) -> State:
    match word:
        case "completed" | "failed" | "killed" | "limit":
            return word
        case _:
            return "corrupt"


def allowed(state: State, event: Event) -> bool:
    return event in TABLE[state]


def may_go_on(state: State) -> bool:
    """Whether the thread runs, or may run again: what its open effect needs must be kept."""
    return state == "running" or allowed(state, "resume") or allowed(state, "answer")


def refusal(state: State, event: Event, thread: str) -> str:
    """Why *event* is refused in *state*, with the next step."""
    return f"thread {thread} is {state}: it cannot be {_PAST[event]}; {NEXT_STEP[state]}"


_PAST: dict[Event, str] = {
    "pause": "paused",
    "resume": "resumed",
    "kill": "killed",
    "answer": "answered",
    "remove": "removed",
    "fork": "forked",
    "return": "completed",
    "raise": "failed",
    "cut": "limited",
    "lack": "paused",
    "wait": "set waiting",
    "crash": "interrupted",
}
