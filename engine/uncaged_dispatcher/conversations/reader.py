"""Reader of a conversation's sentences: the interpreter with the conversation's activity and
memory.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.records import replace
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.services.journal import encode

from ..calls import Call, Interpretation, Miss, Offer, Question
from ..memory.entity_memory import EntityMemory, RememberedEntity
from ..memory.named_things import NamedThings, meaning
from ..readings.context import SentenceContext
from ..readings.interpreter import Interpreter
from .log import path_of, read_records
from .records import ConversationState
from .requests import ConversationRequest

MEMORY_SUFFIX = ".memory.sqlite3"


def memory_of(store: Store, id: str) -> EntityMemory:
    """Return the memory of a conversation."""
    return EntityMemory(
        path_of(store, id).with_suffix(MEMORY_SUFFIX), partial(read_records, store, id)
    )


class ConversationReader:
    """Reads the sentences of one conversation. It belongs to one thread of execution."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._interpreter = Interpreter(engine)

    def __call__(
        self, request: ConversationRequest, state: ConversationState
    ) -> Interpretation | Question | Miss:
        """Read a sentence; ask if it names something that may be one of several things."""
        if request.attachments or not request.grammar:
            return Miss(
                sentence=request.text,
                why="patterns do not read a sentence with attachments"
                if request.grammar
                else "patterns were excluded by --no-grammar",
            )
        things = NamedThings(memory_of(self._engine.store, state.id))
        activity = state.activity
        context = SentenceContext(
            directory=Path(request.directory),
            entities=things,
            packs=() if activity is None else activity.packs,
            exclusive=activity is not None and activity.exclusive,
        )
        found = self._interpreter.interpret(request.text, context=context)
        if not isinstance(found, Interpretation) or not things.ambiguous:
            return found
        return _question(request.text, found, things) or found

    def needs_consent(self, flow: str) -> bool:
        """Whether a person marked the flow as one that is confirmed before it runs."""
        found = self._engine.registry.flow(flow)
        if found is None:
            raise NotFoundError(f"no flow {flow!r}; `uncaged-workflow list` shows what there is")
        return found.confirm

    def chosen(self, question: Question, choice: str, *, remember: bool) -> Interpretation:
        """Return the reading that the person chose."""
        return self._interpreter.choose(question, choice, remember=remember)


def _question(sentence: str, found: Interpretation, things: NamedThings) -> Question | None:
    """Return a question about the first parameter whose name may mean several things."""
    for call in found.calls:
        for name, value in call.params.items():
            meant = things.ambiguous.get(encode(value))
            if meant is not None:
                return Question(
                    kind="entity",
                    sentence=sentence,
                    text=f"Which {meant[0].type or 'one'} is meant by {name}?",
                    choices=tuple(
                        Offer(
                            id=str(number),
                            label=_label(thing),
                            interpretation=replace(
                                found, calls=_with(found.calls, call, name, meaning(thing))
                            ),
                        )
                        for number, thing in enumerate(meant, 1)
                    ),
                )
    return None


def _label(thing: RememberedEntity) -> str:
    value = "" if thing.value is None else f" ({encode(thing.value)[:80]})"
    return f"{thing.name}{value}"


def _with(calls: tuple[Call, ...], changed: Call, name: str, value: object) -> tuple[Call, ...]:
    """Return the calls with another value for one parameter."""
    new = replace(changed, params={**changed.params, name: value})
    return tuple(new if call is changed else call for call in calls)
