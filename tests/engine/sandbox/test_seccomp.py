"""Filters are run here by a small interpreter of their own, so that both processors are tested on
one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pytest
from uncaged_bundles.errors import SandboxUnavailable
from uncaged_engine.sandbox.seccomp import (
    ABSENT,
    AF_INET,
    ALLOW,
    CELL,
    CELL_STARTING,
    KILL_PROCESS,
    REFUSE,
    SCRIPT,
    FilterRules,
    assemble,
    script_rules,
)
from uncaged_engine.sandbox.syscalls import X32_BIT, audit_arch, number_of

MACHINES = ("x86_64", "aarch64")


def decide(program: bytes, number: int, arguments: Sequence[int] = (), *, arch: int) -> int:
    """Return the kernel's decision: a classic BPF machine with the six instructions that a filter
    uses.
    """
    data = struct.pack("<iIQ6Q", number, arch, 0, *arguments, *(0,) * (6 - len(arguments)))
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, value = struct.unpack_from("<HBBI", program, 8 * at)
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


def decision(rules: FilterRules, name: str, *arguments: int, machine: str) -> int | None:
    number = number_of(name, machine)
    return (
        None
        if number is None
        else decide(assemble(rules, machine), number, arguments, arch=audit_arch(machine))
    )


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "call",
    [
        "read",
        "write",
        "mmap",
        "futex",
        "exit_group",
        "newfstatat",
        "getdents64",
        "close",
        "rt_sigreturn",
        "clock_gettime",
    ],
)
def test_a_bundle_may_compute_and_look(machine: str, call: str) -> None:
    """Calls that an interpreter needs pass, under both filters."""
    assert decision(CELL, call, machine=machine) == ALLOW
    assert decision(CELL_STARTING, call, machine=machine) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "call",
    [
        *(
            "socket",
            "socketpair",
            "clone",
            "clone3",
            "fork",
            "vfork",
            "execve",
            "prctl",
            "seccomp",
            "ptrace",
            "mount",
            "unshare",
        ),
        *(
            "chmod",
            "fchmodat",
            "mknodat",
            "creat",
            "openat2",
            "ioctl",
            "bpf",
            "io_uring_setup",
            "userfaultfd",
            "process_vm_readv",
        ),
        *(
            "memfd_secret",
            "personality",
            "keyctl",
            "landlock_create_ruleset",
            "setresuid",
            "capset",
        ),
    ],
)
def test_a_bundle_may_nothing_else(machine: str, call: str) -> None:
    """A call that is not on the list is refused."""
    assert decision(CELL, call, machine=machine) in (REFUSE, None)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        *(
            (0o2000000, ALLOW),
            (0o200000, ALLOW),
            (0o1, REFUSE),
            (0o2, REFUSE),
            (0o100, REFUSE),
            (0o1000, REFUSE),
            (0o2000, REFUSE),
        ),
        (0o20200002, REFUSE),  # O_TMPFILE | O_RDWR
    ],
)
def test_a_bundle_opens_for_reading_only(machine: str, flags: int, expected: int) -> None:
    """Any flag that could write or make a file is refused."""
    assert decision(CELL, "openat", 0, 0, flags, machine=machine) == expected
    assert decision(CELL, "open", 0, flags, machine=machine) in (expected, None)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_bundle_sets_no_limits(machine: str) -> None:
    """A bundle changes neither its own limits nor those of other processes."""
    assert decision(CELL, "prlimit64", 0, 7, 0x1000, 0, machine=machine) == REFUSE
    assert decision(CELL, "prlimit64", 1, 7, 0, 0x1000, machine=machine) == REFUSE


@pytest.mark.parametrize("machine", MACHINES)
def test_the_first_filter_lets_the_interpreter_start_and_no_more(machine: str) -> None:
    """Calls between bubblewrap and the process's own lock-down are exec, prctl, seccomp and the
    setting of its own limits.
    """
    allowed = [
        decision(CELL_STARTING, name, machine=machine) for name in ("execve", "prctl", "seccomp")
    ]
    assert allowed == [ALLOW] * 3
    assert decision(CELL_STARTING, "prlimit64", 0, 7, 0x1000, 0, machine=machine) == ALLOW
    assert decision(CELL_STARTING, "prlimit64", 4711, 7, 0x1000, 0, machine=machine) == REFUSE
    assert decision(CELL_STARTING, "socket", 1, machine=machine) == REFUSE


@pytest.mark.parametrize("rules", [CELL, CELL_STARTING, SCRIPT])
def test_another_architecture_is_killed(rules: FilterRules) -> None:
    """A call in the numbering of another architecture ends the process: its numbers mean other
    things.
    """
    assert decide(assemble(rules, "x86_64"), 0, arch=0x40000003) == KILL_PROCESS  # i386
    assert decide(assemble(rules, "aarch64"), 63, arch=audit_arch("x86_64")) == KILL_PROCESS
    assert decide(assemble(rules, "x86_64"), X32_BIT | 0, arch=audit_arch("x86_64")) == KILL_PROCESS


@pytest.mark.parametrize("machine", MACHINES)
def test_a_script_gets_no_new_namespaces(machine: str) -> None:
    """Threads and processes start as ever; namespaces do not, and the call that hides its flags is
    not there.
    """
    threads = 0x003D0F00
    assert decision(SCRIPT, "clone", threads, machine=machine) == ALLOW
    assert decision(SCRIPT, "clone", 17, machine=machine) == ALLOW
    for flag in (
        0x10000000,
        0x20000000,
        0x40000000,
        0x00020000,
        0x02000000,
        0x04000000,
        0x08000000,
    ):
        assert decision(SCRIPT, "clone", flag | 17, machine=machine) == REFUSE
    assert decision(SCRIPT, "clone3", machine=machine) == ABSENT
    assert decision(SCRIPT, "unshare", machine=machine) == REFUSE


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "place"),
    [("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("openat", 3), ("mknodat", 2), ("creat", 1)],
)
def test_a_script_makes_no_set_id_file(machine: str, call: str, place: int) -> None:
    """By whatever call a mode is given, the set-id bits are refused."""
    for mode, expected in ((0o755, ALLOW), (0o4755, REFUSE), (0o2755, REFUSE)):
        assert decision(SCRIPT, call, *(0,) * place, mode, machine=machine) in (expected, None)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_script_types_into_no_terminal(machine: str) -> None:
    """TIOCSTI and TIOCLINUX are refused; other controls pass."""
    assert [
        decision(SCRIPT, "ioctl", 0, request, machine=machine)
        for request in (0x5401, 0x5412, 0x541C)
    ] == [ALLOW, REFUSE, REFUSE]


@pytest.mark.parametrize("machine", MACHINES)
def test_where_nothing_hides_sockets_a_script_makes_none(machine: str) -> None:
    """Without bubblewrap local sockets are refused always, internet ones unless the network is
    allowed.
    """
    for network, internet in ((False, REFUSE), (True, ALLOW)):
        rules = script_rules(network=network, mounted=False)
        assert decision(rules, "socket", AF_INET, machine=machine) == internet
        assert decision(rules, "socket", 1, machine=machine) == REFUSE
        assert decision(rules, "socket", 16, machine=machine) == REFUSE
        assert decision(rules, "socketpair", 1, machine=machine) == ALLOW
    assert (
        decision(script_rules(network=False, mounted=True), "socket", 1, machine=machine) == ALLOW
    )


def test_an_unknown_processor_gets_no_filter() -> None:
    """Guessed numbers would let the wrong calls pass."""
    with pytest.raises(SandboxUnavailable, match="riscv64"):
        assemble(CELL, "riscv64")
