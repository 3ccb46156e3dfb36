"""The choice of the sandbox: by trying, and closed where nothing holds. Broken machines are real
processes with less than usual.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from testbed.cells import LANDLOCK_VERSIONS, MECHANISMS, mechanism_for, unchecked, version_of
from uncaged_bundles.errors import SandboxUnavailable, UsageError
from uncaged_engine.cells.cell import Cell
from uncaged_engine.sandbox import mechanism
from uncaged_engine.sandbox.mechanism import SCRIPT_ABI, Mechanism, choose, landlock_abi, settle
from uncaged_engine.sandbox.script import ScriptBounds, start_script

BARE = """
import os, sys
from uncaged_bundles.errors import SandboxUnavailable
from uncaged_engine.sandbox import lockdown, seccomp
from uncaged_engine.sandbox.payload import call_numbers
machine = os.uname().machine
numbers = call_numbers(machine)
rules = seccomp.FilterRules(refused=sys.argv[2].split(","), rest=seccomp.ALLOW,
                      checked={"clone": seccomp.ArgumentCheck(argument=0, none_of=seccomp.NAMESPACE_FLAGS)})
lockdown.syscall(numbers["prctl"], lockdown.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
lockdown.install_filter(numbers["prctl"], seccomp.assemble(rules, machine))
from uncaged_engine.sandbox.mechanism import choose
try:
    print(choose(sys.argv[1]).name)
except SandboxUnavailable as error:
    print(error)
"""


def choice_on_a_machine_without(calls: str, prefer: str) -> str:
    """Return the mechanism that is chosen in a process without namespaces and these calls."""
    done = subprocess.run(
        [sys.executable, "-c", BARE, prefer, calls], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize("name", MECHANISMS)
def test_each_can_be_preferred(name: str) -> None:
    """A preference selects between the two real ones."""
    assert choose(name).name == name


@pytest.mark.needs("bubblewrap")
def test_bubblewrap_comes_first() -> None:
    """Where both work, bubblewrap is used."""
    assert choose().name == "bubblewrap"


def test_an_early_trial_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice during the trial waits for it and starts no other."""
    begun, go_on = threading.Event(), threading.Event()
    tried: list[str] = []

    def slow(*_: object) -> mechanism.Unusable:
        tried.append(threading.current_thread().name)
        begun.set()
        assert go_on.wait(30)
        return mechanism.Unusable(reason="not here", remedy="")

    monkeypatch.setattr(mechanism, "try_bubblewrap", slow)
    mechanism._choose.cache_clear()
    try:
        mechanism.try_early()
        assert begun.wait(30)
        threading.Timer(0.05, go_on.set).start()
        assert choose().name == "landlock"
    finally:
        mechanism._choose.cache_clear()
    assert tried == ["sandbox trial"]


@pytest.mark.parametrize("word", ["none", "off", "", "Landlock"])
def test_nothing_else_can_be_preferred(word: str) -> None:
    """No word switches the sandbox off."""
    with pytest.raises(UsageError, match="bubblewrap"):
        choose(word)


@pytest.mark.slow
def test_without_namespaces_landlock_is_used() -> None:
    """A container that forbids namespaces still has a sandbox."""
    assert choice_on_a_machine_without("unshare", "auto") == "landlock"


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
def test_without_both_nothing_is_used() -> None:
    """Closed, with every reason and with what to do about the bubblewrap that is there."""
    said = choice_on_a_machine_without("unshare,landlock_create_ruleset", "auto")
    assert "bubblewrap: " in said
    assert "Landlock: the kernel offers version 0" in said
    assert "Next step: let /usr/bin/bwrap make user namespaces" in said


@pytest.mark.slow
@pytest.mark.needs("bubblewrap")
def test_a_preference_is_not_replaced_by_the_other() -> None:
    """A preference for bubblewrap gives bubblewrap or an error."""
    assert "makes no sandbox here" in choice_on_a_machine_without("unshare", "bubblewrap")


@pytest.mark.needs("landlock")
def test_this_kernel_offers_landlock() -> None:
    """The probe asks the kernel."""
    assert landlock_abi(os.uname().machine) >= SCRIPT_ABI


@pytest.mark.parametrize("version", range(8))
def test_an_older_kernel_holds_bundles_and_refuses_scripts(version: int) -> None:
    """Landlock 1 is enough for bundles, scripts need 6; the refusal names the version, and what to
    install.
    """
    offered = Mechanism(name="landlock", machine="x86_64", landlock_abi=version)
    for scripts, least in ((False, 1), (True, 6)):
        if version >= least:
            assert settle(None, offered, scripts=scripts) is offered
            continue
        with pytest.raises(
            SandboxUnavailable, match=f"the kernel offers version {version}, {least} is needed"
        ) as refused:
            settle(None, offered, scripts=scripts)
        assert "install bubblewrap" in refused.value.remedy


@pytest.mark.parametrize("name", LANDLOCK_VERSIONS[: SCRIPT_ABI - 1])
def test_a_script_is_not_started_under_an_older_landlock(name: str, tmp_path: Path) -> None:
    """The start itself refuses, whatever chose the mechanism."""
    with pytest.raises(
        SandboxUnavailable, match=f"Landlock {version_of(name)} does not hold scripts"
    ):
        start_script(
            ["true"],
            ScriptBounds(timeout_s=5.0),
            mechanism=mechanism_for(name),
            cwd=tmp_path,
            environment={},
        )


def test_a_sandbox_with_an_open_door_is_not_used(tmp_path: Path) -> None:
    """The process tries its own walls before it reads the bundle: a bubblewrap that wraps nothing
    is found out.
    """
    fake = tmp_path / "bwrap"
    fake.write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec env PYTHONHASHSEED=0 "$@"\n'
    )
    fake.chmod(0o755)
    broken = Mechanism(name="bubblewrap", machine=os.uname().machine, program=fake)
    with pytest.raises(SandboxUnavailable, match="read /etc/passwd"):
        Cell.start(unchecked("def run(input, options):\n    yield {}\n"), broken)


def test_a_sandbox_that_does_not_start_says_why(tmp_path: Path) -> None:
    """The standard error of the sandbox's program is in the error's message."""
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho bwrap: no luck today >&2\nexit 1\n")
    fake.chmod(0o755)
    broken = Mechanism(name="bubblewrap", machine=os.uname().machine, program=fake)
    with pytest.raises(SandboxUnavailable, match="no luck today"):
        Cell.start(unchecked("def run(input, options):\n    yield {}\n"), broken)


def test_a_program_that_is_gone_says_so(tmp_path: Path) -> None:
    """Uninstalled between choice and start."""
    gone = Mechanism(name="bubblewrap", machine=os.uname().machine, program=tmp_path / "bwrap")
    with pytest.raises(SandboxUnavailable, match="cannot be started"):
        Cell.start(unchecked("def run(input, options):\n    yield {}\n"), gone)


def test_an_untrusted_bundle_without_a_mechanism_does_not_run() -> None:
    """Only trusted bundles may go without."""
    with pytest.raises(SandboxUnavailable, match="not trusted"):
        Cell.start(unchecked("def run(input, options):\n    yield {}\n"), None)
