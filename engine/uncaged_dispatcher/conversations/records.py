"""Records of a conversation's log: their shapes, and what they add up to.

    {"format":1,"conversation":ID,"name":…}      the first line
    {"seq":n,"request":{…},"first"?:true}        accepted
    {"seq":n,"promote":ID}                       moved to the front
    {"seq":n,"reading":{…},"of":ID}              understood as calls
    {"seq":n,"translation":{…},"of":ID}          the thread in which a model was asked for it
    {"seq":n,"question":{…},"of":ID}             asked the person
    {"seq":n,"answer":…,"of":ID}
    {"seq":n,"thread":{…},"of":ID}               the thread's id, before the thread is started
    {"seq":n,"cancel":WHY,"of":ID}
    {"seq":n,"result":{…},"of":ID}               settled
    {"seq":n,"feedback":{…},"of":ID}             the person's, on a request that is settled
    {"seq":n,"settings":{…}}                     those that changed

Each has a timestamp, which orders nothing: `seq` does. Readers skip shapes that they do not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from uncaged_bundles.errors import DamagedError, UncagedError
from uncaged_bundles.records import dataclass, field
from uncaged_engine.services.canonical import decode, encode

from .requests import ConversationRequest
from .results import Activity, RequestResult, read_result

FORMAT = 1
KEPT_RESULTS = 20
"""So many results are kept in memory: the exchanges that a reading may refer to."""


@dataclass(slots=True, kw_only=True)
class OpenRequest:
    """A request that is not settled.

    reading: how it was understood, if it was. thread: its thread's id with its call, recorded
    before the thread was started. question: the one that waits for an answer. reading_seq,
    thread_seq, question_seq: the numbers of these records. cancelled: it was cancelled while it
    ran.
    """

    request: ConversationRequest
    reading: Mapping[str, Any] | None = None
    thread: Mapping[str, Any] | None = None
    reading_seq: int = 0
    thread_seq: int = 0
    question: Mapping[str, Any] | None = None
    question_seq: int = 0
    cancelled: bool = False

    def waiting_document(self) -> dict[str, object]:
        """Return what it waits for, as JSON."""
        return {"request": self.request.id, "seq": self.question_seq, "question": self.question}

    @property
    def has_begun(self) -> bool:
        """Whether its turn had come."""
        return self.thread is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRequest:
    """A settled request with its result. seq: that of the result's record."""

    seq: int
    request: ConversationRequest
    reading: Mapping[str, Any] | None
    result: RequestResult


@dataclass(slots=True, kw_only=True)
class ConversationState:
    """What the records of a log add up to.

    open: requests that are not settled, in the order in which they run. exchanges: the last ones.
    known: the ids of all requests, with the content of each.
    """

    id: str
    name: str
    created_ms: int
    seq: int = 0
    updated_ms: int = 0
    open: list[OpenRequest] = field(default_factory=list)
    exchanges: list[SettledRequest] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    settings: dict[str, object] = field(default_factory=dict)
    activity: Activity | None = None
    settled: int = 0

    def find(self, id: str) -> OpenRequest | None:
        """Return the open request with this id."""
        return next((one for one in self.open if one.request.id == id), None)

    def open_request(self, id: str) -> OpenRequest:
        """Return the same. Raises: KeyError: there is none."""
        found = self.find(id)
        if found is None:
            raise KeyError(id)
        return found

    def exchange(self, id: str) -> SettledRequest | None:
        """Return the kept exchange of the request with this id."""
        return next((one for one in self.exchanges if one.request.id == id), None)

    def add(self, record: Mapping[str, Any]) -> None:
        """Apply one record.

        Raises:
            ValueError: it cannot follow the records before it.
        """
        if record["seq"] != self.seq + 1:
            raise ValueError(f"record {record['seq']} follows record {self.seq}")
        match record:
            case {"request": document}:
                request = ConversationRequest.read(document, strict=False)
                self._accept(request, first=bool(record.get("first")))
            case {"promote": str(id)} if (found := self.find(id)) is not None:
                self.open.remove(found)
                self.open.insert(self._front(), found)
            case {"settings": Mapping() as changed}:
                self.settings.update(changed)
                self.name = str(self.settings.get("name", self.name))
            case {"of": str(id)} if (found := self.find(id)) is not None:
                self._advance(found, record)
            case _:
                pass  # of a later engine, or about a request that is settled
        self.seq += 1
        self.updated_ms = int(record["timestamp"])

    def _accept(self, request: ConversationRequest, *, first: bool) -> None:
        if request.id in self.known:
            raise ValueError(f"request {request.id} a second time")
        self.known[request.id] = request.content
        self.open.insert(self._front() if first else len(self.open), OpenRequest(request=request))

    def _front(self) -> int:
        """Return the place behind the request whose turn had come."""
        return 1 if self.open and self.open[0].has_begun else 0

    def _advance(self, found: OpenRequest, record: Mapping[str, Any]) -> None:
        if "reading" in record:
            found.reading, found.reading_seq = record["reading"], record["seq"]
        elif "question" in record:
            found.question, found.question_seq = record["question"], record["seq"]
        elif "answer" in record:
            found.question = None
        elif "thread" in record:
            found.question = None
            found.thread, found.thread_seq = record["thread"], record["seq"]
            # whatever was queued before it meanwhile, it runs
            self.open.remove(found)
            self.open.insert(0, found)
        elif "cancel" in record:
            found.cancelled = True
        elif "result" in record:
            self._settle(found, record)

    def _settle(self, found: OpenRequest, record: Mapping[str, Any]) -> None:
        result = read_result(record["result"])
        self.open.remove(found)
        self.settled += 1
        self.exchanges.append(
            SettledRequest(
                seq=record["seq"], request=found.request, reading=found.reading, result=result
            )
        )
        del self.exchanges[:-KEPT_RESULTS]
        if result.changes_activity:
            self.activity = result.activity


def first_record(id: str, name: str, engine: str, now_ms: int) -> dict[str, object]:
    """Return the first record of a conversation."""
    return {
        "format": FORMAT,
        "conversation": id,
        "name": name,
        "engine": engine,
        "timestamp": now_ms,
    }


def open_line(record: Mapping[str, object]) -> bytes:
    """Return a record as canonical JSON without its closing brace, to be sealed."""
    return encode(record)[:-1].encode()


def parse(line: bytes) -> dict[str, Any]:
    """Return the record of a sealed line, without its chain.

    Raises:
        ValueError: it is not canonical JSON, or no object.
    """
    record = decode(line.rstrip(b"\n"))
    if not isinstance(record, dict):
        raise ValueError("a line is no JSON object")
    record.pop("chain", None)
    return record


def state_of(place: str, lines: Iterable[bytes]) -> ConversationState:
    """Add up the lines of a log.

    Args:
        place: the file, for messages.
    Raises:
        DamagedError: a newer engine wrote it, or it is no conversation.
    """
    state: ConversationState | None = None
    for number, line in enumerate(lines, start=1):
        try:
            record = parse(line)
            if state is None:
                state = _begin(record)
            else:
                state.add(record)
        except (ValueError, KeyError, TypeError, UncagedError) as exc:
            raise DamagedError(f"{place}:{number}: {exc}; the file was left as it is") from exc
    if state is None:
        raise DamagedError(f"{place} is empty; no conversation begins like this")
    return state


def _begin(record: Mapping[str, Any]) -> ConversationState:
    match record:
        case {"format": int(format)} if format > FORMAT:
            raise ValueError(
                f"format {format} of a newer version; this one reads format {FORMAT}: update uncaged-workflow"
            )
        case {"format": 1, "conversation": str(id), "name": str(name), "timestamp": int(now)}:
            return ConversationState(id=id, name=name, created_ms=now, updated_ms=now)
        case _:
            pass
    raise ValueError("this is no conversation")
