"""Parsing of web addresses, and refusals before any lookup."""

from __future__ import annotations

import pytest
from uncaged_bundles.urls import UrlError, read_target


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM.:443/a?b=c#d", "https://example.com/a?b=c"),
        (
            "http://example.com:8080/ü ü?q=ä b",
            "http://example.com:8080/%C3%BC%20%C3%BC?q=%C3%A4%20b",
        ),
        ("http://a.example/%2e%2f?x=%41", "http://a.example/%2e%2f?x=%41"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
        ("http://[::1]:99/", "http://[::1]:99/"),
        ("http://[2001:DB8:0::1]/", "http://[2001:db8::1]/"),
        ("http://127.0.0.1/", "http://127.0.0.1/"),
        ("https://a_b-c.example/", "https://a_b-c.example/"),
    ],
)
def test_an_address_has_one_spelling(text: str, url: str) -> None:
    """Host in lower case and ASCII, the scheme's own port left out, everything else percent-encoded
    once, no fragment.
    """
    assert read_target(text).url == url


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("file:///etc/passwd", "file: addresses are not requested"),
        ("ftp://example.com/", "ftp: addresses"),
        ("javascript:alert(1)", "javascript: addresses"),
        ("example.com/x", "it has no scheme"),
        ("", "it has no scheme"),
        ("https://", "names no host"),
        ("https:///path", "names no host"),
        ("https://user:pass@example.com/", 'put "secret:NAME" into a header'),
        ("https://token@example.com/", "a user name or a password"),
        ("https://@example.com/", "a user name or a password"),
        ("https://good.example\\@evil.example/", "a user name or a password"),
        ("https://good.example\\.evil.example/", "is no name of a host"),
        ("https://exa%6dple.com/", "is no name of a host"),
        ("https://exa mple.com/", "is no name of a host"),
        ("https://-a.example/", "is no name of a host"),
        ("https://a..example/", "is no name of a host"),
        (f"https://{'a' * 64}.example/", "is no name of a host"),
        ("https://xn--a.example/", "no internationalised name"),
        ("https://xn--0.example/", "no internationalised name"),
        ("https://a\u2044b.example/", "no internationalised name"),
        ("https://example.com:0/", "no port that there is"),
        ("https://example.com:70000/", "is no web address"),
        ("https://example.com:x/", "is no web address"),
        ("https://[::1/", "is no web address"),
        ("https://[1::2::3]/", "IPv6 address"),
        ("https://example.com/\r\nHost: evil", "a line break"),
        ("https://exam\tple.com/", "control character"),
        ("https://example.com/\x00", "control character"),
        ("https://example.com/" + "a" * 70_000, "65536 are the most"),
    ],
)
def test_what_is_no_address_is_told(text: str, words: str) -> None:
    """Each refusal has its own reason, and never the password in the address."""
    with pytest.raises(UrlError) as caught:
        read_target(text)
    assert not caught.value.disguised
    assert words in str(caught.value)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "2130706433",
            "0x7f000001",
            "017700000001",
            "0x7f.1",
            "127.1",
            "127.0.1",
            "0177.0.0.1",
            "127.0.0.01",
            "1.2.3.4.5",
            "127.0.0.256",
        ),
        *("a.0x7f", "example.123", "127.0.0.1.2130706433", "１２７.1", "127。1"),
    ],
)
def test_an_address_in_disguise_is_refused(host: str) -> None:
    """Libraries and kernels read these as addresses, each in its own way."""
    with pytest.raises(UrlError) as caught:
        read_target(f"http://{host}/")
    assert caught.value.disguised
    assert "write it as four decimal numbers" in str(caught.value)


@pytest.mark.parametrize("host", ["１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1"])
def test_a_disguise_that_can_be_taken_off_is(host: str) -> None:
    """Unicode digits and dots are normalized before the address is checked and connected to."""
    assert read_target(f"http://{host}/").host == "127.0.0.1"


def test_an_interface_cannot_be_chosen() -> None:
    """A link-local address with its interface is refused in any case."""
    with pytest.raises(UrlError, match="network interface") as caught:
        read_target("http://[fe80::1%25eth0]/")
    assert caught.value.disguised


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/c", "http://a.example:81/c"),
        ("c?d=ü", "http://a.example:81/x/c?d=%C3%BC"),
        ("//b.example/c", "http://b.example/c"),
        ("https://b.example", "https://b.example/"),
        ("?q", "http://a.example:81/x/y?q"),
        (" /c ", "http://a.example:81/c"),
    ],
)
def test_a_redirect_is_read_like_any_address(location: str, url: str) -> None:
    """Relative to where it came from."""
    assert read_target("http://a.example:81/x/y").following(location).url == url


def test_a_query_is_added_to_what_is_there() -> None:
    """Encoded, so that a value can bring neither a further one nor a fragment."""
    target = read_target("https://a.example/x?y=1")
    assert (
        target.with_query([("q", "a&b=c#d ü"), ("n", "1")]).url
        == "https://a.example/x?y=1&q=a%26b%3Dc%23d+%C3%BC&n=1"
    )
    assert target.with_query([]) is target
