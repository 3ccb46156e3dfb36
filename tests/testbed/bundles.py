"""Small bundles for tests, and their threads in a store without a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncaged_bundles.ids import ThreadId, new_thread_id
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import create

from .journals import NOW_MS, Script, start_fields

ANY_PARAMETERS = {
    "type": "object",
    "properties": {name: {} for name in ("n", "plan", "rule", "value", "kind")},
}


def source(name: str, body: str, *, head: str = "", **descriptor: object) -> bytes:
    """Return the source of a bundle; *body* is the indented body of ``run``."""
    fields = {
        "contract": 1,
        "name": name,
        "description": "For tests.",
        "kind": "task",
        "parameters": ANY_PARAMETERS,
        "policy": {"null": {}},
        "continues": True,
        **descriptor,
    }
    return f"descriptor = {fields!r}\n\n{head}\ndef run(input, options):\n{body}".encode()


COUNT = source(
    "count",
    """
    total = 0
    for number in range(1, input["params"].get("n", 5) + 1):
        total += yield {"null": {"value": number}}
    return {"success": True, "message": f"sum {total}"}
""",
)
"""Yields n null effects and adds up their answers."""

MARKED = source(
    "marked",
    """
    answers = []
    for number in range(1, input["params"].get("n", 5) + 1):
        answers.append((yield {"null": {"value": number, "mark": True, "rule": input["params"].get("rule", "repeat")}}))
    return {"success": True, "message": f"{len(answers)} answers", "data": answers}
""",
)
"""Yields n effects, each of which leaves a mark outside when it is performed."""

PLANNED = source(
    "planned",
    """
    heard = []
    for effect in input["params"]["plan"]:
        if effect == "raise":
            raise ValueError("as planned")
        try:
            answer = yield effect
        except EffectError as error:
            answer = {"caught": error.error}
        if isinstance(answer, dict):
            answer.pop("timestamp", None)
        heard.append(answer)
    return {"success": True, "message": str(len(heard)), "data": heard}
""",
)
"""Yields what its parameter `plan` lists, one after the other, and returns all that it heard;
"raise" lets it fail.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A thread in a store."""

    bundle: Bundle
    thread: ThreadId
    path: Path


def granted(store: Store, text: bytes) -> Bundle:
    """Put a bundle into a store, registered under its own name and granted."""
    bundle = read_bundle(text, KNOWN)
    Registry(store).add(bundle.descriptor.name, bundle, now_ms=NOW_MS, granted=True)
    return bundle


def thread_id(number: int = 0) -> ThreadId:
    """The *number*-th thread id of a test."""
    return new_thread_id(NOW_MS + number, number.to_bytes(10, "big"))


def place(
    store: Store,
    text: bytes = COUNT,
    *,
    number: int = 0,
    prompt: str = "do it",
    params: Mapping[str, object] | None = None,
    limits: Mapping[str, int] | None = None,
) -> Placed:
    """A thread that was accepted and that no worker has seen yet."""
    bundle, thread = granted(store, text), thread_id(number)
    path = store.data_path(bundle.hash, thread)
    start = start_fields(
        bundle.hash,
        thread,
        prompt=prompt,
        params=params,
        limits=limits,
        name=bundle.descriptor.name,
    )
    create(path, lines.start(start, NOW_MS), bundle.hash, thread)
    return Placed(bundle=bundle, thread=thread, path=path)


def place_script(store: Store, bundle: Bundle, script: Script) -> Placed:
    """A thread whose journal is a script."""
    path = store.data_path(bundle.hash, script.thread)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(script.data)
    return Placed(bundle=bundle, thread=script.thread, path=path)


def script_of(bundle: Bundle, *, number: int = 0, **start: Any) -> Script:
    """A journal made by hand for a thread of *bundle*."""
    return Script.begun(bundle.hash, thread_id(number), name=bundle.descriptor.name, **start)
