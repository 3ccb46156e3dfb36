"""State machine of a thread: one table from a state and an event to the next state.

The state itself is never stored: `status` runs the machine over what the journal ends with and
whether its lock is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from uncaged_bundles.records import dataclass

State = Literal[
    "running",
    "paused",
    "waiting",
    "interrupted",
    "unknown",
    "completed",
    "failed",
    "killed",
    "limit",
    "corrupt",
]
Event = Literal[
    "pause",
    "resume",
    "answer",
    "kill",
    "remove",
    "fork",
    "return",
    "raise",
    "cut",
    "lack",
    "wait",
    "crash",
    "doubt",
    "damage",
]
Target = State | Literal["gone", "same"]

COMMANDS: tuple[Event, ...] = ("pause", "resume", "kill", "answer", "remove", "fork")
"""Events that a person causes; the others happen to a thread, or are found when its journal is
read.
"""

GONE: Final = "gone"
SAME: Final = "same"

TABLE: dict[State, dict[Event, Target]] = {
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
        "damage": "corrupt",
    },
    "paused": {
        "resume": "running",
        "kill": "killed",
        "remove": GONE,
        "fork": SAME,
        "doubt": "unknown",
        "damage": "corrupt",
    },
    "waiting": {
        "answer": "running",
        "pause": "paused",
        "kill": "killed",
        "lack": "paused",
        "remove": GONE,
        "fork": SAME,
        "doubt": "unknown",
        "damage": "corrupt",
    },
    "interrupted": {
        "resume": "running",
        "pause": "paused",
        "kill": "killed",
        "remove": GONE,
        "fork": SAME,
        "doubt": "unknown",
        "damage": "corrupt",
    },
    "unknown": {
        "resume": "running",
        "kill": "killed",
        "remove": GONE,
        "fork": SAME,
        "damage": "corrupt",
    },
    "completed": {"remove": GONE, "fork": SAME, "damage": "corrupt"},
    "failed": {"remove": GONE, "fork": SAME, "damage": "corrupt"},
    "killed": {"resume": "running", "remove": GONE, "fork": SAME, "damage": "corrupt"},
    "limit": {"resume": "running", "remove": GONE, "fork": SAME, "damage": "corrupt"},
    "corrupt": {"remove": GONE, "fork": SAME},
}
"""A command that has no cell is refused. Anything else that has none leaves the state as it is."""

END_EVENTS: dict[str, Event] = {
    "completed": "return",
    "failed": "raise",
    "killed": "kill",
    "limit": "cut",
}
"""The event for each word of an end record."""

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
    """Facts at the end of a journal.

    end: the word of an end record that nothing followed. paused, waiting: the last control that is
    still in force.
    lacking: the last line is a void of the environment.
    undecided: an effect may have been performed, and only a person can decide about it.
    unsettled: the engine itself noted that it does not know what became of an effect.
    """

    end: str | None = None
    paused: bool = False
    waiting: bool = False
    lacking: bool = False
    undecided: bool = False
    unsettled: bool = False
    corrupt: bool = False

    def events(self, *, locked: bool) -> Iterator[Event]:
        """Yield what happened to a thread that ran, in the order in which it counts."""
        if self.end is not None:
            yield END_EVENTS.get(self.end, "damage")
        elif not locked:  # a worker that holds the lock goes on, whatever stopped it before
            yield from (event for event, holds in self._stops() if holds)
            yield "crash"
            # a lack counts first; `resume` asks for the decision
            if self.unsettled or (self.undecided and not self.lacking):
                yield "doubt"
        if self.corrupt:
            yield "damage"

    def _stops(self) -> tuple[tuple[Event, bool], ...]:
        """Return what stopped it, in order; a pause that came while a question was open is still in
        force.
        """
        return ("wait", self.waiting), ("pause", self.paused), ("lack", self.lacking)


def status(facts: Facts, *, locked: bool) -> State:
    """Return the state of a thread, from what its journal says at its end and from whether its lock
    is held.
    """
    state: State = "running"
    for event in facts.events(locked=locked):
        state = after(state, event)
    return state


def after(state: State, event: Event) -> State:
    """Return the state to which an event leads; the same one where the table has no other."""
    match TABLE[state].get(event, SAME):
        case "same" | "gone":
            return state
        case other:
            return other


def allowed(state: State, event: Event) -> bool:
    """Whether the table has a cell for *event* in *state*."""
    return event in TABLE[state]


def may_go_on(state: State) -> bool:
    """Whether the thread runs, or may run again: what its open effect needs must be kept."""
    return state == "running" or allowed(state, "resume") or allowed(state, "answer")


def refusal(state: State, event: Event, thread: str) -> str:
    """Return why *event* is refused in *state*, with the next step."""
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
    "doubt": "left in doubt",
    "damage": "damaged",
}
