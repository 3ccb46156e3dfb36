"""Seccomp filters: lists of system calls, assembled to BPF without a library, for x86_64 and
aarch64.

A bundle's process gets an allow-list: the calls that the interpreter needs to compute, to import
from the standard library and to use two open pipes. Everything else fails with EPERM; another
architecture's calls kill the process.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import cache

from uncaged_bundles.records import dataclass, field, replace

from .syscalls import X32_BIT, audit_arch, number_of

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
REFUSE = 0x00050000 | 1  # EPERM
ABSENT = 0x00050000 | 38  # ENOSYS: the C library then takes the older call
NOTIFY = 0x7FC00000  # the call waits for the engine's decision

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16

# O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND; __O_TMPFILE comes only with one of the first two
WRITING_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000

COMPUTING = (
    *("read", "write", "pread64", "readv", "writev", "lseek", "close"),
    *("mmap", "munmap", "mprotect", "mremap", "madvise", "brk"),
    *(
        "rt_sigaction",
        "rt_sigprocmask",
        "rt_sigreturn",
        "rt_sigpending",
        "sigaltstack",
        "restart_syscall",
    ),
    *(
        "futex",
        "sched_yield",
        "sched_getaffinity",
        "membarrier",
        "set_tid_address",
        "set_robust_list",
        "rseq",
        "arch_prctl",
    ),
    *(
        "getpid",
        "getppid",
        "gettid",
        "getuid",
        "geteuid",
        "getgid",
        "getegid",
        "getcwd",
        "uname",
        "sysinfo",
    ),
    *("clock_gettime", "clock_getres", "gettimeofday", "time", "times", "getrusage", "getrlimit"),
    *("exit", "exit_group", "poll", "ppoll"),
)
LOOKING = (
    *("fstat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2"),
    *("readlink", "readlinkat", "getdents", "getdents64"),
)
STARTING = ("execve", "prctl", "seccomp")
"""Calls between bubblewrap's filter and the process's own, stricter one: bubblewrap execs the
interpreter under the first.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentCheck:
    """Condition on the low 32 bits of one argument; the checked arguments have no more.

    values: the argument is one of these. other_than: not one of these. none_of: none of these bits
    is set.
    """

    argument: int
    values: tuple[int, ...] = ()
    other_than: tuple[int, ...] = ()
    none_of: int = 0


READING_ONLY: Mapping[str, ArgumentCheck] = {
    "open": ArgumentCheck(argument=1, none_of=WRITING_FLAGS),
    "openat": ArgumentCheck(argument=2, none_of=WRITING_FLAGS),
    # F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
    "fcntl": ArgumentCheck(argument=1, values=(1, 2, 3, 1030)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterRules:
    """Rules of a filter: calls that pass, calls with conditions, and the result of all others.

    allowed: pass always. checked: pass if the condition holds, else EPERM. refused: always EPERM.
    absent: ENOSYS.
    watched: calls that are reported to the engine before they pass, where the condition holds.
    rest: the result of all others.
    """

    allowed: Sequence[str] = ()
    checked: Mapping[str, ArgumentCheck] = field(default_factory=dict)
    refused: Sequence[str] = ()
    absent: Sequence[str] = ()
    watched: Mapping[str, ArgumentCheck | None] = field(default_factory=dict)
    rest: int = REFUSE


CELL = FilterRules(allowed=(*COMPUTING, *LOOKING), checked=READING_ONLY)
CELL_STARTING = FilterRules(
    allowed=(*COMPUTING, *LOOKING, *STARTING),
    checked={**READING_ONLY, "prlimit64": ArgumentCheck(argument=0, values=(0,))},
)

NAMESPACE_FLAGS = 0x7E020000  # CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID, NET
SET_ID_BITS = 0o6000
TYPING_FOR_OTHERS = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
SCRIPT = FilterRules(
    refused=(
        *(
            "mount",
            "umount2",
            "pivot_root",
            "chroot",
            "move_mount",
            "fsopen",
            "fsconfig",
            "fsmount",
            "fspick",
            "open_tree",
            "mount_setattr",
        ),
        *(
            "unshare",
            "setns",
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "process_madvise",
            "pidfd_getfd",
            "kcmp",
        ),
        *(
            "bpf",
            "perf_event_open",
            "userfaultfd",
            "io_uring_setup",
            "io_uring_enter",
            "io_uring_register",
            "memfd_secret",
            "fanotify_init",
        ),
        *(
            "keyctl",
            "add_key",
            "request_key",
            "open_by_handle_at",
            "name_to_handle_at",
            "lookup_dcookie",
            "nfsservctl",
            "vmsplice",
        ),
        *(
            "kexec_load",
            "kexec_file_load",
            "init_module",
            "finit_module",
            "delete_module",
            "reboot",
            "swapon",
            "swapoff",
            "acct",
        ),
        *(
            "quotactl",
            "quotactl_fd",
            "settimeofday",
            "clock_settime",
            "clock_adjtime",
            "adjtimex",
            "sethostname",
            "setdomainname",
        ),
        *(
            "syslog",
            "iopl",
            "ioperm",
            "modify_ldt",
            "vhangup",
            "personality",
            "uselib",
            "ustat",
            "sysfs",
            "_sysctl",
        ),
    ),
    absent=("clone3", "openat2"),
    checked={
        "clone": ArgumentCheck(argument=0, none_of=NAMESPACE_FLAGS),
        "ioctl": ArgumentCheck(argument=1, other_than=TYPING_FOR_OTHERS),
        "chmod": ArgumentCheck(argument=1, none_of=SET_ID_BITS),
        "fchmod": ArgumentCheck(argument=1, none_of=SET_ID_BITS),
        "fchmodat": ArgumentCheck(argument=2, none_of=SET_ID_BITS),
        "fchmodat2": ArgumentCheck(argument=2, none_of=SET_ID_BITS),
        "mknod": ArgumentCheck(argument=1, none_of=SET_ID_BITS),
        "mknodat": ArgumentCheck(argument=2, none_of=SET_ID_BITS),
        "creat": ArgumentCheck(argument=1, none_of=SET_ID_BITS),
        "open": ArgumentCheck(argument=2, none_of=SET_ID_BITS),
        "openat": ArgumentCheck(argument=3, none_of=SET_ID_BITS),
    },
    rest=ALLOW,
)
"""A script may make the calls of ordinary programs, but none that affects things outside of its
sandbox, and no set-id file.
"""

AF_INET, AF_INET6 = 2, 10


_FROM_HERE = ArgumentCheck(argument=0, values=(0xFFFFFF9C,))
"""AT_FDCWD: paths relative to an open directory, as in a walk of a tree, are not reported."""
_OPENING = {
    "open": None,
    "openat": _FROM_HERE,
    "creat": None,
    "truncate": None,
    "mkdir": None,
    "mkdirat": _FROM_HERE,
}
_EXECUTING = {"execve": None, "execveat": None}
_LOOKING_AT = {
    **dict.fromkeys(("stat", "lstat", "access", "readlink", "chdir", "statfs")),
    **dict.fromkeys(("newfstatat", "statx", "faccessat", "faccessat2", "readlinkat"), _FROM_HERE),
}
_REACHING = {
    "connect": None,
    "sendto": ArgumentCheck(argument=4, other_than=(0,)),
    "socket": ArgumentCheck(argument=2, values=(4,)),
}
"""``socket``: for the kernel's own tables of sockets (NETLINK_SOCK_DIAG)."""


def script_rules(*, network: bool, mounted: bool, watch: bool = False) -> FilterRules:
    """Return the rules for a script.

    Args:
        network: internet sockets are allowed. mounted: the file system and the network of others
            are invisible, as with bubblewrap; named local sockets are allowed then. watch: calls
            that may be refused are reported to the engine.
    """
    watched: dict[str, ArgumentCheck | None] = {**_OPENING, **_EXECUTING} if watch else {}
    if mounted:  # without network its namespace has no peers
        more = {**_LOOKING_AT, **({} if network else _REACHING)} if watch else {}
        return replace(SCRIPT, watched={**watched, **more})
    if watch and not network:
        watched["socket"] = None  # the engine refuses it with EPERM
    families = (AF_INET, AF_INET6) if network or watch else ()
    return replace(
        SCRIPT,
        checked={**SCRIPT.checked, "socket": ArgumentCheck(argument=0, values=families)},
        watched=watched,
    )


@cache
def script_filter(*, network: bool, mounted: bool, watch: bool, machine: str) -> bytes:
    """Return the program for a script; see `script_rules` and `assemble`. Cached: eight on a
    machine, a millisecond each.
    """
    return assemble(script_rules(network=network, mounted=mounted, watch=watch), machine)


def assemble(rules: FilterRules, machine: str) -> bytes:
    """Return the BPF program, eight bytes an instruction.

    Args:
        machine: the value of ``os.uname().machine``.
    Raises:
        SandboxUnavailable: the machine's system calls are unknown.
    """
    program = [
        _load(_ARCH),
        _jump(_JUMP_EQUAL, audit_arch(machine), 1, 0),
        _return(KILL_PROCESS),
        _load(_NUMBER),
    ]
    if machine == "x86_64":
        program += [_jump(_JUMP_AT_LEAST, X32_BIT, 0, 1), _return(KILL_PROCESS)]
    for names, action in ((rules.allowed, ALLOW), (rules.refused, REFUSE), (rules.absent, ABSENT)):
        for name in names:
            number = number_of(name, machine)
            if number is not None:
                program += [_jump(_JUMP_EQUAL, number, 0, 1), _return(action)]
    for name in dict.fromkeys((*rules.checked, *rules.watched)):
        number = number_of(name, machine)
        if number is not None:
            passing = _watched(rules.watched[name]) if name in rules.watched else [_return(ALLOW)]
            body = _checked(rules.checked[name], passing) if name in rules.checked else passing
            program += [_jump(_JUMP_EQUAL, number, 0, len(body)), *body]
    program.append(_return(rules.rest))
    return b"".join(program)


def _watched(condition: ArgumentCheck | None) -> list[bytes]:
    """Return the instructions that report a call to the engine, or let it pass if the condition
    does not hold.
    """
    return (
        [_return(NOTIFY)]
        if condition is None
        else _decided(condition, [_return(NOTIFY)], [_return(ALLOW)])
    )


def _checked(check: ArgumentCheck, passing: list[bytes]) -> list[bytes]:
    """Return the instructions that refuse a call unless the condition holds."""
    return _decided(check, passing, [_return(REFUSE)])


def _decided(check: ArgumentCheck, passing: list[bytes], failing: list[bytes]) -> list[bytes]:
    """Return the instructions that decide one call; every path returns."""
    body = [_load(_ARGUMENTS + 8 * check.argument)]
    if check.none_of:
        return [*body, _jump(_JUMP_ANY_BIT, check.none_of, len(passing), 0), *passing, *failing]
    if check.other_than:
        for value in check.other_than:
            body += [_jump(_JUMP_EQUAL, value, 0, len(failing)), *failing]
        return [*body, *passing]
    for value in check.values:
        body += [_jump(_JUMP_EQUAL, value, 0, len(passing)), *passing]
    return [*body, *failing]


def _load(offset: int) -> bytes:
    return struct.pack("<HBBI", _LOAD, 0, 0, offset)


def _jump(test: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("<HBBI", test, if_true, if_false, value)


def _return(action: int) -> bytes:
    return struct.pack("<HBBI", _RETURN, 0, 0, action)
