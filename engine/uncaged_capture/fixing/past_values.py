"""Past threads with success as tests of a changed script: their values, tried again where the
failed thread's files are. A replay of a changed script ends at it, so it tells nothing about the
result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from uncaged_bundles.clean import shorten
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine
from uncaged_engine.services.trials import Decisions, TrialResult

from .failed import FailedThread, has_wrong_result, successes
from .trying import Trials, message_of
from .values import changed_values

__all__ = ["PastValues", "emptied", "try_past_values"]

MOST = 3
MOST_S = 60.0
"""No further trial is started after this time."""
SHOWN = 100
EMPTY = ("", "done; it printed nothing")
"""Messages of a script flow without a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastValues:
    """tried, same: distinct values, and how many gave the recorded result again. refuted: sentences
    on results that the present version still gives and the changed one does not. contradicted:
    sentences on other results, where the present version gives none by now.
    """

    tried: int = 0
    same: int = 0
    refuted: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    thread: ThreadId
    prompt: str
    params: Mapping[str, Any]
    message: str


def try_past_values(
    engine: Engine, failed: FailedThread, before: Trials, after: Trials
) -> PastValues:
    """Run the changed version with the values of past threads; without permission, or if the flow
    does more than run scripts that only read, nothing is run.

    Args:
        before, after: trials of the present and of the changed version.
    """
    tried, same = 0, 0
    refuted, contradicted = list[str](), list[str]()
    if not (after.may_run and after.repeats_scripts()):
        return PastValues()
    begin_s = time.monotonic()
    for past in _distinct(engine, failed):
        if tried == MOST or time.monotonic() - begin_s > MOST_S:
            break
        changed = changed_values(past.params, before.bundle, after.bundle, after.directory)
        now = _outcome(after, past, {**past.params, **changed})
        tried += 1
        if now == past.message:
            same += 1
            continue
        former = _outcome(before, past, past.params)
        if former == past.message:
            refuted.append(f"{_was(past)}, as the present version does; {_is(now)}")
        elif former is None and now is not None:
            contradicted.append(f"{_was(past)}; {_is(now)}")
    return PastValues(
        tried=tried, same=same, refuted=tuple(refuted), contradicted=tuple(contradicted)
    )


def emptied(engine: Engine, failed: FailedThread, message: str) -> str | None:
    """Return how a trial without a result differs from the past threads; None if they have none
    either.
    """
    if message not in EMPTY:
        return None
    results = [past.message for past in _distinct(engine, failed)]
    if len(results) < 2 or any(one in EMPTY for one in results):
        return None
    return f"the trial printed nothing; {len(results)} past threads had a result"


def _distinct(engine: Engine, failed: FailedThread) -> Iterator[_Past]:
    """Yield one past thread with success for each set of values, the newest first, without those
    whose result an example refutes.
    """
    seen = {json.dumps([failed.case.prompt, failed.case.params], sort_keys=True)}
    for one in successes(engine, failed.flow):
        if one.hash != failed.bundle.hash:
            continue
        view = engine.thread(one.thread_id)
        parameters = view.start.get("parameters", {})
        prompt, params = str(parameters.get("prompt", "")), parameters.get("params", {})
        mark = json.dumps([prompt, params], sort_keys=True)
        if mark in seen or view.end is None or has_wrong_result(engine, view):
            continue
        seen.add(mark)
        message = message_of(view.end.get("result"))
        yield _Past(thread=one.thread_id, prompt=prompt, params=params, message=message)


def _outcome(trials: Trials, past: _Past, params: Mapping[str, object]) -> str | None:
    """Return the message of a trial with success; None without."""
    done = trials.run(past.prompt, params, Decisions())
    return message_of(done.result) if isinstance(done, TrialResult) and done.success else None


def _was(past: _Past) -> str:
    return f"{past.thread} had success with {_quoted(past.message)}"


def _is(message: str | None) -> str:
    return f"with its values the result is {_quoted(message)} now" if message else "it fails now"


def _quoted(text: str) -> str:
    return json.dumps(shorten(text, SHOWN), ensure_ascii=False)
