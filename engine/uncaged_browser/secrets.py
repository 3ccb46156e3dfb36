"""Secrets in fields: a text that is ``secret:NAME`` is typed as its value, only into pages of hosts
that the policy binds it to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass
from uncaged_engine.services.network import HostRules, WebProblem, read_patterns, read_target

from .problems import BrowserProblem

__all__ = ["NO_BOUND_SECRETS", "BoundSecrets", "name_of_secret", "secrets_named"]

WHOLE = re.compile(r"secret:([A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)")


def name_of_secret(text: str) -> str | None:
    """Return the name if the text is a secret's, and nothing else."""
    found = WHOLE.fullmatch(text)
    return None if found is None else found[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSecrets:
    """Values of secrets, and the hosts that each is bound to, by name."""

    values: Mapping[str, str]
    hosts: Mapping[str, Sequence[str]]

    def value(self, name: str, url: str) -> str:
        """Return the value of a secret for a field of the page at *url*.

        Raises:
            BrowserProblem: the policy does not bind it to that host.
        """
        entries = self.hosts.get(name)
        if name not in self.values or entries is None:
            raise BrowserProblem("blocked", f"the policy binds secret:{name} to no host")
        rules = HostRules(kind="browser", bound=((name, read_patterns(entries)),))
        try:
            is_bound = rules.binds(name, read_target(url))
        except WebProblem:
            is_bound = False
        if not is_bound:
            raise BrowserProblem(
                "blocked",
                f"the policy does not bind secret:{name} to {url[:200]}; over http only where the entry names the port",
            )
        return self.values[name]

    def document(self) -> dict[str, object]:
        """Return the secrets as a message to a session has them."""
        return {"values": dict(self.values), "hosts": {k: list(v) for k, v in self.hosts.items()}}

    @classmethod
    def of(cls, value: object) -> BoundSecrets:
        """Read the secrets of a message; None has none.

        Raises:
            ShapeError: it is malformed.
        """
        if value is None:
            return NO_BOUND_SECRETS
        path: shapes.Path = ("secrets",)
        fields = shapes.mapping(value, path)
        values = shapes.mapping(shapes.required(fields, "values", path), (*path, "values"))
        hosts = shapes.mapping(shapes.required(fields, "hosts", path), (*path, "hosts"))
        return cls(
            values={
                name: shapes.text(one, (*path, "values", name)) for name, one in values.items()
            },
            hosts={name: shapes.texts(one, (*path, "hosts", name)) for name, one in hosts.items()},
        )


NO_BOUND_SECRETS = BoundSecrets(values={}, hosts={})


def secrets_named(
    texts: Iterable[str],
    hosts_of: Callable[[str], Sequence[str] | None],
    value_of: Callable[[str], str],
) -> BoundSecrets:
    """Return the secrets that texts name, of those that are bound to hosts.

    Args:
        hosts_of: returns the hosts of a secret; None if it is bound to none. value_of: returns the
            value of a secret, or raises EnvironmentLacks.
    """
    names = [name for text in texts if (name := name_of_secret(text)) is not None]
    hosts = {name: found for name in names if (found := hosts_of(name)) is not None}
    return BoundSecrets(values={name: value_of(name) for name in hosts}, hosts=hosts)
