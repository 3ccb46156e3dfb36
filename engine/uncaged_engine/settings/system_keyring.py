"""Reader of the system keyring, in a child process with a timeout and the environment of the
thread's caller.

`python -m uncaged_engine.settings.system_keyring SERVICE USER` prints ``{"value": …}``, or
``{"problem": word, "message": …}``.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import lru_cache

from uncaged_bundles.errors import EnvironmentLacks

from .variables import CARRIED, INTERPRETER, KEYRING, select

TIMEOUT_S = 30.0
KNOWN_FOR_S = 10
"""Time to live of a cached value: few processes for a flow with many requests, and a replaced value
is noticed soon.
"""
MAX_MESSAGE_CHARACTERS = 300


def read_secret(
    name: str,
    service: str,
    user: str,
    environment: Mapping[str, str],
    *,
    timeout_s: float = TIMEOUT_S,
) -> str:
    """Return the value of the secret *name*: the keyring's entry for *user* at *service*.

    Args:
        environment: the caller's variables, which lead to the caller's keyring.
    Raises:
        EnvironmentLacks: the library, a keyring, or the entry is missing; the message has the
            command that adds it.
    """
    variables = tuple(sorted(select(environment, (*CARRIED, *KEYRING)).items()))
    try:
        answer = _ask(service, user, variables, timeout_s, int(time.monotonic()) // KNOWN_FOR_S)
    except _Unanswered as exc:
        answer = {"problem": exc.problem, "message": str(exc)}
    if "value" in answer:
        return answer["value"]
    what, remedy = _explained(name, answer["problem"], answer["message"], service, user)
    raise EnvironmentLacks(
        f"secret:{name} comes from the system keyring ({service}/{user}), {what}", remedy=remedy
    )


def _explained(name: str, problem: str, message: str, service: str, user: str) -> tuple[str, str]:
    """Return the problem in words, and the next step."""
    command = (sys.executable, "-m", "keyring")
    match problem:
        case "library":
            return (
                "but the library for it is not installed",
                f"run `{sys.executable} -m pip install 'uncaged-workflow[keyring]'`",
            )
        case "none":
            return (
                "which holds nothing for that name",
                f"run `{shlex.join((*command, 'set', service, user))}`",
            )
        case "backend":
            other = f"or take {name} out of config.yaml and run `uncaged-workflow keys set {name}`"
            return (
                f"but no keyring works here ({message})",
                f"start one (GNOME Keyring, KWallet) or name one in PYTHON_KEYRING_BACKEND, {other}",
            )
        case "time":
            return "which does not answer", "unlock it: it may wait for you"
        case _:
            return (
                f"which cannot be read ({message})",
                f"unlock it, or try `{shlex.join((*command, 'get', service, user))}`",
            )


class _Unanswered(Exception):
    """Failure of one read; not cached, since the next read may succeed."""

    def __init__(self, problem: str, message: str) -> None:
        super().__init__(message)
        self.problem = problem


@lru_cache(maxsize=32)
def _ask(
    service: str,
    user: str,
    environment: tuple[tuple[str, str], ...],
    timeout_s: float,
    _period: int,
) -> dict[str, str]:
    command = [sys.executable, "-P", "-B", "-m", __name__, service, user]
    try:
        done = subprocess.run(
            command,
            env={**select(os.environ, INTERPRETER), **dict(environment)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            start_new_session=True,  # a backend that would ask on the terminal finds none
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _Unanswered("time", "no answer") from None  # its chain would hold what was printed
    try:
        answer = json.loads(done.stdout)
        value = answer.get("value")
    except (ValueError, AttributeError):
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise _Unanswered(
            "broken", (last or [f"exit code {done.returncode}"])[0][:MAX_MESSAGE_CHARACTERS]
        ) from None
    if isinstance(value, str) and value.strip():
        return {"value": value.strip()}
    raise _Unanswered(
        str(answer.get("problem", "none")), str(answer.get("message", ""))[:MAX_MESSAGE_CHARACTERS]
    )


def main(service: str, user: str) -> dict[str, str]:
    """Return the keyring's answer, as this process prints it."""
    try:
        import keyring
    except ModuleNotFoundError:
        return {"problem": "library", "message": ""}
    from keyring.errors import KeyringError, NoKeyringError

    try:
        value = keyring.get_password(service, user)
    except NoKeyringError:
        return {"problem": "backend", "message": "none is installed or running"}
    except (ImportError, RuntimeError) as exc:  # the backend that was chosen cannot be had
        return {"problem": "backend", "message": " ".join(str(exc).split())}
    except KeyringError as exc:
        return {"problem": "broken", "message": f"{type(exc).__name__}: {exc}"}
    return {"problem": "none", "message": ""} if value is None else {"value": value}


if __name__ == "__main__":
    json.dump(main(*sys.argv[1:3]), sys.stdout)
