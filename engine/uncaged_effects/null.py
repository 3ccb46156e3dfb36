"""The null effect touches nothing and can come to anything, so tests and benchmarks see the engine
alone.

``{"null": {"value": any}}`` answers with the value. The other keys make it come to something else:

==========  ========================================================================================
times       answer with the value (a text) this many times over: a small effect with a large outcome
sleep_s     wait this long first; a kill ends it at once
first_s     the same, but only the first attempt waits
fail        come to a failure with this message
lack        the first attempt finds that the machine lacks something and says so; a later one does
            not
wait        true: somebody outside has to answer first
rule        what happens to an intent that a crash left open (repeat, restore, ask); repeat if
            absent
mark        true: add the effect's key as a line to ``work/<thread>.null``, the other side that can
            tell what was performed
==========  ========================================================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast, get_args

from uncaged_bundles import shapes
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.limits import NullLimits
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void, Wait
from uncaged_engine.door.preparing import Preparation

MAX_TIMES = 1 << 20
VALUE_ALONE = {"value"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NullBody:
    value: object = None
    times: Annotated[int, shapes.whole_between(0, MAX_TIMES)] = 1
    sleep_s: Annotated[float | None, shapes.not_negative] = None
    first_s: Annotated[float, shapes.not_negative] = 0
    fail: Annotated[str | None, shapes.text] = None
    lack: Annotated[str | None, shapes.text] = None
    wait: bool = False
    rule: Rule = "repeat"
    mark: bool = False


class NullHandler(Handler):
    kind = "null"
    limits = NullLimits

    def rule(self, body: object, bundle: Bundle) -> Rule:
        del bundle
        chosen = body.get("rule", "repeat") if isinstance(body, dict) else "repeat"
        return cast("Rule", chosen) if chosen in get_args(Rule) else "repeat"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        if isinstance(body, dict) and body.keys() == VALUE_ALONE:
            # benchmarks of the engine alone do this for every step
            return Answer(fields={"outcome": body["value"]})
        asked = read_body("null", NullBody, body)
        return asked if isinstance(asked, Failure) else perform_options(asked, context)


class NullPreparation(Preparation):
    def forget(
        self,
        store: Store,
        thread: ThreadId,
        start: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> None:
        del start, environment
        (store.work / f"{thread}.null").unlink(missing_ok=True)


def perform_options(asked: NullBody, context: EffectContext) -> Outcome:
    sleep_s = (
        asked.sleep_s if asked.sleep_s is not None else asked.first_s if context.attempt == 1 else 0
    )
    if sleep_s and context.cancel.wait(sleep_s):
        return Void(word="killed", message="the null effect was killed while it slept")
    if asked.lack is not None and context.attempt == 1:
        raise EnvironmentLacks(asked.lack)
    if asked.fail is not None:
        return Failure.of("null", asked.fail)
    if asked.wait:
        return Wait(details={"null": asked.value})
    if asked.mark:
        leave_mark(marks_path(context), context.key)
    value = asked.value
    return Answer(fields={"outcome": value * asked.times if isinstance(value, str) else value})


def marks_path(context: EffectContext) -> Path:
    return context.store.work / f"{context.thread_id}.null"


def leave_mark(path: Path, key: str) -> None:
    with path.open("ab") as marks:
        marks.write(f"{key}\n".encode())
        marks.flush()
        os.fsync(marks.fileno())
