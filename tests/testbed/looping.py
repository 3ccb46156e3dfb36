"""Step loop in memory: a journal in memory, a plain generator as bundle, a function as handler."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from uncaged_engine.cells.reply import BundleReply
from uncaged_engine.door.effects import Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome
from uncaged_engine.journal import lines
from uncaged_engine.journal.blobs import blob_hash, effect_mark
from uncaged_engine.journal.codec import encode
from uncaged_engine.journal.recover import History, recover
from uncaged_engine.steps.commands import Ask, Command, Flush, Perform, Spill, StepProgress, Write
from uncaged_engine.steps.loop import Position, run_loop

from .journals import NOW_MS, Script

Run = Callable[[], Generator[Any, Any, Any]]


class EffectError(Exception):
    """The exception that a failed effect raises in a bundle."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message")))
        self.error = error


class Crash(Exception):
    """A simulated power cut."""


class BundleSide(Protocol):
    """The bundle's side of the step loop."""

    def start(self) -> BundleReply: ...
    def tell(self, line: bytes) -> BundleReply: ...


class GeneratorCell:
    """A generator with the interface of a cell: outcomes as sealed lines in, replies out."""

    def __init__(self, run: Run, blobs: Mapping[str, bytes]) -> None:
        self._generator = run()
        self._blobs = blobs

    def start(self) -> BundleReply:
        return self._advance(self._generator.send, None)

    def tell(self, line: bytes) -> BundleReply:
        record = json.loads(line)
        note = record.pop("blob", None)
        if note is not None:
            record[note["field"]] = json.loads(self._blobs[note["hash"]])
        record.pop("chain", None)
        if "error" in record:
            return self._advance(self._generator.throw, EffectError(record["error"]))
        return self._advance(
            self._generator.send, record if "role" in record else record["outcome"]
        )

    def _advance(self, method: Callable[[Any], Any], argument: object) -> BundleReply:
        try:
            return BundleReply("effect", encode(_in_order(method(argument))).encode())
        except StopIteration as stop:
            return BundleReply("return", encode(stop.value).encode())
        except (EffectError, ValueError, KeyError) as exc:
            return BundleReply(
                "raise",
                encode({"type": type(exc).__name__, "message": str(exc), "trace": ""}).encode(),
            )


def answer_with_its_value(command: Perform) -> Outcome:
    """Answer as the null effect does."""
    body = command.body if isinstance(command.body, dict) else {}
    return (
        Failure.of("null", str(body["fail"]))
        if "fail" in body
        else Answer(fields={"outcome": body.get("value")})
    )


@dataclass(slots=True, kw_only=True)
class Table:
    """Everything that a loop needs, in memory; `play` runs a thread from the end of its journal.

    commands: what the loop asked for. performed: seq and attempt of each effect, intended: when it
    was first asked for. flushed: how many lines are on disk. crash_at: the number of the command at
    which the power goes out, before it is executed.
    """

    script: Script = field(default_factory=Script.begun)
    perform: Callable[[Perform], Outcome] = answer_with_its_value
    stops: Callable[[int], str | None] = lambda _asked: None
    rounds: int = 10
    steps: int = 10_000
    refused: frozenset[str] = frozenset()
    rules: Mapping[str, Rule] = field(default_factory=dict)
    crash_at: int | None = None
    blobs: dict[str, bytes] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    performed: list[tuple[int, int]] = field(default_factory=list)
    intended: list[int] = field(default_factory=list)
    flushed: int = 1
    asked: int = 0

    def now_ms(self) -> int:
        return NOW_MS + len(self.script.sealed)

    def stop_word(self) -> str | None:
        self.asked += 1
        return self.stops(self.asked)

    def max_rounds(self) -> int:
        return self.rounds

    def usage(self) -> Mapping[str, object]:
        return {}

    def overspent(self) -> Mapping[str, object] | None:
        return None

    def max_steps(self) -> int:
        return self.steps

    def refusal(self, kind: str) -> str | None:
        return f"{kind} is not in the policy" if kind in self.refused else None

    def rule(self, kind: str, body: object) -> Rule:  # noqa: ARG002 - the harness's signature
        return self.rules.get(kind, "repeat")

    def history(self) -> History:
        return recover(self.script.data, self.script.bundle, self.script.thread)

    def play(self, run: Run, *, redo: bool = False, skip: bool = False) -> str:
        """Take the thread up and drive it until it is left. redo, skip: as a person who resumes it
        decides.
        """
        for word, is_set in (("redo", redo), ("skip", skip)):
            if is_set:
                self.script.control("resume", **{word: True})
        return self.play_with(GeneratorCell(run, self.blobs))

    def play_with(self, cell: BundleSide) -> str:
        """Play with another bundle than a plain generator."""
        history = self.history()
        self.flushed = len(self.script.sealed)  # the former owner flushed it, or lost it
        effect = cell.start()
        for line in history.steps:
            effect = cell.tell(line)
        position = Position(
            steps=len(history.steps),
            rounds=history.rounds,
            pending=history.pending,
            answered=history.answer is not None,
        )
        loop = run_loop(position, effect, self)
        reply: object = None
        while True:
            try:
                command = loop.send(reply)
            except StopIteration as stop:
                return str(stop.value)
            if self.crash_at == len(self.commands):
                raise Crash
            self.commands.append(command)
            reply = self._execute(command, cell)

    def lose_what_was_not_flushed(self) -> None:
        """Drop everything that a power cut would lose."""
        kept = self.script.sealed[: self.flushed]
        digest = recover(b"".join(kept), self.script.bundle, self.script.thread).digest
        self.script = Script(
            bundle=self.script.bundle, thread=self.script.thread, sealed=kept, digest=digest
        )

    def _execute(self, command: Command, cell: BundleSide) -> object:
        match command:
            case Write(body, flush):
                line = self.script.add(body).sealed[-1]
                if flush:
                    self.flushed = len(self.script.sealed)
                return line
            case Flush():
                self.flushed = len(self.script.sealed)
                return None
            case Spill(fields):
                return self._spill(fields)
            case Ask(seq, line):
                return StepProgress(cell.tell(line), seq)
            case Perform(seq, _, _, attempt, intended_ms):
                self.intended.append(intended_ms)
                assert self.flushed == len(self.script.sealed), (
                    "the world may see an effect only after the flush"
                )
                self.performed.append((seq, attempt))
                return self.perform(command)

    def _spill(self, fields: Mapping[str, object]) -> dict[str, object]:
        encoded = {name: encode(value).encode() for name, value in fields.items()}
        largest = max(encoded, key=lambda name: len(encoded[name]))
        name = blob_hash(encoded[largest])
        self.blobs[name] = encoded[largest]
        return lines.spill(fields, largest, name, len(encoded[largest]))


def _in_order(effect: Any) -> Any:
    """A well-formed output has its keys in one order, as the child sends it."""
    body = effect.get("output")
    if isinstance(body, dict) and set(body) == {"role", "content", "meta"}:
        return {"output": {key: body[key] for key in ("role", "content", "meta")}}
    return effect


def marks_of(run: Run, table: Table) -> list[bytes]:
    """The marks of the effects that *run* yields for the outcomes of a table's journal."""
    cell = GeneratorCell(run, table.blobs)
    reply, marks = cell.start(), []
    for line in table.history().steps:
        marks.append(effect_mark(reply.body))
        reply = cell.tell(line)
    return marks
