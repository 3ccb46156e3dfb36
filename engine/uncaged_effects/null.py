"""The effect `null`: any outcome without any action, for tests and benchmarks of the engine.

``{"null": {"value": any}}`` answers with the value. The other keys change the outcome:

==========  ========================================================================================
times       answer with the value (a text) repeated this often: a small effect, a large outcome
sleep_s     wait this long first; a kill ends it at once
first_s     the same, for the first attempt only
fail        fail with this message
lack        the first attempt reports that the environment lacks this
wait        true: wait for an answer from outside
rule        rule for an intent that a crash left open (repeat, restore, ask); repeat if absent
mark        true: append the effect's key as a line to ``work/<thread>.null``, a record outside the
            journal of each performance
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


# not frozen: benchmarks of the engine make one for every step
@dataclass(slots=True, kw_only=True)
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
            # fast path: benchmarks do this at every step
            return Answer(fields={"outcome": body["value"]})
        options = read_body("null", NullBody, body)
        return options if isinstance(options, Failure) else perform_options(options, context)


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


def perform_options(options: NullBody, context: EffectContext) -> Outcome:
    sleep_s = (
        options.sleep_s
        if options.sleep_s is not None
        else options.first_s
        if context.attempt == 1
        else 0
    )
    if sleep_s and context.cancel.wait(sleep_s):
        return Void(word="killed", message="the null effect was killed while it slept")
    if options.lack is not None and context.attempt == 1:
        raise EnvironmentLacks(options.lack)
    if options.fail is not None:
        return Failure.of("null", options.fail)
    if options.wait:
        return Wait(details={"null": options.value})
    if options.mark:
        leave_mark(marks_path(context), context.key)
    value = options.value
    return Answer(fields={"outcome": value * options.times if isinstance(value, str) else value})


def marks_path(context: EffectContext) -> Path:
    return context.store.work / f"{context.thread_id}.null"


def leave_mark(path: Path, key: str) -> None:
    with path.open("ab") as marks:
        marks.write(f"{key}\n".encode())
        marks.flush()
        os.fsync(marks.fileno())
