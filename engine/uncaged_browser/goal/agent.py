"""Agent kind for the role `navigator` without a model: it fills in and sends the one form of a page
that has a field for each pair `key: value` of the prompt.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any

from uncaged_bundles.rights import Rights
from uncaged_bundles.shapes import ShapeError
from uncaged_engine.door.agents import AgentAnswer, AgentCheck, AgentFailed, AgentKind, AgentRequest
from uncaged_engine.services import agent_settings as check

from .forms import FormButton, PageForm, read_forms
from .matching import FormEntry, chosen_form, entries_for, sending_button
from .pairs import BeyondForms, read_pairs
from .tools import LOAD_S, BrowserTools

__all__ = ["FormAgent"]

KIND = "form"
LOAD_PAGE_S = 30.0
CHANGE_S = 10.0
PAUSE_S = 0.1
SHOWN_CHARACTERS = 600
REFERENCE = re.compile(r" ?\[(?:ref|more)=\w+\]")
NOT_KNOWN = "whether the form was sent is not known; look at the site before it is sent again"
OTHER_AGENT = (
    "Without a model, the one form of the page that has the labels of the prompt's pairs (`key: value`) is filled in and sent."
    " For other tasks set an agent: --agent NAME, ANTHROPIC_API_KEY or OPENAI_API_KEY (`uncaged-workflow agents` lists agents)"
)


class FormAgent(AgentKind):
    """No settings."""

    name = KIND
    about = "no model; fills in and sends the one form of a page that has the prompt's labels"
    plays = ("navigator",)

    def __init__(self, settings: Mapping[str, object]) -> None:
        check.known(settings, kind=KIND)

    @classmethod
    def holds(cls, settings: Mapping[str, object], rights: Rights) -> None:
        """Return None: it only uses the engine's own browser operations, within the policy."""
        del settings, rights

    def check(self, request: AgentRequest) -> AgentCheck:
        del request
        return AgentCheck(level="ok", text="built in: no model, no key; it fills in one form")

    def answer(self, request: AgentRequest) -> AgentAnswer:
        tools = next((one for one in request.effects if isinstance(one, BrowserTools)), None)
        if request.role.name not in self.plays or tools is None:
            raise AgentFailed(
                f"the agent {KIND!r} plays navigator with the tool effect:browser, not {request.role.name!r}; bind another agent"
            )
        try:
            meta = FormTask(request, tools).send()
        except BeyondForms as exc:
            meta = {"status": "stopped", "message": f"Nothing was sent: {exc}. {OTHER_AGENT}"}
        data = json.dumps(meta, ensure_ascii=False)
        return AgentAnswer(text=f"{meta['message']}\n\n```json\n{data}\n```\n")


class FormTask:
    """One form to be sent. Each operation is in the trace, as a model's tool calls are."""

    def __init__(self, request: AgentRequest, tools: BrowserTools) -> None:
        self._request = request
        self._tools = tools
        self._end_s = time.monotonic() + request.timeout_s

    def send(self) -> dict[str, str]:
        """Fill the form in and send it; return the data of the role's answer.

        Raises:
            BeyondForms: the task is another one; nothing was sent.
        """
        start = self._tools.limits.start
        if not start:
            raise BeyondForms("the flow does not say at which page to begin")
        pairs = read_pairs(self._request.task, start)
        self._do({"do": "navigate", "url": start, "timeout_s": LOAD_PAGE_S})
        self._do({"do": "wait", "for": "load", "timeout_s": LOAD_S}, traced=False)
        number = chosen_form(self._forms(), pairs).number
        form = self._form(number)
        entries = entries_for(form, pairs)
        self._expect_allowed(form, sending_button(form))
        for entry in entries:
            self._do(dict(entry.body), label=entry.field.label)
        form = self._form(number)
        self._expect_accepted(form)
        button = sending_button(form)
        self._expect_allowed(form, button)
        return self._pressed(form, button, entries)

    def _pressed(
        self, form: PageForm, button: FormButton, entries: list[FormEntry]
    ) -> dict[str, str]:
        """Press the button, and return what the page shows afterwards."""
        what = "; ".join(f"{entry.field.label}: {entry.value}" for entry in entries)
        before = self._page()
        if before is None:
            raise BeyondForms("the page cannot be read")
        target = [name.document() for name in button.names]
        pressed = self._attempt({"do": "click", "target": target}, button.label)
        if isinstance(pressed, str):
            return _unknown(
                f"{form} was filled in ({what}), and {button.label!r} failed: {pressed}"
            )
        after = self._changed_page(before)
        if after is None:
            return _unknown(
                f"{form} was filled in ({what}) and {button.label!r} was pressed, but the page shows no change"
            )
        url, title, text = after
        shown = REFERENCE.sub("", text)[:SHOWN_CHARACTERS]
        return {
            "status": "done",
            "message": f"Sent the form {form} with {button.label!r}: {what}. The page is now {title!r} at {url} and shows:\n{shown}",
        }

    def _changed_page(self, before: tuple[str, str, str]) -> tuple[str, str, str] | None:
        """Return the page that comes after the button; None if nothing changes."""
        end_s = time.monotonic() + CHANGE_S
        while time.monotonic() < end_s:
            self._attempt({"do": "wait", "for": "load", "timeout_s": LOAD_S}, traced=False)
            after = self._page()
            if after is not None and after != before:
                return after
            time.sleep(PAUSE_S)
        return None

    def _expect_allowed(self, form: PageForm, button: FormButton) -> None:
        if not self._tools.allows(button.action):
            raise BeyondForms(
                f"the form {form} sends to {button.action[:200]}, which is not among the hosts of the task;"
                " if that is right, add it with --param hosts='[\"HOST\"]'"
            )

    def _expect_accepted(self, form: PageForm) -> None:
        wrong = [f"{one.label!r}: {one.problem}" for one in form.fields if not one.valid]
        if wrong:
            raise BeyondForms(f"the page does not take a value: {'; '.join(wrong)}")

    def _forms(self, number: int | None = None) -> list[PageForm]:
        body = {"do": "forms", **({} if number is None else {"number": number})}
        try:
            return read_forms(self._do(body, traced=False))
        except ShapeError as exc:
            raise BeyondForms(f"the page's forms cannot be read: {exc}") from None

    def _form(self, number: int) -> PageForm:
        """Return a form with the names of its fields."""
        found = [form for form in self._forms(number) if form.number == number]
        if not found:
            raise BeyondForms("the form is gone from the page")
        return found[0]

    def _page(self) -> tuple[str, str, str] | None:
        """Return address, title and text of the page, which are data; None if it cannot be read."""
        view = self._attempt({"do": "view"}, traced=False)
        if isinstance(view, str):
            return None
        return str(view.get("url")), str(view.get("title")), str(view.get("text", ""))

    def _do(
        self, body: dict[str, object], label: str = "", *, traced: bool = True
    ) -> Mapping[str, Any]:
        answer = self._attempt(body, label, traced=traced)
        if isinstance(answer, str):
            raise BeyondForms(f"{label!r}: {answer}" if label else answer)
        return answer

    def _attempt(
        self, body: dict[str, object], label: str = "", *, traced: bool = True
    ) -> Mapping[str, Any] | str:
        """Return the answer of an operation, or why it failed."""
        if self._request.cancel.requested:
            raise AgentFailed(f"the agent {KIND!r} was stopped")
        if time.monotonic() > self._end_s:
            raise AgentFailed(
                f"the form was not sent within {self._request.timeout_s:g} s", kind="timeout"
            )
        begin_s = time.monotonic()
        answer = self._tools.perform(body)
        if traced:
            rest = {key: body[key] for key in body if key not in ("do", "target", "timeout_s")}
            self._request.trace.add(
                f"browser_{body['do']}",
                {**({"field": label} if label else {}), **rest},
                answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False),
                failed=isinstance(answer, str),
                duration_ms=int((time.monotonic() - begin_s) * 1000),
            )
        return answer


def _unknown(message: str) -> dict[str, str]:
    return {"status": "stopped", "message": f"The form {message}.", "missing": NOT_KNOWN}
