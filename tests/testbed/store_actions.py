"""Process that performs one action on a store and acknowledges it, as `python -m
testbed.store_actions STORE ACTION ARGUMENT…`.

A line ``done …`` on standard output is the acknowledgement, which no later fault may break.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Cut, Engine
from uncaged_engine.journal import archive
from uncaged_engine.threads.housekeeping import archive_threads, prune
from uncaged_engine.threads.transfer import import_thread
from uncaged_schedules.due import due


def add(engine: Engine, name: str, file: str) -> str:
    return engine.add(name, Path(file).read_bytes(), accept=lambda _widened: True).hash


def run(engine: Engine, name: str) -> str:
    return engine.run(name, prompt="go")


def answer(engine: Engine, thread: str, value: str) -> str:
    return engine.answer(thread, value)


def pause(engine: Engine, thread: str) -> str:
    return engine.pause(thread)


def fork(engine: Engine, thread: str, at: str) -> str:
    return engine.fork(thread, cut=Cut(at=int(at)))


def pack(engine: Engine, thread: str) -> str:
    return archive.compress(engine.store.locate_thread(thread)[2]).name


def archive_ended(engine: Engine) -> str:
    return str(len(archive_threads(engine, [], older_than_ms=0).threads))


def prune_ended(engine: Engine) -> str:
    return str(len(prune(engine, older_than_ms=0).threads))


def unpack(engine: Engine, thread: str) -> str:
    return archive.restore(engine.store.locate_thread(thread)[2]).name


def remove(engine: Engine, thread: str) -> str:
    return engine.remove_thread(thread)


def verify(engine: Engine, thread: str) -> str:
    return engine.verify(thread).message


def take_in(engine: Engine, file: str) -> str:
    return import_thread(engine, Path(file), now_ms=0)


def trial(engine: Engine, name: str) -> str:
    return engine.trial(engine.bundle(name)).ending


def fix(engine: Engine, thread: str) -> str:
    from uncaged_capture.fixing.start import start_fix

    place = {"directory": Path.cwd(), "environment": dict(os.environ)}
    return start_fix(engine, thread, agents={}, agent_settings={}, now_ms=0, **place).thread  # type: ignore[arg-type]


def start_due(engine: Engine) -> str:
    return " ".join(str(run.thread_id) for run in due(engine).started)


def notify_deaths(engine: Engine) -> str:
    return str(engine.notify_deaths())


ACTIONS = {
    "notify-deaths": notify_deaths,
    "due": start_due,
    "trial": trial,
    "fix": fix,
    "verify": verify,
    "import": take_in,
    "remove": remove,
    "pack": pack,
    "archive": archive_ended,
    "prune": prune_ended,
    "unpack": unpack,
    "add": add,
    "run": run,
    "answer": answer,
    "pause": pause,
    "fork": fork,
}


def main() -> None:
    root, action, *arguments = sys.argv[1:]
    engine = Engine(Store.open(Path(root)))
    told = ACTIONS[action](engine, *arguments)  # type: ignore[operator]  # each takes as many words as it is given
    os.write(1, f"done {told}\n".encode())


if __name__ == "__main__":
    main()
