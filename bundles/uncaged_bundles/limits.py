"""Effect kinds of contract 1. Each class has the limits of a kind, which a policy may set, and a
sentence for people about the kind.

An absent limit means the handler's default. A policy keeps its values as written; `Limits.of`
converts them to their types for a handler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar, get_args

from . import rights, shapes
from .fields import read
from .hosts import HOST_NETWORK
from .records import dataclass

__all__ = [
    "KNOWN_EFFECTS",
    "EffectKinds",
    "Limits",
    "MaxBytes",
    "Names",
    "Positive",
    "Texts",
]

Self = TypeVar("Self", bound="Limits")
Level = Literal["none", "read", "write"]
WORKSPACE_LEVELS: tuple[Level, ...] = get_args(Level)
WHOLE_NETWORK = "the machine's own, with its local services, its neighbours and clouds' addresses of machine credentials"
ANY_REFUSAL = "any"
NO_SECRETS: Mapping[str, list[str]] = MappingProxyType({})


def script_network(value: object, path: shapes.Path) -> object:
    """Return the network of a script: ``"host"`` or a list of hosts."""
    return value if value == HOST_NETWORK else shapes.texts(value, path)


def tolerated(value: object, path: shapes.Path) -> object:
    """Return what a script may be refused without failing: ``True`` for anything, else a list of
    texts.
    """
    return value if value is True else shapes.texts(value, path)


Names = Annotated[Sequence[str], shapes.texts]
Texts = Annotated[Sequence[str] | None, shapes.texts]
Positive = Annotated[float | None, shapes.positive]
MaxBytes = Annotated[float | None, shapes.positive, "maxBytes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one effect kind. meaning: completes the sentence "the bundle may …"."""

    meaning = ""

    @classmethod
    def of(cls: type[Self], policy: Mapping[str, object]) -> Self:
        """Return the limits of a policy that was checked when its bundle was read."""
        return read(cls, policy, ())

    @classmethod
    def in_words(cls, limits: Mapping[str, object]) -> Mapping[str, object]:
        """Return the limits as they are shown to a person, by key."""
        return limits

    @classmethod
    def first_sentence(cls, limits: Mapping[str, object]) -> str:
        """Return what the first sentence about the kind adds to its limits."""
        del limits
        return ""

    @classmethod
    def unset(cls, limits: Mapping[str, object]) -> Mapping[str, object]:
        """Return the meaning of absent keys that a person has to know."""
        del limits
        return {}

    @classmethod
    def widened(cls, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
        """Yield the kind's own sentences about effects that *after* allows and *before* did not."""
        del before, after
        yield from ()

    @classmethod
    def needs(cls, limits: Mapping[str, object]) -> frozenset[str]:
        """Return what a worker of a shared store must offer to perform the effects; nothing if each
        one can.
        """
        del limits
        return frozenset()

    @classmethod
    def of_one_machine(cls, limits: Mapping[str, object]) -> str:
        """Return what the effects use that belongs to one machine, so that no worker of a shared
        store can perform them; "" if there is nothing.
        """
        del limits
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleLimits(Limits):
    meaning = "ask agents to answer for roles"
    workspace: Annotated[Level | None, shapes.one_of(*WORKSPACE_LEVELS)] = None
    timeout_s: Positive = None
    tools: Annotated[Sequence[str] | None, rights.tools_words] = None
    network: bool = False
    sandbox: bool = False
    outside: Annotated[str | None, shapes.one_of(*rights.OUTSIDE)] = None

    @classmethod
    def in_words(cls, limits: Mapping[str, object]) -> Mapping[str, object]:
        """Leave out the rights, which have sentences of their own."""
        return {key: limit for key, limit in limits.items() if key in ("workspace", "timeout_s")}

    @classmethod
    def first_sentence(cls, limits: Mapping[str, object]) -> str:
        return rights.first_sentence(limits)

    @classmethod
    def widened(cls, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
        return rights.widened(before, after)


class NullLimits(Limits):
    meaning = "yield the null effect, which does nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits(Limits):
    meaning = "read web pages"
    hosts: Texts = None
    private: bool = False
    max_bytes: MaxBytes = None
    timeout_s: Positive = None

    @classmethod
    def unset(cls, limits: Mapping[str, object]) -> Mapping[str, object]:
        """Say which hosts may be reached when none are named."""
        if "hosts" in limits:
            return {}
        return {
            "hosts": "any, those of this machine and its network too"
            if limits.get("private")
            else "any public one"
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits(FetchLimits):
    meaning = "send requests to web servers"
    secrets: Mapping[str, list[str]] = NO_SECRETS


class SearchLimits(Limits):
    meaning = "search the web"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmLimits(Limits):
    meaning = "ask a language model"
    models: Texts = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLimits(Limits):
    """The limits of scripts.

    network: hosts (``*`` is any public one), or ``"host"``. private: hosts may be ones that are not
    public. tolerate: what may be refused without making the script fail; True is anything. secrets:
    by name, the commands that may get each.
    """

    meaning = "run scripts of the operating system"
    executables: Names = ()
    modules: Names = ()
    read: Names = ()
    write: Names = ()
    network: Annotated[str | Sequence[str], script_network] = ()
    private: bool = False
    secrets: Mapping[str, list[str]] = NO_SECRETS
    environment: Names = ()
    tolerate: Annotated[bool | Sequence[str], tolerated] = ()
    timeout_s: Positive = None
    max_bytes: MaxBytes = None
    memory_bytes: Annotated[float | None, shapes.positive, "memoryBytes"] = None
    processes: Positive = None

    @property
    def hosts(self) -> Sequence[str]:
        """Return the hosts that are reached through the proxy; none with the machine's network."""
        return () if self.host_network else self.network

    @property
    def host_network(self) -> bool:
        """Tell whether scripts have the machine's own network."""
        return self.network == HOST_NETWORK

    @property
    def tolerated(self) -> Sequence[str]:
        """Return what may be refused without making the script fail."""
        return () if isinstance(self.tolerate, bool) else self.tolerate

    @classmethod
    def in_words(cls, limits: Mapping[str, object]) -> Mapping[str, object]:
        """Replace the values for the machine's own network and for any refusal by words."""
        words = {("network", HOST_NETWORK): WHOLE_NETWORK, ("tolerate", True): ANY_REFUSAL}
        return {
            key: words.get((key, limit), limit) if isinstance(limit, str | bool) else limit
            for key, limit in limits.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits(Limits):
    meaning = "start other flows"
    names: Texts = None


class AllLimits(Limits):
    meaning = "perform several effects at once"


class AskLimits(Limits):
    meaning = "ask a person and wait for the answer"


class SleepLimits(Limits):
    meaning = "wait"


class NowLimits(Limits):
    meaning = "read the clock"


EffectKinds = Mapping[str, type[Limits]]
KNOWN_EFFECTS: EffectKinds = {
    "role": RoleLimits,
    "null": NullLimits,
    "http": HttpLimits,
    "fetch": FetchLimits,
    "search": SearchLimits,
    "llm": LlmLimits,
    "script": ScriptLimits,
    "flow": FlowLimits,
    "all": AllLimits,
    "ask": AskLimits,
    "sleep": SleepLimits,
    "now": NowLimits,
}
