"""The null effect touches nothing and can come to anything, so tests and benchmarks see the engine alone.

``{"null": {"value": any}}`` answers with the value. The other keys make it come to something else:

==========  ============================================================================================================
times       answer with the value (a text) this many times over: a small effect with a large outcome
sleep_s     wait this long first; a kill ends it at once
first_s     the same, but only the first attempt waits
fail        come to a failure with this message
lack        the first attempt finds that the machine lacks something and says so; a later one does not
wait        true: somebody outside has to answer first
rule        what happens to an intent that a crash left open (repeat, restore, ask); repeat if absent
mark        true: add the effect's key as a line to ``work/<thread>.null``, the other side that can tell what was performed
==========  ============================================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.limits import NullLimits
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void, Wait
from uncaged_engine.door.preparing import Preparation

MAX_TIMES = 1 << 20
PLAIN_KEYS = frozenset({"value", "times"})
KEYS = PLAIN_KEYS | frozenset({"sleep_s", "first_s", "fail", "lack", "wait", "rule", "mark"})
RULES: dict[str, Rule] = {"repeat": "repeat", "restore": "restore", "ask": "ask"}


class NullHandler(Handler):
    kind = "null"
    limits = NullLimits

    def rule(self, body: object, bundle: Bundle) -> Rule:
        del bundle
        if isinstance(body, dict):
            chosen = body.get("rule", "repeat")
            if isinstance(chosen, str):
                return RULES.get(chosen, "repeat")
        return "repeat"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        if not isinstance(body, dict):
            return Failure.of("effect", "null: its body must be a mapping")
        problem = find_problem(body)
        if problem is not None:
            return Failure.of("effect", f"null: {problem}")
        return answer(body) if body.keys() <= PLAIN_KEYS else perform_options(body, context)


class NullPreparation(Preparation):
    def forget(self, store: Store, thread: ThreadId, start: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        del start, environment
        (store.work / f"{thread}.null").unlink(missing_ok=True)


def find_problem(body: dict[str, object]) -> str | None:
    is_plain = body.keys() <= PLAIN_KEYS
    if not is_plain and not body.keys() <= KEYS:
        unknown = sorted(body.keys() - KEYS)
        return f"unknown key {unknown[0]!r} (known: {', '.join(sorted(KEYS))})"
    times = body.get("times", 1)
    if isinstance(times, bool) or not isinstance(times, int) or not 0 <= times <= MAX_TIMES:
        return f"times must be a number up to {MAX_TIMES}, not {times!r}"
    if is_plain:
        return None
    for key in ("sleep_s", "first_s"):
        sleep_s = body.get(key, 0)
        if isinstance(sleep_s, bool) or not isinstance(sleep_s, int | float) or sleep_s < 0:
            return f"{key} must be a number of seconds, not {sleep_s!r}"
    if not isinstance(body.get("rule", "repeat"), str) or body.get("rule", "repeat") not in RULES:
        return f"rule must be one of {', '.join(RULES)}, not {body['rule']!r}"
    for key in ("fail", "lack"):
        if not isinstance(body.get(key, ""), str):
            return f"{key} must be a message, not {body[key]!r}"
    return None


def perform_options(body: dict[str, object], context: EffectContext) -> Outcome:
    sleep_s = cast("float", body.get("sleep_s" if "sleep_s" in body or context.attempt > 1 else "first_s", 0))
    if sleep_s and context.cancel.wait(sleep_s):
        return Void(word="killed", message="the null effect was killed while it slept")
    if "lack" in body and context.attempt == 1:
        raise EnvironmentLacks(str(body["lack"]))
    if "fail" in body:
        return Failure.of("null", str(body["fail"]))
    if body.get("wait"):
        return Wait(details={"null": body.get("value")})
    if body.get("mark"):
        leave_mark(marks_path(context), context.key)
    return answer(body)


def answer(body: dict[str, object]) -> Answer:
    value = body.get("value")
    return Answer(fields={"outcome": value * cast("int", body.get("times", 1)) if isinstance(value, str) else value})


def marks_path(context: EffectContext) -> Path:
    return context.store.work / f"{context.thread_id}.null"


def leave_mark(path: Path, key: str) -> None:
    with path.open("ab") as marks:
        marks.write(f"{key}\n".encode())
        marks.flush()
        os.fsync(marks.fileno())
