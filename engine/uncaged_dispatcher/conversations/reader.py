"""Reader of a conversation's sentences: the interpreter with the conversation's activity and
memory.

What only a translation needs is imported where it is used: most sentences are read by a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from uncaged_bundles.errors import NotFoundError, UncagedError, UsageError, os_problem
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import replace
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.services.canonical import encode
from uncaged_engine.services.conversations import copies_of
from uncaged_engine.services.registry import KNOWN

from ..calls import REASON, Call, Interpretation, Miss, Offer, Question
from ..memory.entity_memory import EntityMemory, RememberedEntity
from ..memory.named_things import NamedThings, meaning
from ..readings.context import SentenceContext
from ..readings.interpreter import Interpreter
from .live import Caller
from .log import MEMORY_SUFFIX, path_of, read_records, read_state
from .records import ConversationState, SettledRequest
from .requests import ConversationRequest

EXCHANGES = 10
MESSAGE_CHARACTERS = 2_000
MAX_ATTACHMENT_BYTES = 256 << 10


def memory_of(store: Store, id: str) -> EntityMemory:
    """Return the memory of a conversation."""
    place = path_of(store, id).with_suffix(MEMORY_SUFFIX)
    if copies_of(store) is not None:
        store.derived.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = store.derived / place.name
    return EntityMemory(place, partial(read_records, store, id))


class ConversationReader:
    """Reads the sentences of one conversation. It belongs to one thread of execution."""

    def __init__(self, engine: Engine, clock_ms: Callable[[], int]) -> None:
        self._engine, self._clock_ms = engine, clock_ms
        self._interpreter = Interpreter(engine)
        self._context = SentenceContext()
        self._things: NamedThings | None = None
        self._settled: set[tuple[int, str]] = set()
        """Parameters of the present sentence, by call, about which the person was asked."""

    def __call__(
        self, request: ConversationRequest, state: ConversationState
    ) -> Interpretation | Question | Miss:
        """Read a sentence; ask if it names something that may be one of several things.

        Raises:
            UsageError: its directive cannot be followed.
        """
        self._engine.refresh()
        self._engine.read_sentences()
        sentence = request.directed.readable()
        if request.attachments or not request.grammar:
            self._bring_in_servers()
            return Miss(
                sentence=sentence,
                why="patterns do not read a sentence with attachments"
                if request.grammar
                else "patterns were excluded by --no-grammar",
            )
        things = NamedThings(memory_of(self._engine.store, state.id))
        context = _context(Path(request.directory), state, things)
        self._context, self._things, self._settled = context, things, set()
        found = self._interpreter.interpret(sentence, context=context)
        # a sentence that rules read never waits for a server
        if isinstance(found, Miss) and found.enable is None and self._bring_in_servers():
            found = self._interpreter.interpret(sentence, context=context)
        return self._clear(sentence, found) if isinstance(found, Interpretation) else found

    def _bring_in_servers(self) -> bool:
        """List the tools of MCP servers if that was not done; return whether one was asked."""
        # 30 ms of CPU: only for a sentence that no rule reads
        from ..mcp.servers import McpPacks

        return McpPacks(self._engine).bring_in()

    def translate(
        self,
        request: ConversationRequest,
        state: ConversationState,
        missed: Miss,
        *,
        clarified: Sequence[Mapping[str, object]],
        caller: Caller,
        on_start: Callable[[ThreadId], None],
    ) -> Interpretation | Question | Miss:
        """Ask the model what a sentence means, with what was said and named before."""
        if missed.enable is not None:
            return missed  # a flow is there, and a person turned it off
        from ..translation.translate import TranslationContext, Translator

        translator = Translator(
            engine=self._engine,
            options=replace(caller.options(request.directory), attended=False),
            on_start=on_start,
        )
        memory = memory_of(self._engine.store, state.id)
        entities = [thing.document() for thing in memory.nearest()]
        context = TranslationContext(
            exchanges=[_exchange(one) for one in state.exchanges[-EXCHANGES:]],
            entities=entities,
            activity=None if state.activity is None else state.activity.document(),
            packs=() if state.activity is None else state.activity.packs,
            exclusive=state.activity is not None and state.activity.exclusive,
            instructions=self._engine.config.instructions,
            clarified=clarified,
            attachments=[
                read_attachment(Path(request.directory, path)) for path in request.attachments
            ],
        )
        found = translator.translate(missed.sentence, context, missed)
        if not isinstance(found, Interpretation):
            return found
        calls = tuple(_resolved(call, entities) for call in found.calls)
        marked = tuple(call.flow for call in calls if self.needs_consent(call.flow))
        return replace(found, calls=calls, confirm=marked)

    def learn(self, sentence: str, call: Call, thread: str) -> None:
        """Keep the construction of a translation that ran well, unless the flow forbids it."""
        from ..constructions.construction import learn
        from ..constructions.kept import Constructions
        from ..translation.catalog import declared_pack

        engine = self._engine
        flow = engine.registry.flow(call.flow)
        # learned for `reason`, a sentence would never reach a flow that is added later
        if flow is None or call.flow == REASON:
            return
        descriptor = engine.store.load_bundle(flow.hash, KNOWN).descriptor
        if descriptor.raw.get("learn", True) is False:
            return
        construction = learn(
            sentence, call, descriptor.parameters, thread=thread, now_ms=self._clock_ms()
        )
        if construction is not None:
            packs = self._interpreter.index.packs()
            pack = packs.of_flow(call.flow, declared_pack(descriptor))
            # a damaged file stays as it is; `constructions list` names it
            with suppress(UncagedError):
                Constructions(engine.store).add("" if pack is None else pack.name, construction)

    def remembered_choice(
        self, request: ConversationRequest, state: ConversationState
    ) -> str | None:
        """Return the key of the remembered choice that decides the request's sentence, or None."""
        things = NamedThings(memory_of(self._engine.store, state.id))
        context = _context(Path(request.directory), state, things)
        return self._interpreter.remembered_choice(request.directed.sentence, context=context)

    def forget_choice(self, key: str) -> bool:
        """Forget a remembered choice; return whether there was one."""
        return self._interpreter.preferences.forget(key)

    def needs_consent(self, flow: str) -> bool:
        """Whether a person marked the flow as one that is confirmed before it runs."""
        found = self._engine.registry.flow(flow)
        if found is None:
            raise NotFoundError(f"no flow {flow!r}; `uncaged-workflow list` shows what there is")
        return found.confirm

    def chosen(
        self, question: Question, choice: str, *, remember: bool
    ) -> Interpretation | Question:
        """Return the reading that the person chose; ask if it names another thing that may be one
        of several.
        """
        found = self._interpreter.choose(question, choice, remember=remember, context=self._context)
        return self._clear(question.sentence, found)

    def _clear(self, sentence: str, found: Interpretation) -> Interpretation | Question:
        """Return a reading, or the question about its first parameter whose name may mean several
        things and that was not asked about.
        """
        ambiguous = {} if self._things is None else self._things.ambiguous
        for number, call in enumerate(found.calls if ambiguous else ()):
            for name, value in call.params.items():
                meant = ambiguous.get(encode(value))
                if meant is not None and (number, name) not in self._settled:
                    self._settled.add((number, name))
                    return _question(sentence, found, (number, name), meant)
        return found


def sentence_context(store: Store, id: str, directory: Path) -> SentenceContext:
    """Return what a sentence would be read with in a conversation now.

    Raises: as `read_state`.
    """
    state = read_state(store, id)
    return _context(directory, state, NamedThings(memory_of(store, id)))


def _context(directory: Path, state: ConversationState, things: NamedThings) -> SentenceContext:
    activity = state.activity
    return SentenceContext(
        directory=directory,
        entities=things,
        packs=() if activity is None else activity.packs,
        exclusive=activity is not None and activity.exclusive,
    )


def _exchange(exchange: SettledRequest) -> dict[str, object]:
    """Return a former request as the model sees it."""
    result = exchange.result
    calls = (exchange.reading or {}).get("calls", [])
    return {
        "request": exchange.request.content,
        "calls": calls,
        "success": result.success,
        "message": result.message[:MESSAGE_CHARACTERS],
    }


def _resolved(call: Call, entities: Sequence[Mapping[str, object]]) -> Call:
    """Return a call with its references to named things replaced."""
    from uncaged_bundles.carried.placeholders import BadReference, resolve

    try:
        params = resolve(dict(call.params), [], entities, kinds=("entity",))
    except BadReference as exc:
        raise UsageError(f"the model's call of {call.flow} cannot be used: {exc}") from exc
    return replace(call, params=params)


def read_attachment(path: Path) -> dict[str, object]:
    """Return a file as the model sees it: its name and its text.

    Raises:
        UsageError: it cannot be read, is too large, or is no text.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ATTACHMENT_BYTES + 1)
    except OSError as exc:
        raise UsageError(os_problem(exc, path)) from exc
    if len(data) > MAX_ATTACHMENT_BYTES:
        raise UsageError(
            f"{path} is larger than {MAX_ATTACHMENT_BYTES >> 10} KiB; attach a part of it"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UsageError(f"{path} is no UTF-8 text; a model gets text files only") from exc
    return {"name": path.name, "text": text}


def _question(
    sentence: str,
    found: Interpretation,
    place: tuple[int, str],
    meant: Sequence[RememberedEntity],
) -> Question:
    """Return the question which thing a parameter means. place: number of the call, parameter."""
    return Question(
        kind="entity",
        sentence=sentence,
        text=f"Which {meant[0].type or 'one'} is meant by {place[1]}?",
        choices=tuple(
            Offer(
                id=str(number),
                label=_label(thing),
                interpretation=replace(found, calls=_with(found.calls, place, meaning(thing))),
            )
            for number, thing in enumerate(meant, 1)
        ),
    )


def _label(thing: RememberedEntity) -> str:
    value = "" if thing.value is None else f" ({encode(thing.value)[:80]})"
    return f"{thing.name}{value}"


def _with(calls: tuple[Call, ...], place: tuple[int, str], value: object) -> tuple[Call, ...]:
    """Return the calls with another value for one parameter."""
    number, name = place
    changed = replace(calls[number], params={**calls[number].params, name: value})
    return (*calls[:number], changed, *calls[number + 1 :])
