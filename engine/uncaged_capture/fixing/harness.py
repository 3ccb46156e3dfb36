"""Program that runs versions of a flow's Python script with the values of its examples, inside the
sandbox: a child for each run, requests on standard input, results on standard output as JSON.

It is read as text and imports the standard library alone.
"""

import io
import json
import os
import signal
import sys
from typing import Any

SECONDS = 2
MAX_BYTES = 100_000


def main() -> None:
    """Print for each version a list with a result, or null, for each run."""
    asked = json.load(sys.stdin)
    results = [[run_one(source, run) for run in asked["runs"]] for source in asked["sources"]]
    json.dump(results, sys.stdout)


def run_one(source: str, run: dict[str, Any]) -> object:
    """Run one version in a child process; return its result, None if it gives none."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(SECONDS)
        try:
            result = run_task(source, run) if run["task"] else run_script(source, run)
        except BaseException:
            result = None
        with os.fdopen(writer, "w") as file:
            file.write(json.dumps(result)[:MAX_BYTES])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    os.waitpid(child, 0)
    try:
        return json.loads(text)
    except ValueError:
        return None


def run_script(source: str, run: dict[str, Any]) -> object:
    """Run a script with its parameters in the environment."""
    os.environ.update(run["environment"])
    sys.argv = ["script.py", *run["arguments"]]
    code, kept = 0, io.StringIO()
    sys.stdout, sys.stderr = kept, io.StringIO()
    try:
        names = {"__name__": "__main__"}
        exec(compile(source, "script.py", "exec"), names)  # noqa: S102 - inside the sandbox
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else 0 if exc.code is None else 1
    except Exception:
        code = 1
    text = kept.getvalue()
    data: dict[str, object] = {"success": code == 0, "stdout": text, "exitCode": code}
    if run["json"]:
        data["output"] = json.loads(text)
    message = text.strip("\n") or "done; it printed nothing"
    return {"success": code == 0, "message": message, "data": data}


def run_task(source: str, run: dict[str, Any]) -> object:
    """Run a bundle; its effects get their recorded outcomes, another effect gives no result."""
    names: dict[str, Any] = {"EffectError": type("EffectError", (Exception,), {})}
    exec(compile(source, "bundle.py", "exec"), names)  # noqa: S102 - inside the sandbox
    options = {"threadId": "0" * 26, "startedAt": 0, "seed": 0}
    thread = names["run"]({"prompt": run["prompt"], "params": run["params"], "steps": []}, options)
    outcome = None
    while True:
        try:
            effect = thread.send(outcome)
        except StopIteration as stop:
            return stop.value
        outcome = run["known"][json.dumps(effect, sort_keys=True)]


if __name__ == "__main__":
    main()
