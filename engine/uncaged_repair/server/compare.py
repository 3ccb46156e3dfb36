"""Comparison of edits by replaying the tests' calls: each call, unchanged and with perturbed
arguments, runs under each edit in a fork of the test's own process.

Rule 1: nothing that a replayed call does reaches the test: it runs in a fork, within limits on
processor time and memory, and is killed with it.
Rule 2: a call is reported with the outcomes of all edits, or not at all.
Rule 3: an input whose outcome differs between two runs of the same edit is left out.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import io
import json
import os
import random
import resource
import select
import signal
import sys
import time
from pathlib import Path
from types import CodeType, CoroutineType, FunctionType
from typing import TYPE_CHECKING

from .describe import describe
from .forks import limit_cpu
from .perturb import is_plain, plain_copy, variants_of
from .record import CallRecorder, RecordedCall
from .wire import Message

if TYPE_CHECKING:
    from typing import Any

    from .outcome import Supervisor
    from .patch import LiveFunctions
    from .perturb import Variant

    Plan = list[tuple[FunctionType, CodeType]]
    Outcome = list[Any]

MAX_CALLS = 30
CALLS_PER_TEST = 5
OTHERS = 4
MAX_FORKS = 5
"""Forks for one call under one edit. Another is needed after each input that ends its process."""
INPUT_CPU_S = 0.25
SILENCE_S = 10.0
MAX_SILENCES = 3
SHOWN = 90
MAX_STEPS = 200
UNENDING = ("timeout", "silent")


class CallComparison:
    """Comparison of edits in the process of a test. The first edit is the one under which the tests
    run.

    Messages: {"compared": function, "inputs": [[arguments, outcomes]]}; the outcomes are those of
    each edit and then of the original: [digest, text, normal, direct] or null. direct: the called
    function itself is edited; else an outcome like the original's shows nothing.
    """

    def __init__(self, functions: LiveFunctions, command: Message, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        wanted = command["compare"]
        self._cpu_s = wanted["cpu_s"]
        root = Path(command["root"])
        self._plans: list[Plan | None] = []
        for path, data in wanted["edits"]:
            verdict, plan = functions.plan(path, (root / path).read_bytes(), base64.b64decode(data))
            codes = [(function, code) for function, code in plan if isinstance(code, CodeType)]
            whole = verdict == "patched" and plan and len(codes) == len(plan)
            self._plans.append(codes if whole else None)
        self._plans.append([])  # the original
        self._originals = {
            id(function): (function, function.__code__)
            for plan in self._plans
            for function, _ in plan or ()
        }
        self._seen: set[str] = set()
        self._others: dict[tuple[CodeType, str], list[Any]] = {}
        self._calls = self._in_test = self._silences = 0

    def run(self, items: Any, names: list[str]) -> None:
        """Run the tests *names* under the first edit and compare the calls."""
        first = self._plans[0]
        if first is None:
            return
        _swap(first)
        codes = {function.__code__: function for function, _ in self._originals.values()}
        recorder = CallRecorder(codes, self._receive)
        for name in names:
            self._in_test = 0
            if name in items.names and self._may_go_on():
                recorder.start()
                for _ in items.run([name], self._supervisor, False):
                    recorder.stop()

    def _may_go_on(self) -> bool:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (
            self._calls < MAX_CALLS
            and self._silences < MAX_SILENCES
            and used.ru_utime + used.ru_stime < self._cpu_s
        )

    def _receive(self, call: RecordedCall) -> bool:
        key = f"{call.code.co_name}:{call.code.co_firstlineno} {describe(call.arguments)}"
        if key in self._seen:
            return True
        self._seen.add(key)
        call.function = self._function(call)
        if call.function is not None:
            self._compare(call, call.function)
            self._calls += 1
            self._in_test += 1
        return self._in_test < CALLS_PER_TEST and self._may_go_on()

    def _function(self, call: RecordedCall) -> FunctionType | None:
        """Return the function object that is called, of those that share its code."""
        for function, _ in self._originals.values():
            cells = dict(zip(call.code.co_freevars, function.__closure__ or ()))  # noqa: B905 - Python 3.8
            if function.__code__ is call.code and all(
                cells[name].cell_contents is value for name, value in call.cells.items()
            ):
                return function
        return None

    def _compare(self, call: RecordedCall, function: FunctionType) -> None:
        variants = self._variants(call, function)
        rows: list[list[Outcome | None]] = []
        skip: set[int] = set()
        for plan in [*self._plans, self._plans[0]]:
            if not self._may_go_on():
                return  # rule 2
            row: list[Outcome | None] = [None] * len(variants)
            if plan is not None:
                self._replay(call, plan, variants, row, skip)
            if not rows:
                # an endless loop would cost the limit for each edit
                skip = {
                    index
                    for index, outcome in enumerate(row)
                    if outcome is None or outcome[0] in UNENDING
                }
            rows.append(row)
        *rows, again = rows
        inputs = [
            [_shown(call, variant), [row[index] for row in rows]]
            for index, variant in enumerate(variants)
            if index not in skip and again[index] == rows[0][index]  # rule 3
        ]
        self._supervisor.emit(
            {
                "compared": getattr(function, "__qualname__", call.code.co_name),
                "inputs": inputs,
                "limit_s": SILENCE_S * len(rows) * MAX_FORKS,
            }
        )

    def _variants(self, call: RecordedCall, function: FunctionType) -> list[Variant]:
        defaults = function.__defaults__ or ()
        named = dict(zip(reversed(call.positional), reversed(defaults)))  # noqa: B905 - of unequal length
        named.update(function.__kwdefaults__ or {})
        optional = frozenset(name for name, value in named.items() if value is None)
        others = {name: self._others.get((call.code, name), []) for name in call.arguments}
        variants = variants_of(call.arguments, optional, others)
        for name, value in call.arguments.items():
            known = self._others.setdefault((call.code, name), [])
            if is_plain(value) and len(known) < OTHERS:
                known.append(plain_copy(value))
        return variants

    def _replay(
        self,
        call: RecordedCall,
        plan: Plan,
        variants: list[Variant],
        row: list[Outcome | None],
        skip: set[int],
    ) -> None:
        """Fill *row* with the outcomes of one edit."""
        waiting = [index for index in range(len(variants)) if index not in skip]
        for _ in range(MAX_FORKS):
            if not waiting:
                return
            lines, ending = self._fork(call, plan, [(i, variants[i]) for i in waiting])
            for index, outcome in lines:
                if index in waiting:
                    row[index] = outcome
                    waiting.remove(index)
            if ending and waiting:
                row[waiting.pop(0)] = [ending, ending, False, True]

    def _fork(
        self,
        call: RecordedCall,
        plan: Plan,
        variants: list[tuple[int, Variant]],
    ) -> tuple[list[tuple[int, Outcome]], str]:
        """Return the outcomes that a fork sent, and how it ended before the last: "timeout",
        "died", "silent", or "" for on purpose.
        """
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                sys.settrace(None)
                os.close(reading)
                for restored, code in self._originals.values():
                    restored.__code__ = code
                _swap(plan)
                _answer(call, plan, variants, writing)
            finally:
                os._exit(0)
        os.close(writing)
        data, silent = _read_all(reading)
        if silent:
            self._silences += 1
            os.kill(pid, signal.SIGKILL)
        os.close(reading)
        _, status = os.waitpid(pid, 0)
        lines = [json.loads(line) for line in data.split(b"\n")[:-1]]
        ended = bool(lines) and lines[-1] == "end"
        found = [(line[0], line[1]) for line in lines if isinstance(line, list)]
        slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGXCPU)
        ending = "" if ended else "silent" if silent else "timeout" if slow else "died"
        return found, ending


def _swap(plan: Plan) -> None:
    for function, code in plan:
        function.__code__ = code


def _answer(
    call: RecordedCall,
    plan: Plan,
    variants: list[tuple[int, Variant]],
    writing: int,
) -> None:
    """Run the inputs one after another, in the fork. Arguments that cannot be copied serve one
    input only.
    """
    for index, variant in variants:
        limit_cpu(INPUT_CPU_S)
        try:
            arguments = copy.deepcopy(call.arguments)
            copied = True
        except BaseException:  # the repository's own class may raise anything
            arguments, copied = dict(call.arguments), False
        outcome = _outcome(call, plan, arguments, variant)
        os.write(writing, json.dumps([index, outcome]).encode() + b"\n")
        if not copied:
            break
    os.write(writing, b'"end"\n')


def _outcome(
    call: RecordedCall,
    plan: Plan,
    arguments: dict[str, Any],
    variant: Variant,
) -> Outcome:
    """Run one input: result or exception, changed arguments and output."""
    random.seed(0)
    output = sys.stdout = io.StringIO()
    normal = False
    try:
        variant.apply(arguments)
        result = call.run(arguments)
        if isinstance(result, CoroutineType):
            result = _driven(result)
        text = shown = describe(result, consume=True)
        normal = True
    except BaseException as exc:  # the outcome of the call
        text = f"raises {type(exc).__name__}"
        shown = f"{text}: {_message(exc)}"
    after = "".join(describe(value) for value in arguments.values())
    whole = "\0".join((text, after, output.getvalue()[:100_000]))
    digest = hashlib.blake2b(whole.encode("utf-8", "replace"), digest_size=8).hexdigest()
    direct = any(call.function is changed for changed, _ in plan)
    return [digest, shown[:SHOWN], normal, direct]


def _driven(coroutine: Any) -> Any:
    """Run a coroutine that never waits, and return its result; else a text."""
    for _ in range(MAX_STEPS):
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
    return "waits"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # the repository's own __str__
        return ""


def _shown(call: RecordedCall, variant: Variant) -> str:
    arguments = {**call.arguments, **variant.values}
    changed = [
        f"{name}.{attribute}={describe(value)}" for name, attribute, value in variant.attributes
    ]
    texts = [f"{name}={describe(value)[:SHOWN]}" for name, value in arguments.items()]
    return ", ".join([*texts, *changed])[: 2 * SHOWN]


def _read_all(reading: int) -> tuple[bytes, bool]:
    """Read to the end; return the data, and whether the other side fell silent."""
    data = b""
    until = time.monotonic() + SILENCE_S
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, until - time.monotonic()))
        if not ready:
            return data, True
        chunk = os.read(reading, 1 << 16)
        if not chunk:
            return data, False
        data += chunk
