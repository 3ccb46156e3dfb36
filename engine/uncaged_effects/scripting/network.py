"""Network of a script: none, the hosts of its policy through a proxy, or the machine's own.

For hosts, the script has an empty network namespace. A small process enters it, opens a listening
socket, and passes it to the proxy outside: no code of the proxy runs inside, and there is no other
way out.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from uncaged_bundles.errors import SandboxUnavailable
from uncaged_engine.services.network import HostRules, WebProblem, read_patterns
from uncaged_engine.services.sandbox import Mechanism, Refused, find_interpreter

if TYPE_CHECKING:
    from uncaged_bundles.limits import ScriptLimits

PORT = 3128
PROXY = f"http://127.0.0.1:{PORT}"
VARIABLES = {
    name: PROXY
    for word in ("http_proxy", "https_proxy", "all_proxy")
    for name in (word, word.upper())
}
ENTER_TIMEOUT_S = 10.0

_ENTER = """
import ctypes, fcntl, os, socket, sys
NEW_USER, NEW_NET, GET_OWNER = 0x10000000, 0x40000000, 0xB701
library = ctypes.CDLL(None, use_errno=True)
network = os.open(f"/proc/{sys.argv[1]}/ns/net", os.O_RDONLY)
if os.geteuid() != 0 and library.setns(fcntl.ioctl(network, GET_OWNER), NEW_USER):
    sys.exit("user namespace: " + os.strerror(ctypes.get_errno()))
if library.setns(network, NEW_NET):
    sys.exit("network namespace: " + os.strerror(ctypes.get_errno()))
listening = socket.create_server(("", int(sys.argv[2])))
socket.send_fds(socket.socket(fileno=int(sys.argv[3])), [b"x"], [listening.fileno()])
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Network of one run. shared: the machine's own. variables: for the script's environment.
    enter: to be called with the pid of the sandbox's process 1.

    refused: denied addresses with a sentence about each; complete once the script has ended.
    """

    shared: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    enter: Callable[[int], None] | None = None
    refused: list[tuple[str, str]] = field(default_factory=list)


@contextmanager
def opened(limits: ScriptLimits, mechanism: Mechanism) -> Iterator[Network]:
    """Yield the network of one run.

    Raises:
        SandboxUnavailable: the mechanism cannot allow hosts alone. Refused: an entry of the policy
            is no host.
    """
    if limits.host_network or not limits.hosts:
        yield Network(shared=limits.host_network)
        return
    if mechanism.name != "bubblewrap":
        raise SandboxUnavailable(
            f"the {mechanism.name} sandbox cannot keep a script to the network of its policy ({', '.join(limits.hosts)}); install "
            f'bubblewrap, or let the script use the machine\'s own: "network": "host"'
        )
    try:
        rules = HostRules(kind="script", hosts=read_patterns(limits.hosts), private=limits.private)
    except WebProblem as exc:
        raise Refused(str(exc)) from exc
    # it loads h11, which scripts without a network never need: 10 ms
    from uncaged_engine.services.proxy import Proxy

    refused: list[tuple[str, str]] = []
    with Proxy(rules, refused) as proxy:
        yield Network(
            variables=VARIABLES,
            enter=lambda pid: proxy.serve(listen_inside(pid, PORT)),
            refused=refused,
        )


def listen_inside(pid: int, port: int) -> socket.socket:
    """Return a listening socket in the network namespace of a descendant process."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [
            str(find_interpreter().executable),
            "-I",
            "-S",
            "-c",
            _ENTER,
            str(pid),
            str(port),
            str(theirs.fileno()),
        ]
        done = subprocess.run(
            command,
            pass_fds=(theirs.fileno(),),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            cwd="/",
            timeout=ENTER_TIMEOUT_S,
            check=False,
        )
        theirs.close()
        _, fds, _, _ = socket.recv_fds(ours, 1, 1) if done.returncode == 0 else (b"", [], 0, None)
    if not fds:
        why = done.stderr.decode(errors="replace").strip()[-300:]
        raise SandboxUnavailable(f"a script cannot be given a network with named hosts here: {why}")
    os.set_inheritable(fds[0], False)
    return socket.socket(fileno=fds[0])
