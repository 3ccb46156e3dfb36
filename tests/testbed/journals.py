"""Journals made by hand, line by line, with the engine's own shapes and seals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from uncaged_bundles.ids import BundleHash, ThreadId, bundle_hash, new_thread_id
from uncaged_engine.journal import chain, lines
from uncaged_engine.journal.codec import encode

BUNDLE = bundle_hash(b"a bundle for journals made by hand")
NOW_MS = 1_714_963_200_000
THREAD = new_thread_id(NOW_MS, b"0123456789")


def start_fields(
    bundle: BundleHash = BUNDLE,
    thread: ThreadId = THREAD,
    *,
    prompt: str = "do it",
    params: Mapping[str, object] | None = None,
    limits: Mapping[str, int] | None = None,
    **more: object,
) -> dict[str, object]:
    """A start record's fields, as `run` composes them."""
    options = {
        "maxRounds": 10,
        "maxSteps": 10_000,
        "threadId": thread,
        "startedAt": NOW_MS,
        "seed": 7,
        **(limits or {}),
    }
    return {
        "engine": "0",
        "python": "3",
        "name": "demo",
        "hash": bundle,
        "threadId": thread,
        "parameters": {"prompt": prompt, "params": dict(params or {}), "options": options},
        "agents": {},
        "sandbox": "bubblewrap",
        **more,
    }


@dataclass(slots=True)
class Script:
    """A journal that grows. Each method appends one sealed line and returns the script."""

    bundle: BundleHash = BUNDLE
    thread: ThreadId = THREAD
    sealed: list[bytes] = field(default_factory=list)
    digest: bytes = b""

    @classmethod
    def begun(cls, bundle: BundleHash = BUNDLE, thread: ThreadId = THREAD, **start: Any) -> Self:
        script = cls(bundle=bundle, thread=thread, digest=chain.seed(bundle, thread))
        return script.add(lines.start(start_fields(bundle, thread, **start), NOW_MS))

    @property
    def data(self) -> bytes:
        return b"".join(self.sealed)

    def add(self, body: bytes) -> Self:
        line, self.digest = chain.seal(self.digest, body)
        self.sealed.append(line)
        return self

    def intent(self, seq: int, effect: object = None) -> Self:
        return self.add(
            lines.intent(
                seq,
                encode({"null": {"value": seq}} if effect is None else effect).encode(),
                NOW_MS + seq,
            )
        )

    def step(self, seq: int, **fields: object) -> Self:
        return self.add(lines.step(seq, fields or {"outcome": seq}, NOW_MS + seq))

    def output(self, seq: int, role: str = "writer", content: str = "text", **meta: object) -> Self:
        return self.step(seq, role=role, content=content, meta=meta, by="bundle")

    def done(self, seq: int, effect: object = None, **fields: object) -> Self:
        """An intent with its step."""
        return self.intent(seq, effect).step(seq, **fields)

    def attempt(self, seq: int, number: int, **fields: object) -> Self:
        return self.add(lines.attempt(seq, number, fields, NOW_MS))

    def void(
        self,
        seq: int,
        word: str = "killed",
        message: str = "stopped",
        *,
        begun: bool | None = False,
        parts: Sequence[int] = (),
    ) -> Self:
        """begun: None leaves the field out, as engines did before they wrote it."""
        body = lines.void(seq, word, message, {}, NOW_MS, begun=bool(begun), parts=parts)
        return self.add(body if begun is not None else body.replace(b'"begun":false,', b""))

    def control(self, word: str, **fields: object) -> Self:
        return self.add(lines.control(word, fields, NOW_MS))

    def end(self, word: lines.EndWord, **fields: object) -> Self:
        return self.add(lines.end(word, fields, NOW_MS))


def records_of(data: bytes) -> list[dict[str, Any]]:
    """The whole lines of a journal as mappings, chains included."""
    import json

    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def fields_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without what differs from run to run."""
    return {key: value for key, value in record.items() if key not in ("chain", "timestamp")}
