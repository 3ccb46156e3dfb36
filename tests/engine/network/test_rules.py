"""Meaning of a policy's hosts, and conditions for an address that is not public."""

from __future__ import annotations

import ipaddress

import pytest
from uncaged_engine.network.problems import WebProblem
from uncaged_engine.network.rules import HostRules
from uncaged_engine.network.target import read_target


def allows(hosts: list[str], url: str) -> bool:
    try:
        HostRules.of("http", {"hosts": hosts, "private": True}).check(read_target(url))
    except WebProblem as exc:
        assert exc.kind == "policy"
        return False
    return True


@pytest.mark.parametrize(
    ("entry", "inside", "outside"),
    [
        (
            "example.com",
            ["https://example.com/", "http://example.com", "https://EXAMPLE.com./"],
            [
                "https://a.example.com/",
                "https://example.com:8443/",
                "http://example.com:443/",
                "https://example.com.evil.org/",
            ],
        ),
        (
            "*.example.com",
            ["https://a.example.com/", "http://b.a.example.com/"],
            [
                "https://example.com/",
                "https://aexample.com/",
                "https://evil-example.com/",
                "https://a.example.com:81/",
            ],
        ),
        (
            "example.com:8443",
            ["https://example.com:8443/", "http://example.com:8443/"],
            ["https://example.com/"],
        ),
        (
            "example.com:*",
            ["https://example.com/", "http://example.com:81/"],
            ["https://b.example.com:81/"],
        ),
        ("*.example.com:81", ["http://a.example.com:81/"], ["http://a.example.com/"]),
        ("*", ["https://example.com/", "http://a.b.org:81/", "http://127.0.0.1:9/"], []),
        (
            "BÜCHER.example",
            ["https://xn--bcher-kva.example/", "https://bücher.example/"],
            ["https://bucher.example/"],
        ),
        ("127.0.0.1:81", ["http://127.0.0.1:81/"], ["http://127.0.0.1/", "http://localhost:81/"]),
        ("[::1]:81", ["http://[::1]:81/", "http://[0:0:0:0:0:0:0:1]:81/"], ["http://[::1]/"]),
        ("::1", ["http://[::1]/"], ["http://[::1]:81/"]),
    ],
)
def test_an_entry_means_exactly_what_it_says(
    entry: str, inside: list[str], outside: list[str]
) -> None:
    """Whole labels, and without a port only the scheme's own."""
    assert [url for url in inside if not allows([entry], url)] == []
    assert [url for url in outside if allows([entry], url)] == []


def test_no_hosts_and_an_empty_list_are_different_things() -> None:
    """Without the key any host may be asked, as the sentence says that a person agreed to; an empty
    list names none.
    """
    HostRules.of("http", {}).check(read_target("https://example.com:8443/"))
    assert not allows([], "https://example.com/")


def test_a_refusal_says_what_to_add() -> None:
    """The very entry, port and all."""
    with pytest.raises(WebProblem, match=r'add "127\.0\.0\.1:8123" to "fetch": \{"hosts"'):
        HostRules.of("fetch", {"hosts": ["127.0.0.1"]}).check(
            read_target("http://127.0.0.1:8123/x")
        )


@pytest.mark.parametrize(
    "entry",
    [
        "https://example.com",
        "example.com/x",
        "a b",
        "",
        "*.",
        "*.127.0.0.1",
        "a:0",
        "a:x",
        "a:99999",
        "*.*.org",
        "0x7f.1",
    ],
)
def test_an_entry_that_is_no_host_is_told(entry: str) -> None:
    """A misspelt entry is refused: it never allows more than was written."""
    with pytest.raises(WebProblem, match=r"in the policy: .* is no host") as caught:
        HostRules.of("http", {"hosts": [entry]})
    assert caught.value.kind == "policy"


@pytest.mark.parametrize(
    ("policy", "address", "words"),
    [
        ({}, "93.184.216.34", None),
        ({}, "127.0.0.1", '"http": {"private": true}'),
        ({"hosts": ["h.example"]}, "10.1.2.3", '"http": {"private": true}'),
        ({"private": True}, "10.1.2.3", None),
        ({"private": True}, "169.254.169.254", 'name "169.254.169.254" itself under hosts'),
        ({"private": True, "hosts": ["*"]}, "169.254.169.254", 'name "169.254.169.254" itself'),
        ({"private": True, "hosts": ["h.example", "169.254.169.254"]}, "169.254.169.254", None),
        ({"hosts": ["169.254.169.254"]}, "169.254.169.254", '"http": {"private": true}'),
        ({"private": True, "hosts": ["0.0.0.0"]}, "0.0.0.0", "which nothing can be asked at"),  # noqa: S104 - a subject, not a binding
        ({"private": True}, "224.0.0.1", "a multicast address"),
    ],
)
def test_what_a_name_turns_out_to_be_is_checked(
    policy: dict[str, object], address: str, words: str | None
) -> None:
    """Private addresses need `private`; those that give away a machine's credentials have to be
    named one by one besides.
    """
    rules = HostRules.of("http", policy)
    if words is None:
        rules.check_address("h.example", ipaddress.ip_address(address))
        return
    with pytest.raises(WebProblem) as caught:
        rules.check_address("h.example", ipaddress.ip_address(address))
    assert caught.value.kind == "refused-address"
    assert words in str(caught.value)
    assert f"h.example is at {address}" in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "url", "bound"),
    [
        ("api.example", "https://api.example/x", True),
        ("api.example", "http://api.example/x", False),
        ("api.example", "https://api.example:8443/x", False),
        ("api.example:80", "http://api.example/x", True),
        ("api.example:*", "http://api.example:99/x", True),
        ("*.example", "https://a.example/", True),
        ("*.example", "http://a.example/", False),
    ],
)
def test_a_secret_goes_in_clear_only_where_a_port_says_so(
    entry: str, url: str, bound: bool
) -> None:
    """An entry without a port means https, so that a redirect to http gives nothing away."""
    assert (
        HostRules.of("http", {"secrets": {"KEY": [entry]}}).binds("KEY", read_target(url)) is bound
    )
    assert not HostRules.of("http", {"secrets": {"KEY": [entry]}}).binds("OTHER", read_target(url))
