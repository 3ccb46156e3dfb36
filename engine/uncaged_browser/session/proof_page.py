"""Fresh context for proofs: what an operation would send to a server is held, and sent after a yes
only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services import secrets

from ..effect.limits import BrowserLimits
from ..healing.lexicon import SENDING, actions_of
from ..operations import Click, Operation, Upload, read_operation, write_operation
from ..problems import BrowserProblem
from ..secrets import NO_BOUND_SECRETS, BoundSecrets, secrets_named
from .client import SessionClient, SessionGone
from .messages import ContextSpec

__all__ = ["NotRepeated", "ProofPage"]

BUTTONS = frozenset({"button", "menuitem"})
MAX_SHOWN = 5


class NotRepeated(Exception):
    """An operation that is not done, or not done again; the text is the reason."""


class ProofPage:
    """A context that is open for a block, and performs operations."""

    def __init__(
        self,
        client: SessionClient,
        limits: Mapping[str, object],
        *,
        secret_of: Callable[[str], str],
        may_send: Callable[[int, str], bool],
        finds_first: bool = False,
    ) -> None:
        """Args:
        limits: of the flow's policy. secret_of: returns the value of a secret, or raises
            EnvironmentLacks. may_send: whether a step, by its number, may send what the text says.
            finds_first: a button that is not pressed must be there.
        """
        self._client = client
        self._limits = BrowserLimits.of(limits)
        self._secret_of = secret_of
        self._may_send = may_send
        self._finds_first = finds_first
        self._name = f"proof-{token_hex(8)}"
        self._refused: dict[str, None] = {}

    def __enter__(self) -> Self:
        hosts = self._limits.hosts
        spec = ContextSpec(
            name=self._name,
            hosts=None if hosts is None else tuple(hosts),
            private=self._limits.private,
            patterns=tuple(self._limits.url_patterns),
            proof=True,
        )
        self._client.open_context(spec)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(SessionGone):  # and the context with it
            self._client.close_context(self._name)

    def refused(self) -> tuple[str, ...]:
        """Return hosts that pages asked for and that the flow may not reach."""
        return tuple(self._refused)[:MAX_SHOWN]

    def perform(self, number: int, body: Mapping[str, object]) -> Any:
        """Perform the operation of a step and return its answer, without the values of secrets.

        Raises:
            NotRepeated: it would send something without a yes, or lacks a file or a secret here.
            BrowserProblem: it failed. SessionGone: the browser ended.
        """
        operation, rest = read_operation(body), dict(body)
        reason = sending_name(operation)
        if reason and not self._may_send(number, reason):
            if self._finds_first:
                self._find(operation)
            raise NotRepeated(reason)
        missing = [name for name in getattr(operation, "files", ()) if not Path(name).is_file()]
        if isinstance(operation, Upload) and missing:
            raise NotRepeated(f"there is no file {missing[0]} here")
        try:
            texts = [getattr(operation, "text", "")]
            bound = secrets_named(texts, self._limits.secrets.get, self._secret_of)
        except EnvironmentLacks:
            raise NotRepeated(f"{getattr(operation, 'text', '')} has no value here") from None
        # the person is asked while a request is held, so nothing else may wait for it
        expect, waits = rest.pop("expect", None), rest.pop("wait", False) is True
        answer, problem = self._tried(rest, bound, passes=bool(reason))
        for after in _checks(expect, waits=waits):
            held = self._client.held(self._name)
            if held:
                told = f"it sends data: {', '.join(held[:MAX_SHOWN])}"
                sends = self._may_send(number, told)
                self._client.held(self._name, send=sends)
                if not sends:
                    raise NotRepeated(told)
                problem = None
            if problem is None:
                more, problem = self._tried(after, NO_BOUND_SECRETS)
                answer = _updated(answer, more)
        if problem is not None:
            raise problem
        return self._redacted(answer)

    def look(self, operation: Operation) -> Any:
        """Perform an operation that only reads; return its answer without secrets."""
        body = write_operation(operation)
        return self._redacted(self._client.perform(self._name, body, operation.timeout_s))

    def _find(self, operation: Operation) -> None:
        body = write_operation(operation)
        keys = ("target", "frame", "tab", "timeout_s", "find_s")
        wait = {key: body[key] for key in keys if key in body}
        limit_s = operation.find_s or operation.timeout_s
        wait = {**wait, "do": "wait", "for": "element", "timeout_s": limit_s}
        self._client.perform(self._name, wait, limit_s)

    def _tried(
        self, body: Mapping[str, object], bound: BoundSecrets, *, passes: bool = False
    ) -> tuple[Any, BrowserProblem | None]:
        """Perform an operation; return its answer, or why it failed."""
        timeout_s = read_operation(body).timeout_s
        try:
            answer = self._client.perform(self._name, body, timeout_s, bound, passes=passes)
        except BrowserProblem as exc:
            return None, exc
        fields = answer if isinstance(answer, Mapping) else {}
        hosts = (str(one).partition(": ")[0] for one in fields.get("refused", ()))
        self._refused.update(dict.fromkeys(hosts))
        return answer, None

    def _redacted(self, answer: Any) -> Any:
        known = {}
        for name in self._limits.secrets:
            try:
                known[self._secret_of(name)] = name
            except EnvironmentLacks:
                continue  # it has no value that a page could show
        return secrets.redact(answer, known) if known else answer


def _checks(expect: object, *, waits: bool) -> list[dict[str, Any]]:
    """Return what is performed after an operation: its wait, its expectation, and a look at what it
    sent late.
    """
    load = [{"do": "wait", "for": "load"}] if waits else []
    compared = [{"do": "address", "expect": expect}] if expect is not None else []
    return [*load, *compared, {"do": "address"}]


def _updated(answer: Any, more: Any) -> Any:
    """Return an answer with what a later look at the page says of the same things."""
    if not isinstance(answer, Mapping) or not isinstance(more, Mapping):
        return answer
    return {**answer, **{key: more[key] for key in more if key in answer or key == "drift"}}


def sending_name(operation: Operation) -> str:
    """Return that a step presses a button whose name says that it sends something; empty if it does
    not.
    """
    if not isinstance(operation, Click):
        return ""
    names = [one.name or "" for one in operation.target if one.way == "role"]
    if not any(one.way == "role" and one.value in BUTTONS for one in operation.target):
        return ""
    name = next((name for name in names if SENDING & actions_of(name)), "")
    return f'it presses "{name}"' if name else ""
