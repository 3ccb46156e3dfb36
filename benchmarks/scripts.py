"""Cost of a script flow against the same sandbox for the bare script."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from uncaged_engine.sandbox import bubblewrap
from uncaged_engine.sandbox.bounds import ScriptBounds, view_of
from uncaged_engine.sandbox.interpreter import find_interpreter
from uncaged_engine.sandbox.mechanism import Mechanism, choose
from uncaged_tools.flows import call

from . import flows
from .bench import Bench, Figure
from .laboratory import Laboratory
from .table import Row, ratios

RUNS = 10
"""Of each kind in a round, taking turns."""
SHELL, PROGRAM = Path("/bin/bash"), Path("/bin/true")

FLOW = """\
    if input["prompt"] == "stay":
        yield {"null": {"sleep_s": 86400}}
    if input["prompt"] == "nothing":
        yield {"null": {}}
    else:
        yield {"script": {"body": "true"}}
    return {"success": True, "message": "done"}
"""

Way = Callable[[], float]
"""Does it once and tells the seconds."""


def script(bench: Bench) -> Sequence[Row]:
    """A script flow of one `true` in a live worker, against bubblewrap making the same sandbox for
    `true` alone.
    """
    title = "script flow of one `true`, start to finish"
    mechanism = choose()
    if mechanism.program is None:
        return (
            Row(
                figure="script",
                title=title,
                unit="",
                baseline="",
                remark="bubblewrap is not installed",
            ),
        )
    with bench.laboratory() as laboratory:
        laboratory.add(
            "script",
            flows.source("script", FLOW).replace(b'{"null": {}}', b'{"null": {}, "script": {}}', 1),
        )
        laboratory.engine.run("script", prompt="stay")  # keeps the worker alive
        ways = _ways(laboratory, mechanism)
        rounds = [_round(ways, bench.scaled(RUNS)) for _ in bench.rounds(7)]
    ms = {name: median(one[name] for one in rounds) * 1000 for name in ways}
    return (
        Row(
            figure="script",
            title=title,
            values=ratios((one["ours"], one["walls"]) for one in rounds),
            unit="×",
            baseline=f"{ms['walls']:.1f} ms bubblewrap with the same mounts and namespaces for `true` alone",
            reach=4.0,
            missed="the last walls are raised from inside by an interpreter, which has to start there",
            remark=(
                f"{ms['ours']:.1f} ms, of which {ms['nothing']:.1f} are a flow whose one step does nothing, "
                f"{ms['stage'] - ms['walls']:.1f} the interpreter that raises the last walls; "
                f"the least that bubblewrap takes for any sandbox is {ms['least']:.1f} ms"
            ),
        ),
    )


def _ways(laboratory: Laboratory, mechanism: Mechanism) -> Mapping[str, Way]:
    stage = [
        str(find_interpreter().executable),
        *bubblewrap.PYTHON_FLAGS,
        "-c",
        "import posix; posix._exit(0)",
    ]
    least = [str(mechanism.program), "--ro-bind", "/", "/", "--unshare-all", str(PROGRAM)]
    return {
        "ours": lambda: _flow_s(laboratory, "go"),
        "nothing": lambda: _flow_s(laboratory, "nothing"),
        "walls": lambda: _walls_s(mechanism, [str(PROGRAM)]),
        "stage": lambda: _walls_s(mechanism, stage),
        "least": lambda: _command_s(least),
    }


def _round(ways: Mapping[str, Way], count: int) -> dict[str, float]:
    """Return the median seconds of each variant over alternating runs."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(count):
        for name, way in ways.items():
            times[name].append(way())
    return {name: median(seconds) for name, seconds in times.items()}


def _flow_s(laboratory: Laboratory, prompt: str) -> float:
    begin = time.perf_counter()
    called = call(laboratory.engine, "script", {"prompt": prompt})
    if not called.success:
        raise ValueError(f"the flow did not succeed: {called.message}")
    return time.perf_counter() - begin


def _walls_s(mechanism: Mechanism, arguments: Sequence[str]) -> float:
    """Return the seconds of bubblewrap with *arguments*, as for a script whose policy permits
    nothing.
    """
    accounts, nowhere = os.memfd_create("passwd"), os.open(os.devnull, os.O_WRONLY)
    try:
        view = view_of(ScriptBounds(executables=(SHELL, PROGRAM)), SHELL)
        command = bubblewrap.script_command(
            Path(str(mechanism.program)),
            view,
            disable_userns=mechanism.disable_userns,
            network=False,
            root=os.geteuid() == 0,
            temporary_bytes=ScriptBounds().scratch_bytes,
            accounts_fd=accounts,
            info_fd=nowhere,
            places=bubblewrap.places_of(view, find_interpreter()),
            arguments=arguments,
        )
        return _command_s(command, (accounts, nowhere))
    finally:
        os.close(accounts)
        os.close(nowhere)


def _command_s(command: Sequence[str], pass_fds: Sequence[int] = ()) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env={}, pass_fds=pass_fds)
    return time.perf_counter() - begin


FIGURES = (Figure(name="script", measure=script),)
