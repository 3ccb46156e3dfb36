"""Question of a waiting thread, as a record of the conversation that the thread belongs to.

    {"kind": "thread", "question": text, "threadId", "step", "schema"?, "choices"?, "fields"?, …}

`parent` is there if another thread, which runs several calls, started the one that asks. `schema`
is that of the answer, `fields` that of a role's data. The answer is `{"value": …}`, or
`{"choice": id}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_engine.services.canonical import depth, encode
from uncaged_engine.services.threads import ThreadView, check_answer, question

from .results import MAX_DATA_BYTES, MAX_DEPTH, MAX_MESSAGE_CHARACTERS

KIND = "thread"
UNNAMED = "what is the answer?"
_TEXTS = ("role", "prompt", "problem", "worktree")
"""Details of a role's question."""
_VALUES = ("schema", "fields")
_KINDS = ("wait", "answer")


def thread_question(view: ThreadView) -> dict[str, object]:
    """Return the question of a waiting thread. Details that are too large for a record are left
    out; the thread has them.
    """
    wait, parent = question(view.records) or {}, view.start.get("parent")
    schema = wait.get("schema")
    options = schema.get("enum") if isinstance(schema, Mapping) and len(schema) == 1 else None
    details: dict[str, object] = {
        name: text[:MAX_MESSAGE_CHARACTERS]
        for name in _TEXTS
        if isinstance(text := wait.get(name), str)
    }
    details |= {name: wait[name] for name in _VALUES if name in wait}
    if isinstance(options, list):
        details["choices"] = [
            {"id": str(number), "label": _label(value), "value": value}
            for number, value in enumerate(options, 1)
        ]
    if depth(details) > MAX_DEPTH or len(encode(details)) > MAX_DATA_BYTES:
        details = {}
    return {
        "kind": KIND,
        "question": str(wait.get("question", UNNAMED))[:MAX_MESSAGE_CHARACTERS],
        "threadId": view.summary.thread_id,
        "step": wait.get("seq"),
        **({"parent": parent["threadId"]} if isinstance(parent, Mapping) else {}),
        **details,
    }


def is_asked(view: ThreadView, asked: Mapping[str, object]) -> bool:
    """Whether the thread's last question is this one, and has no answer."""
    return not is_answered(view) and thread_question(view) == asked


def is_answered(view: ThreadView) -> bool:
    """Whether the thread's last question has an answer."""
    last: Mapping[str, Any] = next(
        (one for one in reversed(view.records) if one.get("control") in _KINDS), {}
    )
    return last.get("control") == "answer"


def recorded_answer(view: ThreadView) -> Mapping[str, object]:
    """Return the last answer that the thread got; without its value if that is too large for a
    record.
    """
    answers = (one["value"] for one in reversed(view.records) if one.get("control") == "answer")
    value = next(answers, None)
    is_large = depth(value) > MAX_DEPTH or len(encode(value)) > MAX_DATA_BYTES
    return {} if value is None or is_large else {"value": value}


def check_thread_answer(
    view: ThreadView, asked: Mapping[str, Any], answer: Mapping[str, object]
) -> Mapping[str, object]:
    """Return an answer as `{"value": …}`, checked against the thread's question.

    Raises:
        UsageError: it is no answer to the question. RefusedError: the question has an answer.
    """
    if view.summary.status != "waiting" or not is_asked(view, asked):
        raise RefusedError(f"thread {view.summary.thread_id} does not ask that question any more")
    match answer:
        case {"value": value}:
            pass
        case {"choice": str(choice)}:
            offered = {str(one["id"]): one["value"] for one in asked.get("choices", ())}
            if choice not in offered:
                known = ", ".join(offered) or "there are none; give a value"
                raise UsageError(f"{choice[:80]!r} is none of the choices: {known}")
            value = offered[choice]
        case _:
            raise UsageError('the answer to a thread\'s question is {"value": …}')
    check_answer(view.records, value)
    return {"value": value}


def _label(value: object) -> str:
    return value if isinstance(value, str) else encode(value)
