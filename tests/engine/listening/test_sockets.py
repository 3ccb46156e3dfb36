"""The listening socket: which hosts it accepts, and what it says of the others."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_engine.listening.sockets import listen


def test_localhost_is_listened_to_in_ipv4() -> None:
    with listen(0, "localhost") as opened:
        assert opened.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("", "the host '' does not resolve"),
        ("a" * 70, "does not resolve"),
        ("192.0.2.1", "192.0.2.1 is no address of this machine"),
    ],
)
def test_a_host_that_is_not_this_machine_is_refused(host: str, message: str) -> None:
    """Names that are none are refused without a name server."""
    with pytest.raises(UsageError) as refused:
        listen(0, host)
    assert message in str(refused.value)


def test_a_taken_port_is_named() -> None:
    with listen(0) as first:
        port = first.getsockname()[1]
        with pytest.raises(UsageError) as refused:
            listen(port)
    assert str(refused.value).startswith(f"port {port} cannot be served: Address already in use")
