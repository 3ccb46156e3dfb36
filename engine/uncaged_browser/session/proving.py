"""Proof run of a recorded flow: its steps in a fresh context, before it is saved. What a step would
send to a server is held, and sent after a yes only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal

from uncaged_bundles import shapes
from uncaged_bundles.carried.web import fill
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.records import dataclass

from ..effect.limits import BrowserLimits
from ..expectations import described
from ..healing.lexicon import SENDING, actions_of
from ..operations import Click, Operation, Upload, read_operation
from ..problems import BrowserProblem
from ..secrets import NO_BOUND_SECRETS, BoundSecrets, secrets_named
from .client import SessionClient
from .messages import ContextSpec

__all__ = ["FlowProof", "ProofRun"]

BUTTONS = frozenset({"button", "menuitem"})
ProofState = Literal["proved", "unproved", "failed"]
MAX_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowProof:
    """Outcome of a proof. step: the first one that was not proved, from 1. reason: why. refused:
    hosts that pages asked for and that the flow may not reach.
    """

    state: ProofState
    step: int | None = None
    reason: str = ""
    refused: tuple[str, ...] = ()

    def document(self) -> dict[str, object]:
        """Return the proof as JSON data."""
        return {
            "state": self.state,
            **({} if self.step is None else {"step": self.step, "reason": self.reason}),
            **({"refused": list(self.refused)} if self.refused else {}),
        }


class ProofRun:
    """One run of a flow's steps with the recorded values."""

    def __init__(
        self,
        client: SessionClient,
        limits: Mapping[str, object],
        *,
        secret_of: Callable[[str], str],
        may_send: Callable[[int, str], bool],
    ) -> None:
        """Args:
        limits: of the flow's policy. secret_of: returns the value of a secret, or raises
            EnvironmentLacks. may_send: whether a step, by its number, may send what the text says.
        """
        self._client = client
        self._limits = BrowserLimits.of(limits)
        self._secret_of = secret_of
        self._may_send = may_send
        self._name = f"proof-{token_hex(8)}"
        self._refused: dict[str, None] = {}

    def run(self, steps: Sequence[object], values: Mapping[str, object]) -> FlowProof:
        """Perform the steps until one fails, or would send something without a yes.

        Raises:
            SessionGone: the browser ended.
        """
        hosts = self._limits.hosts
        spec = ContextSpec(
            name=self._name,
            hosts=None if hosts is None else tuple(hosts),
            private=self._limits.private,
            patterns=tuple(self._limits.url_patterns),
            proof=True,
        )
        self._client.open_context(spec)
        try:
            for number, step in enumerate(steps, 1):
                body = dict(shapes.mapping(fill("", step, values), ("steps", number)))
                state, reason = self._step(number, body)
                if state != "proved":
                    return self._proof(state, number, reason)
            return self._proof("proved", None, "")
        finally:
            self._client.close_context(self._name)

    def _proof(self, state: ProofState, step: int | None, reason: str) -> FlowProof:
        refused = tuple(self._refused)[:MAX_SHOWN]
        return FlowProof(state=state, step=step, reason=reason, refused=refused)

    def _step(self, number: int, body: dict[str, Any]) -> tuple[ProofState, str]:
        body.pop("keep", None)
        operation = read_operation(body)
        reason = sending_name(operation)
        if reason and not self._may_send(number, reason):
            return "unproved", reason
        missing = [name for name in getattr(operation, "files", ()) if not Path(name).is_file()]
        if isinstance(operation, Upload) and missing:
            return "unproved", f"there is no file {missing[0]} here"
        try:
            texts = [getattr(operation, "text", "")]
            secrets = secrets_named(texts, self._limits.secrets.get, self._secret_of)
        except EnvironmentLacks:
            return "unproved", f"{getattr(operation, 'text', '')} has no value here"
        # the person is asked while a request is held, so nothing else may wait for it
        expect, waits = body.pop("expect", None), body.pop("wait", False)
        problem = self._performed(body, secrets, passes=bool(reason))
        for after in self._checks(expect, waits=waits):
            held = self._client.held(self._name)
            if held:
                told = f"it sends data: {', '.join(held[:MAX_SHOWN])}"
                sends = self._may_send(number, told)
                self._client.held(self._name, send=sends)
                if not sends:
                    return "unproved", told
                problem = None
            problem = problem or self._performed(after, NO_BOUND_SECRETS)
        return ("proved", "") if problem is None else ("failed", problem)

    def _checks(self, expect: object, *, waits: bool) -> list[dict[str, Any]]:
        """Return what is performed after a step: its wait, its expectation, and a look at what it
        sent late.
        """
        load = [{"do": "wait", "for": "load"}] if waits else []
        compared = [{"do": "address", "expect": expect}] if expect is not None else []
        return [*load, *compared, {"do": "address"}]

    def _performed(
        self, body: Mapping[str, object], secrets: BoundSecrets, *, passes: bool = False
    ) -> str | None:
        """Perform an operation; return why it failed, or how the page differs."""
        timeout_s = read_operation(body).timeout_s
        try:
            answer = self._client.perform(self._name, body, timeout_s, secrets, passes=passes)
        except BrowserProblem as exc:
            return str(exc)
        fields = answer if isinstance(answer, Mapping) else {}
        hosts = (str(one).partition(": ")[0] for one in fields.get("refused", ()))
        self._refused.update(dict.fromkeys(hosts))
        return f"the page differs: {described(fields['drift'])}" if fields.get("drift") else None


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
