"""Time from the shell to the first step of a sentence, against `run` of the same flow."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from statistics import median

from uncaged_bundles.ids import ThreadId

from .bench import Bench, Figure
from .laboratory import POLL_S, Laboratory, timeline
from .sentences import source
from .starting import command
from .table import Row, ratios

BODY = b'    yield {"null": {"value": 1}}\n'


def doing(bench: Bench) -> Sequence[Row]:
    """Take turns between `do` with a sentence that a pattern reads and `run`, each on a new
    worker.
    """
    pairs = []
    with bench.laboratory() as laboratory:
        environment = {
            name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
        }
        environment["UNCAGED_WORKFLOW_HOME"] = str(laboratory.engine.store.root)
        text = source("greet", ["say good morning to $(x)"]).replace(
            b'\n    return {"success"', b"\n" + BODY + b'    return {"success"'
        )
        bundle = laboratory.add("greet", text.replace(b"'policy': {}", b"'policy': {'null': {}}"))
        sentence = ["do", "say good morning to the cat"]
        plain = ["run", "greet", "--param", "x=the cat"]
        for number in range(len(bench.rounds(25)) + 1):
            spent = []
            for words in (sentence, plain):
                spent.append(_first_step_s(laboratory, words, environment))
                laboratory.end_worker(bundle)
                while laboratory.worker_pid(bundle) is not None:
                    time.sleep(POLL_S)
            # the first round fills the store, the index and the bytecode cache
            if number:
                pairs.append((spent[0], spent[1]))
    return (
        Row(
            figure="doing",
            title="`do` of a grammar hit, shell to first step, against `run`",
            values=ratios(pairs),
            unit="×",
            baseline=f"{median(bare for _, bare in pairs) * 1000:.0f} ms `run` of the same flow",
            reach=1.15,
            missed="the dispatcher is imported while the worker starts",
        ),
    )


def _first_step_s(
    laboratory: Laboratory, words: Sequence[str], environment: Mapping[str, str]
) -> float:
    """Return the seconds from the start of a command to its thread's first step."""
    known = {thread for _, thread, _ in laboratory.engine.store.find_threads()}
    begin = time.time()
    subprocess.run(
        [*command(), *words],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        cwd=laboratory.directory,
    )
    new = [thread for _, thread, _ in laboratory.engine.store.find_threads() if thread not in known]
    return timeline(laboratory.wait(ThreadId(new[0]))).finished_ms[0] / 1000 - begin


FIGURES = (Figure(name="doing", measure=doing),)
