"""A secret from the system's keyring is read in a process of its own: from the keyring of whoever started the thread, and in bounded time.

`python -m uncaged_engine.settings.system_keyring SERVICE USER` prints ``{"value": …}``, or ``{"problem": word, "message": …}``.
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
"""A flow that sends many requests does not start a process for each; a value that was replaced is noticed soon."""
MAX_MESSAGE_CHARACTERS = 300


def read_secret(name: str, service: str, user: str, environment: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> str:
    """Return what the keyring holds for *user* at *service*; it is the value of the secret *name*.

    Args:
        environment: the caller's variables, which lead to the caller's keyring.
    Raises:
        EnvironmentLacks: the library, a keyring, or the entry is not there; says which command mends it.
    """
    told = tuple(sorted(select(environment, (*CARRIED, *KEYRING)).items()))
    try:
        said = _ask(service, user, told, timeout_s, int(time.monotonic()) // KNOWN_FOR_S)
    except _Unanswered as exc:
        said = {"problem": exc.problem, "message": str(exc)}
    if "value" in said:
        return said["value"]
    what, remedy = _explained(name, said["problem"], said["message"], service, user)
    raise EnvironmentLacks(f"secret:{name} comes from the system keyring ({service}/{user}), {what}", remedy=remedy)


def _explained(name: str, problem: str, message: str, service: str, user: str) -> tuple[str, str]:
    """What is wrong, and the next step."""
    command = (sys.executable, "-m", "keyring")
    match problem:
        case "library":
            return "but the library for it is not installed", f"run `{sys.executable} -m pip install 'uncaged-workflow[keyring]'`"
        case "none":
            return "which holds nothing for that name", f"run `{shlex.join((*command, 'set', service, user))}`"
        case "backend":
            other = f"or take {name} out of config.yaml and run `uncaged-workflow keys set {name}`"
            return (
                f"but no keyring works here ({message})",
                f"start one (GNOME Keyring, KWallet) or name one in PYTHON_KEYRING_BACKEND, {other}",
            )
        case "time":
            return "which does not answer", "unlock it: it may wait for you"
        case _:
            return f"which cannot be read ({message})", f"unlock it, or try `{shlex.join((*command, 'get', service, user))}`"


class _Unanswered(Exception):
    """What is not remembered: the next time it may be better."""

    def __init__(self, problem: str, message: str) -> None:
        super().__init__(message)
        self.problem = problem


@lru_cache(maxsize=32)
def _ask(service: str, user: str, environment: tuple[tuple[str, str], ...], timeout_s: float, _period: int) -> dict[str, str]:
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
        said = json.loads(done.stdout)
        value = said.get("value")
    except (ValueError, AttributeError):
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise _Unanswered("broken", (last or [f"exit code {done.returncode}"])[0][:MAX_MESSAGE_CHARACTERS]) from None
    if isinstance(value, str) and value.strip():
        return {"value": value.strip()}
    raise _Unanswered(str(said.get("problem", "none")), str(said.get("message", ""))[:MAX_MESSAGE_CHARACTERS])


def main(service: str, user: str) -> dict[str, str]:
    """What this process, and it alone, finds in the keyring."""
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
