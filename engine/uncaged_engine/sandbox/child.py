"""Bundle server inside the sandbox: one bundle, compiled once, and one generator per slot, driven
by frames.

Imports nothing of ours and almost nothing of the standard library, because a cold start pays for
every import. The parent sends this file as compiled code before anything else, with the code of the
other files that run inside.

A request is ``LETTER SLOT SEQ BODY\\n``, an answer ``SLOT SEQ WORD DIGEST BODY\\n``. Exactly one
answer follows a request; the outcomes after a ``P`` are part of that request.
"""

from __future__ import annotations

import posix
import sys
from _blake2 import blake2b
from _contextvars import Context
from _json import encode_basestring, make_encoder, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from io import BufferedReader
    from types import CodeType, TracebackType
    from typing import Any

    _Run = tuple[Any, Callable[..., Any], Callable[[Any], Any]]
    """A generator, `run` of its context, and its `send`."""

DIGEST_BYTES = 16
MESSAGE_CHARACTERS = 4000
TRACE_FRAMES = 30
_OUTPUT_KEYS = {"role", "content", "meta"}


class EffectError(Exception):
    """Failure of an effect; ``error`` is a mapping with at least ``kind`` and ``message``."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(str(error.get("message", "the effect failed")))
        self.error = error
        self.kind = error.get("kind")


class _ScanSettings:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner's own, it empties it


_scan = make_scanner(_ScanSettings())  # type: ignore[arg-type]  # any object with these attributes will do


def main(payload: Mapping[str, Any], reader: BufferedReader, answer_fd: int) -> None:
    """Lock down, verify the lockdown, and serve until the end of the pipe."""
    sys.stdin = sys.stdout = sys.stderr = None  # output of a bundle is dropped
    sys.__stdin__ = sys.__stdout__ = sys.__stderr__ = None  # type: ignore[misc]  # the same
    modules = payload["modules"]
    settings = payload["settings"]
    remaining_access: list[str] = []
    lockdown = load(modules["lockdown"], "lockdown")
    lockdown["follow_parent"](settings)
    if "filter" in settings:  # absent for a trusted bundle
        landlock = load(modules["landlock"], "landlock") if "landlock" in modules else None
        try:
            lockdown["lock_down"](settings, landlock)
            remaining_access = lockdown["remaining_access"](settings["probes"])
        except OSError as error:
            remaining_access = [f"lock-down failed: {error}"]
    if "boot" in modules:
        load(modules["boot"], "boot")["replace"]()
    writer = AnswerWriter(answer_fd)
    if remaining_access:
        writer.answer(0, 0, b"open", encode({"doors": remaining_access}))
        return
    writer.answer(0, 0, b"locked", b"{}")
    BundleServer(reader, writer, settings["answer_bytes"], settings["mark_bytes"]).serve()


def load(code: CodeType, name: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": name}
    exec(code, namespace)  # noqa: S102 - the engine's own code, or the bundle that all this is about
    return namespace


class AnswerWriter:
    """Writer of answers to the pipe."""

    def __init__(self, answer_fd: int) -> None:
        self._fd = answer_fd

    def answer(self, slot: int, seq: int, word: bytes, body: bytes, digest: bytes = b"-") -> None:
        data = b"%d %d %b %b %b\n" % (slot, seq, word, digest, body)
        done = posix.write(self._fd, data)
        while done < len(data):
            done += posix.write(self._fd, data[done : done + 65536])


class BundleServer:
    """Request loop over the compiled bundle and its generators."""

    def __init__(
        self, reader: BufferedReader, writer: AnswerWriter, answer_bytes: int, mark_bytes: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer_bytes = answer_bytes
        self._mark_bytes = mark_bytes
        self._code: CodeType | None = None
        self._lines: list[str] = []
        self._name = ""
        self._runs: dict[int, _Run] = {}

    def serve(self) -> None:
        # for every step
        readline, runs, scan, advance, answer_with = (
            self._reader.readline,
            self._runs,
            _scan,
            self._advance,
            self._writer.answer,
        )
        while frame := readline():
            letter, slot_text, seq_text, body = frame.split(b" ", 3)
            slot, seq = int(slot_text), int(seq_text)
            if letter == b"O":
                record = scan(body.decode(), 0)[0]
                if "outcome" in record and "role" not in record and "error" not in record:
                    _, run, send = runs[slot]
                    word, answer = advance(slot, run, send, record["outcome"])
                else:
                    word, answer = self._outcome(slot, record)
                answer_with(slot, seq + 1, word, answer)
            elif letter == b"S":
                word, answer = self._start(slot, body)
                self._writer.answer(slot, 1, word, answer)
            elif letter == b"P":
                self._replay(slot, seq, body)
            elif letter == b"D":
                self._drop(slot)
                self._writer.answer(slot, 0, b"dropped", b"{}")
            else:
                word, answer = self._compile(body)
                self._writer.answer(0, 0, word, answer)

    def _compile(self, body: bytes) -> tuple[bytes, bytes]:
        request = decode(body)
        self._name = request["name"]
        self._lines = request["source"].split("\n")
        try:
            self._code = compile(request["source"], self._name, "exec", dont_inherit=True)
        except BaseException as error:  # a null byte, a bomb of brackets, a plain mistake
            return b"raise", self._describe(error)
        return b"ready", b"{}"

    def _start(self, slot: int, body: bytes) -> tuple[bytes, bytes]:
        request = decode(body)
        context = Context()  # decimal's precision and the like stay within the slot
        try:
            generator = context.run(self._open, request["input"], request["options"])
            send = generator.send
        except BaseException as error:
            return b"raise", self._describe(error)
        self._runs[slot] = generator, context.run, send
        return self._advance(slot, context.run, send, None)

    def _open(self, params: object, options: object) -> Any:
        module = type(sys)("bundle")
        sys.modules["bundle"] = module  # where dataclasses look up the names of annotations
        namespace: dict[str, Any] = module.__dict__
        namespace["EffectError"] = EffectError
        exec(self._code, namespace)  # type: ignore[arg-type]  # noqa: S102 - the bundle, compiled
        generator = namespace["run"](params, options)
        if not (hasattr(generator, "send") and hasattr(generator, "throw")):
            raise TypeError(
                f"run() must be a generator function; it returned {type(generator).__name__}"
            )
        return generator

    def _outcome(self, slot: int, record: dict[str, Any]) -> tuple[bytes, bytes]:
        generator, run, send = self._runs[slot]
        error = record.get("error")
        if error is not None:
            return self._advance(slot, run, generator.throw, EffectError(error))
        if "role" in record:
            record.pop("chain", None)
            return self._advance(slot, run, send, record)
        return self._advance(slot, run, send, record.get("outcome"))

    def _replay(self, slot: int, count: int, body: bytes) -> None:
        """Answer the first *count* effects from the frames that follow; send only the position
        reached.
        """
        digest = blake2b(digest_size=DIGEST_BYTES)
        word, answer = self._start(slot, body)
        seq = 1
        for _ in range(count):
            frame = self._reader.readline()
            if word == b"effect":  # otherwise the run ended early, and the rest is drained
                digest.update(mark(answer, self._mark_bytes) + b"\n")
                word, answer = self._outcome(slot, decode(frame.split(b" ", 3)[3]))
                seq += 1
        self._writer.answer(slot, seq, word, answer, digest.hexdigest().encode())

    def _advance(
        self, slot: int, run: Callable[..., Any], method: Callable[[Any], Any], argument: object
    ) -> tuple[bytes, bytes]:
        try:
            effect = run(method, argument)
        except StopIteration as stop:
            del self._runs[slot]
            return self._encoded(b"return", stop.value, "what run() returned", None)
        except BaseException as error:
            del self._runs[slot]
            return b"raise", self._describe(error)
        if type(effect) is not dict or len(effect) != 1:
            problem = f"an effect is a mapping with exactly one key, its kind; the bundle yielded {summary(effect)}"
            return self._refuse(slot, TypeError(problem))
        if "output" in effect:
            body = effect["output"]
            if (
                type(body) is dict
                and len(body) == len(_OUTPUT_KEYS)
                and _OUTPUT_KEYS.issuperset(body)
            ):
                parts = {"role": body["role"], "content": body["content"], "meta": body["meta"]}
                effect = {"output": parts}
        return self._encoded(b"effect", effect, "the effect", slot)

    def _encoded(
        self, word: bytes, value: object, what: str, slot: int | None
    ) -> tuple[bytes, bytes]:
        try:
            body = "".join(_pieces(value, 0)).encode()
            if len(body) > self._answer_bytes:
                raise ValueError(
                    f"{what} is {len(body)} bytes long; at most {self._answer_bytes} are allowed"
                )
        except BaseException as error:
            if not isinstance(error, MemoryError):
                error.add_note(f"{what} must consist of JSON values")
            return self._refuse(slot, error)
        return word, body

    def _refuse(self, slot: int | None, error: BaseException) -> tuple[bytes, bytes]:
        """End a run whose yield is no effect, and name the line of its yield."""
        if slot is None:
            return b"raise", self._describe(error)
        generator, _, _ = self._runs.pop(slot)
        frame = getattr(generator, "gi_frame", None) or getattr(generator, "cr_frame", None)
        where = "" if frame is None else self._place(self._name, frame.f_lineno, "run")
        return b"raise", self._describe(error, where)

    def _drop(self, slot: int) -> None:
        run = self._runs.pop(slot, None)
        if run is not None:
            try:
                run[0].close()
            except BaseException:  # errors of its `finally` blocks are ignored
                return

    def _describe(self, error: BaseException, where: str = "") -> bytes:
        try:
            error.__traceback__, trace = None, where or self._trace(error.__traceback__)
            notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
            description = {
                "type": text(type(error).__name__),
                "message": text(f"{error}{notes}"),
                "trace": text(trace),
            }
            return encode(description)
        except BaseException:  # an exception whose text raises, or no memory left
            kind = b"MemoryError" if isinstance(error, MemoryError) else b"Exception"
            return (
                b'{"type":"%b","message":"the bundle raised an error that cannot be shown","trace":""}'
                % kind
            )

    def _trace(self, traceback: TracebackType | None) -> str:
        """Return the outermost and the innermost frames; there may be millions, and no memory
        left.
        """
        first: list[str] = []
        last: list[str] = []
        count = 0
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if traceback.tb_frame.f_globals is not globals():
                count += 1
                places = first if count <= TRACE_FRAMES // 2 else last
                places.append(self._place(code.co_filename, traceback.tb_lineno, code.co_name))
                if len(last) > TRACE_FRAMES // 2:
                    del last[0]
            traceback = traceback.tb_next
        omitted = [f"... {count - TRACE_FRAMES} more ..."] if count > TRACE_FRAMES else []
        return "\n".join([*first, *omitted, *last])

    def _place(self, file: str, line: int, function: str) -> str:
        source = (
            self._lines[line - 1].strip()[:200]
            if file == self._name and 0 < line <= len(self._lines)
            else ""
        )
        return f"{file}:{line} in {function}" + (f": {source}" if source else "")


def mark(effect: bytes, mark_bytes: int) -> bytes:
    """Return the digest's input for an effect: its bytes, or its hash if it is long."""
    if len(effect) <= mark_bytes:
        return effect
    return b"blob:" + blake2b(effect, digest_size=DIGEST_BYTES).hexdigest().encode()


def decode(data: bytes) -> Any:
    return _scan(data.decode(), 0)[0]


def encode(value: object) -> bytes:
    """Return canonical JSON; raise for anything but JSON values."""
    return "".join(_pieces(value, 0)).encode()


def _no_json(value: object) -> object:
    raise TypeError(f"{summary(value)} is not a JSON value")


_pieces = make_encoder(None, _no_json, encode_basestring, None, ":", ",", False, False, False)


def summary(value: object) -> str:
    """Name a value without trusting its ``repr``."""
    if type(value) in (list, tuple, dict, set, str, bytes):
        return f"a {type(value).__name__} of {len(value)}"  # type: ignore[arg-type]  # all of these have a length
    return f"a {type(value).__name__}" if value is not None else "None"


def text(value: str) -> str:
    return value[:MESSAGE_CHARACTERS].encode("utf-8", "backslashreplace").decode()
