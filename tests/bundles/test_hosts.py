"""Host entries of a policy are checked before a bundle is added; their effect is tested with the
effects.
"""

from __future__ import annotations

import pytest
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_bundles.errors import BundleError
from uncaged_bundles.hosts import NoHost, canonical, check_policy, flaw_in_address, read_entry
from uncaged_bundles.validation.validate import read_bundle

NO_HOSTS = {
    "https://api.example.com/v1": "is no host but an address; name its host alone: api.example.com",
    "example.com/x": "is no host but an address; write it as in api.example.com",
    "a b": "is no name of a host; write it as in api.example.com",
    "": "is no name of a host",
    "*.": "is no name of a host",
    "*.*.org": "is no name of a host",
    "a..example": "is no name of a host",
    "*.127.0.0.1": "nothing is below an address",
    "a.example:0": "'0' is no port",
    "a.example:x": "'x' is no port",
    "a.example:99999": "'99999' is no port",
    "0x7f.1": "an address in disguise; write it as four decimal numbers",
    "2130706433": "an address in disguise",
    "[1::2::3]": "is no IPv6 address",
    "fe80::1%eth0": "names a network interface",
    "a\nb.example": "is no name of a host",
    "x" * 64 + ".example": "is no name of a host",
}


@pytest.mark.parametrize("entry", NO_HOSTS)
def test_an_entry_that_is_no_host_says_what_would_be(entry: str) -> None:
    """Whatever a slip of the pen makes of it, it never means more than was written."""
    with pytest.raises(NoHost) as caught:
        read_entry(entry)
    assert NO_HOSTS[entry] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("API.Example.COM.", "api.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("[::1]", "::1"),
        ("127.0.0.1", "127.0.0.1"),
    ],
)
def test_a_host_has_one_spelling(text: str, host: str) -> None:
    """A host is lower case, ASCII, without a final dot, and an address has its usual form."""
    assert canonical(text) == host


@pytest.mark.parametrize(
    ("policy", "place"),
    [
        ({"http": {"hosts": ["good.example", "a b"]}}, "policy.http.hosts[1]"),
        ({"http": {"secrets": {"KEY": ["a b"]}}}, "policy.http.secrets.KEY[0]"),
        ({"fetch": {"hosts": ["a b"]}}, "policy.fetch.hosts[0]"),
        ({"script": {"network": ["*", "a b"]}}, "policy.script.network[1]"),
    ],
)
def test_a_bundle_with_an_entry_that_is_no_host_is_not_added(
    policy: dict[str, object], place: str
) -> None:
    """A bundle with such an entry is refused with its place; one that is in the store already is
    still loaded.
    """
    descriptor = {
        "contract": 1,
        "name": "asks",
        "description": "Asks.",
        "kind": "task",
        "policy": policy,
    }
    source = f"descriptor = {descriptor!r}\n\n\ndef run(input, options):\n    yield {{}}\n".encode()
    with pytest.raises(BundleError) as caught:
        read_bundle(source, check_schemas=True)
    column = source.decode().index("'a b'") + 1
    assert str(caught.value).startswith(
        f"line 1, column {column}: descriptor.{place}: 'a b' is no host: "
    )
    assert read_bundle(source).descriptor.policy.limits == policy


def test_only_hosts_are_looked_at() -> None:
    """A script's secrets are bound to commands, models and flows have other names, and foreign
    effects have their own words.
    """
    check_policy(
        {
            "script": {"secrets": {"KEY": ["a b"]}},
            "llm": {"models": ["a b"]},
            "mail": {"hosts": ["a b"]},
        },
        (),
    )
    check_policy({"http": {"hosts": "no list"}, "fetch": "no mapping"}, ())


@pytest.mark.parametrize(
    ("url", "flaw"),
    [
        ("https://api.example.com/x?q=${query}", None),
        ("http://[::1]:8080/", None),
        ("HTTPS://bücher.example", None),
        ("${base}/x", None),
        ("${scheme}://x", None),
        ("https://${host}/x", None),
        ("https://${user}@example.com/", None),
        ("example.com/x", "begins with http:// or https://"),
        ("file:///etc/passwd", "begins with http:// or https://"),
        ("https:///x", "is no name of a host"),
        ("https://me:you@example.com/", "holds a user name or a password"),
        ("https://exa mple.com/", "is no name of a host"),
        ("https://example.com:99999/", "is no port"),
        ("https://2130706433/", "an address in disguise"),
        ("https://*.example.com/", "names no host"),
        ("https://example.com:*/", "names no host"),
    ],
)
def test_an_address_that_is_written_out_is_looked_at_before_a_request(
    url: str, flaw: str | None
) -> None:
    """A literal address is checked; the value of a variable is unknown."""
    found = flaw_in_address(url)
    assert found is None if flaw is None else found is not None and flaw in found
    assert "me:you" not in (found or "")


TASK = {"name": "asks", "description": "Asks."}
SCRIPT = {
    "actionName": "asks",
    "description": "Asks.",
    "script": {"language": "bash", "body": "true"},
}
BLOCK = {"name": "asks", "description": "Asks."}


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (
            {**SCRIPT, "sandbox": {"allowedDomains": ["a.example", "a b"]}},
            "recipe.sandbox.allowedDomains[1]: 'a b' is no host",
        ),
        (
            {
                **TASK,
                "script": "async def execute(api, params): pass",
                "policy": {"http": {"hosts": ["a b"]}},
            },
            "recipe.policy.http.hosts[0]: ",
        ),
        (
            {
                **TASK,
                "script": "async def execute(api, params):\n    return await api.web_fetch(f'https://a b/{params.x}')\n",
            },
            "asks: line 2, column 32: 'a b' is no host",
        ),
        (
            {
                **TASK,
                "script": "async def execute(api, params):\n    await api.http('GET', 'file:///etc/passwd')\n",
            },
            "asks: line 2, column 27: 'file:///etc/passwd' is no web address",
        ),
        (
            {
                **BLOCK,
                "steps": [{"type": "start", "config": {}}],
                "policy": {"fetch": {"hosts": ["a b"]}},
            },
            "flow.policy.fetch.hosts[0]: 'a b' is no host",
        ),
        (
            {**BLOCK, "steps": [{"type": "webScraping", "config": {"url": "https://127.1/"}}]},
            "flow.steps[0].config.url: '127.1' is no host: '127.1' is an address in disguise",
        ),
    ],
)
def test_a_recipe_says_where_in_it_the_host_stands(recipe: dict[str, object], said: str) -> None:
    """Not where in the bundle that would have been built."""
    with pytest.raises(BundleError) as caught:
        build_flow(parse_recipe(recipe))
    assert said in str(caught.value)
