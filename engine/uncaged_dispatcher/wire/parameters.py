"""Parameters of the methods that a client may call. `conversation` is a name, an id or the start of
one; without it, the current conversation is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitParams:
    """Parameters of `submit` and `interrupt`: a sentence or a call."""

    conversation: str | None = None
    text: str = ""
    call: Mapping[str, Any] | None = None
    id: str | None = None
    client_id: Annotated[str | None, "clientId"] = None
    directory: str | None = None
    agreed: bool = False
    model: bool = True
    grammar: bool = True
    reason: bool = False
    attachments: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestParams:
    """Parameters of `cancel` and `promote`. request: its id, or the client's own."""

    conversation: str | None = None
    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerParams:
    """Parameters of `answer`. question: the number of the question's record."""

    conversation: str | None = None
    request: str
    question: int
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditParams:
    """Parameters of `edit`: the calls that are to run instead of the proposed ones."""

    conversation: str | None = None
    request: str
    question: int
    calls: list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseParams:
    """Parameters of `choose`. choice: the id of one of the choices that the request's result, or
    with *question* its open question, offers.
    """

    conversation: str | None = None
    request: str
    choice: str
    question: int | None = None
    remember: bool = False
    client_id: Annotated[str | None, "clientId"] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogParams:
    """Parameters of `log`. follow: send later records as notifications."""

    conversation: str | None = None
    after: int = 0
    follow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusParams:
    """Parameters of `status` and `unfollow`."""

    conversation: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationsParams:
    """Parameters of `conversations`: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewParams:
    """Parameters of `new`. name: a free one if it is omitted."""

    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainParams:
    """Parameters of `explain`. directory: where relative paths of the sentence are looked up."""

    text: str
    directory: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteParams:
    """Parameters of `complete`. direction: backward offers the last word again."""

    text: str
    direction: Literal["forward", "backward"] = "forward"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemasParams:
    """Parameters of `schemas`. pack: only the flows of this pack. after: only names after this
    one.
    """

    pack: str | None = None
    after: str = ""
