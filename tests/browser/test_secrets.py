"""Secrets that texts name, with the hosts that they are bound to."""

from __future__ import annotations

from uncaged_browser.secrets import NO_BOUND_SECRETS, secrets_named

HOSTS = {"SHOP": ["shop.example.org"]}


def test_only_values_of_bound_secrets_are_read() -> None:
    """A text that is a secret's name and nothing else gives its value; the value of an unbound one
    is not asked for.
    """
    read: list[str] = []

    def value_of(name: str) -> str:
        read.append(name)
        return "hunter2"

    texts = ["secret:SHOP", "secret:BANK", "my secret:SHOP", ""]
    found = secrets_named(texts, HOSTS.get, value_of)
    assert (found.values, found.hosts) == ({"SHOP": "hunter2"}, HOSTS) and read == ["SHOP"]
    assert secrets_named(texts[1:], HOSTS.get, value_of) == NO_BOUND_SECRETS
