"""Host rules of a granted policy: which hosts and addresses a request may reach, and with which
secrets.

The syntax of hosts is in `uncaged_bundles.hosts`. Without ``hosts`` any host is allowed, with an
empty list none. Addresses that are not public need ``private`` besides; those next to the machine
(link-local, cloud metadata) must be listed in ``hosts``, too. A secret goes only to the hosts that
it is bound to; an entry without a port means https.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from uncaged_bundles.addresses import Address, classify, literal
from uncaged_bundles.hosts import ANY_PORT, LISTS, HostEntry, NoHost, read_entry
from uncaged_bundles.urls import PORTS, Target

from .problems import WebProblem


class HostPattern(HostEntry):
    """Entry of a policy's hosts that matches targets of requests."""

    __slots__ = ()

    def covers(self, target: Target, *, clear: bool = True) -> bool:
        """Whether the entry matches *target*. clear: an entry without a port means http as well."""
        if self.port is None and (
            target.port != PORTS[target.scheme] or not (clear or target.scheme == "https")
        ):
            return False
        if self.port not in (None, ANY_PORT, target.port):
            return False
        if self.below:
            return target.host.endswith(f".{self.host}") if self.host else True
        return target.host == self.host


@lru_cache(maxsize=1024)
def read_pattern(text: str) -> HostPattern:
    """Raises: WebProblem: kind *policy*, if it is no entry of a policy's hosts."""
    try:
        entry = read_entry(text)
    except NoHost as exc:
        raise WebProblem("policy", f"in the policy: {exc}") from None
    return HostPattern(host=entry.host, below=entry.below, port=entry.port)


def read_patterns(entries: Iterable[str]) -> tuple[HostPattern, ...]:
    """Read the host patterns of a policy."""
    return tuple(map(read_pattern, entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """Rules for one effect kind of one bundle. hosts: None means any. bound: the hosts of each
    secret.
    """

    kind: str
    hosts: tuple[HostPattern, ...] | None = None
    private: bool = False
    bound: tuple[tuple[str, tuple[HostPattern, ...]], ...] = ()

    @classmethod
    def of(cls, kind: str, limits: Mapping[str, object]) -> HostRules:
        hosts, bound = (
            limits.get("hosts"),
            cast("Mapping[str, list[str]]", limits.get("secrets", {})),
        )
        return cls(
            kind=kind,
            hosts=None if hosts is None else read_patterns(cast("list[str]", hosts)),
            private=bool(limits.get("private", False)),
            bound=tuple((name, read_patterns(entries)) for name, entries in bound.items()),
        )

    @property
    def _list(self) -> str:
        """The policy's key for the hosts of this kind."""
        return LISTS.get(self.kind, "hosts")

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.bound)

    def check(self, target: Target) -> None:
        """Raises: WebProblem: the policy does not name this host, or forbids its address."""
        if self.hosts is not None and not any(pattern.covers(target) for pattern in self.hosts):
            entry = target.authority
            raise WebProblem(
                "policy",
                f'the policy does not name the host {entry}; add "{entry}" to "{self.kind}": {{"{self._list}": [...]}} '
                "and add the bundle again",
            )
        address = literal(target.host)
        if address is not None:
            self.check_address(target.host, address)

    def check_address(self, host: str, address: Address) -> None:
        """Raises: WebProblem: kind *refused-address*, if the policy forbids the address of
        *host*.
        """
        kind = classify(address)
        if kind.reach == "public":
            return
        what = (
            f"{host} is {kind.words}"
            if host == str(address)
            else f"{host} is at {address}: {kind.words}"
        )
        if kind.reach == "never":
            raise WebProblem("refused-address", f"{what}, which nothing can be asked at")
        if not self.private:
            raise WebProblem(
                "refused-address",
                f'{what}; only a policy with "{self.kind}": {{"private": true}} reaches it',
            )
        if kind.reach == "close" and not any(
            pattern.host == str(address) and not pattern.below for pattern in self.hosts or ()
        ):
            raise WebProblem(
                "refused-address",
                f'{what}; besides "private" the policy has to name "{address}" itself under {LISTS[self.kind]}',
            )

    def binds(self, name: str, target: Target) -> bool:
        """Whether the secret *name* may be sent to *target*."""
        return any(
            pattern.covers(target, clear=False)
            for bound, hosts in self.bound
            if bound == name
            for pattern in hosts
        )
