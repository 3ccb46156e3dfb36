"""Secrets from the system's keyring: a real one, none, one that hangs."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from testbed.keyrings import fill, leading_to
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.storage.store import Store
from uncaged_engine.settings.config import Config
from uncaged_engine.settings.loading import load
from uncaged_engine.settings.secrets import secret_value
from uncaged_engine.settings.system_keyring import read_secret

pytestmark = pytest.mark.slow  # each starts a Python or two

PLANTED = "sk-planted-in-the-keyring"
BACKEND = """
import time
from keyring.backend import KeyringBackend


class Mine(KeyringBackend):
    priority = 9

    def get_password(self, service, username):
        {}

    set_password = None
"""


def config(store: Store, where: str = "my service/https://example.org/me") -> Config:
    store.config_path.write_text(f"secrets: {{WORK: {{keyring: '{where}'}}}}\n", "utf-8")
    return load(store)


def lack(environment: dict[str, str], timeout_s: float = 30.0) -> str:
    with pytest.raises(EnvironmentLacks) as caught:
        read_secret("WORK", "service", "me", environment, timeout_s=timeout_s)
    assert str(caught.value).startswith("secret:WORK comes from the system keyring (service/me), ")
    assert str(caught.value).endswith(f"; {caught.value.remedy}, then resume")
    return str(caught.value)


def test_a_secret_comes_from_the_keyring_of_the_caller(store: Store, tmp_path: Path) -> None:
    """A service may have slashes in its name; what leads to the keyring is carried to the worker,
    and agents do not see it.
    """
    settings = config(store)
    fill(tmp_path, "my service/https://example.org", "me", PLANTED)
    carried = settings.carried(
        {**leading_to(tmp_path), "DBUS_SESSION_BUS_ADDRESS": "unix:path=/none"}
    )
    assert secret_value("WORK", settings, carried) == PLANTED
    assert {"PYTHON_KEYRING_BACKEND", "DBUS_SESSION_BUS_ADDRESS"} <= set(carried)
    assert not {"PYTHON_KEYRING_BACKEND", "DBUS_SESSION_BUS_ADDRESS"} & {
        *settings.for_agents(carried),
        *Config().carried(carried),
    }


def test_the_command_that_mends_an_empty_keyring_does(tmp_path: Path) -> None:
    """What the message says can be pasted into a shell as it is."""
    environment = leading_to(tmp_path)
    said = lack(environment)
    found = re.search("which holds nothing for that name; run `(.*)`, then resume", said)
    assert found is not None
    subprocess.run(
        shlex.split(found[1]),
        env=environment,
        input=f"{PLANTED}\n",
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert read_secret("WORK", "service", "me", environment) == PLANTED


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("keyring.backends.fail.Keyring", r"\(none is installed or running\)"),
        ("nobody.made.this", r"\(No module named 'nobody'\)"),
    ],
)
def test_no_keyring_at_all(tmp_path: Path, backend: str, words: str) -> None:
    """As on a server: the message names the ways out."""
    said = lack(leading_to(tmp_path, backend))
    assert re.search(
        f"but no keyring works here {words}; start one .* or take WORK out of config.yaml", said
    )
    assert "`uncaged-workflow keys set WORK`" in said


def test_the_library_is_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed, the line that installs it is in the message."""
    (tmp_path / "keyring.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'keyring'\")\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "-m pip install 'uncaged-workflow[keyring]'`, then resume" in lack(leading_to(tmp_path))


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("time.sleep(600)", "which does not answer; unlock it: it may wait for you"),
        (
            "raise OSError('the wallet is on fire')",
            r"which cannot be read \(OSError: the wallet is on fire\); unlock it, or try",
        ),
        (
            "raise __import__('keyring').errors.KeyringLocked('locked')",
            r"which cannot be read \(KeyringLocked: locked\)",
        ),
        ("return ''", "which holds nothing for that name"),
    ],
    ids=["hangs", "breaks", "locked", "empty"],
)
def test_a_keyring_that_does_not_give_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, words: str
) -> None:
    """None keeps a thread waiting for ever, and none brings the worker down."""
    (tmp_path / "backend_for_tests.py").write_text(BACKEND.format(does))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert re.search(
        words,
        lack(
            leading_to(tmp_path, "backend_for_tests.Mine"),
            timeout_s=1.0 if "sleep" in does else 30.0,
        ),
    )
