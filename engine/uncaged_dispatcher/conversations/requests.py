"""Request of a conversation: a sentence, or a call that needs no reading, with its options.

A request is checked when it is made, so that a value from a socket or a file never travels
unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from uncaged_bundles.errors import UsageError
from uncaged_bundles.ids import is_thread_id
from uncaged_bundles.records import dataclass
from uncaged_engine.services.canonical import encode

from ..calls import REASON, Call
from ..readings.directives import DirectedSentence, split_directive

MAX_TEXT_BYTES = 64 << 10
MAX_CLIENT_ID_CHARACTERS = 200
MAX_ATTACHMENTS = 20
MAX_CALL_BYTES = 256 << 10
_HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and marks that show a text in another order than it has."""
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRequest:
    """One request.

    id: a ULID, new in the conversation; a request that is submitted again with it is the same one.
    client_id: the client's own name for it, unique among those that are not settled.
    text: the sentence, without the space around it; empty for a request with a call.
    call: the call to run without reading a sentence. parent: the request whose result made this
    call, and depth: how many such results came before it.
    directory: the client's directory, in which relative paths of the sentence are looked up.
    agreed: the person agreed beforehand to whatever is understood.
    model, grammar: whether these tiers may read the sentence. reason: the sentence goes to the flow
    `reason`, and is not read.
    """

    id: str
    text: str = ""
    client_id: str | None = None
    call: Call | None = None
    parent: str | None = None
    depth: int = 0
    directory: str = "/"
    agreed: bool = False
    model: bool = True
    grammar: bool = True
    reason: bool = False
    attachments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not is_thread_id(self.id):
            raise UsageError(f"{self.id[:80]!r} is no request id; a request id is a ULID")
        if (self.text == "") == (self.call is None):
            raise UsageError("a request is a sentence or a call; this one has neither or both")
        if self.reason and self.call is not None:
            raise UsageError("a request for reasoning is a sentence")
        if self.attachments and self.call is None and self.unread_call is not None:
            raise UsageError("a request for reasoning, or to learn, has no attachments")
        check_text(self.text)
        if self.client_id is not None and not _is_short_line(self.client_id):
            raise UsageError(
                f"a client's id is one line of 1 to {MAX_CLIENT_ID_CHARACTERS} printable characters"
            )
        if not PurePath(self.directory).is_absolute():
            raise UsageError(f"the directory {self.directory[:200]!r} is not absolute")
        if len(self.attachments) > MAX_ATTACHMENTS:
            raise UsageError(f"a request has at most {MAX_ATTACHMENTS} attachments")

    @property
    def unread_call(self) -> Call | None:
        """Return the call that needs no reading; None for a sentence that is read."""
        goal = REASON if self.reason else self.directed.goal_flow()
        return self.call if goal is None else Call(flow=goal)

    @property
    def content(self) -> str:
        """Return what is asked for: the sentence, or the call as JSON."""
        return self.text if self.call is None else encode(self.call.document())

    @property
    def directed(self) -> DirectedSentence:
        """Return the sentence with its directive apart."""
        return split_directive(self.text)

    def document(self) -> dict[str, object]:
        """Return the request as JSON; fields at their defaults are left out."""
        return {
            "id": self.id,
            **({"text": self.text} if self.text else {}),
            **({"clientId": self.client_id} if self.client_id is not None else {}),
            **({"call": self.call.document()} if self.call is not None else {}),
            **({"parent": self.parent, "depth": self.depth} if self.parent is not None else {}),
            "directory": self.directory,
            **({"agreed": True} if self.agreed else {}),
            **({} if self.model else {"model": False}),
            **({} if self.grammar else {"grammar": False}),
            **({"reason": True} if self.reason else {}),
            **({"attachments": list(self.attachments)} if self.attachments else {}),
        }

    @classmethod
    def read(cls, value: object, *, strict: bool = True) -> ConversationRequest:
        """Check what `document` returns.

        Args:
            strict: refuse unknown fields, as those of a client. In a log a later engine wrote them.
        Raises:
            UsageError: a field is missing or of another type.
        """
        if not isinstance(value, Mapping):
            raise UsageError(f"a request is a JSON object, not {type(value).__name__}")
        if strict and (unknown := sorted(map(str, value.keys() - _FIELDS.keys()))):
            raise UsageError(f"a request has no field {unknown[0][:80]!r}")
        for name, kinds in _FIELDS.items():
            if name in value and (type(value[name]) not in kinds):
                raise UsageError(f"the field {name!r} of a request cannot be {value[name]!r:.80}")
        if "id" not in value:
            raise UsageError("a request has no id")
        attachments = value.get("attachments", [])
        if not all(isinstance(path, str) for path in attachments):
            raise UsageError("attachments are paths")
        return cls(
            id=value["id"],
            text=value.get("text", "").strip(),
            client_id=value.get("clientId"),
            call=Call.read(value["call"]) if "call" in value else None,
            parent=value.get("parent"),
            depth=value.get("depth", 0),
            directory=value.get("directory", "/"),
            agreed=value.get("agreed", False),
            model=value.get("model", True),
            grammar=value.get("grammar", True),
            reason=value.get("reason", False),
            attachments=tuple(attachments),
        )


_FIELDS: Mapping[str, tuple[type[Any], ...]] = {
    "id": (str,),
    "text": (str,),
    "clientId": (str, type(None)),
    "call": (dict,),
    "parent": (str, type(None)),
    "depth": (int,),
    "directory": (str,),
    "agreed": (bool,),
    "model": (bool,),
    "grammar": (bool,),
    "reason": (bool,),
    "attachments": (list,),
}


def check_text(text: str) -> None:
    """Check a sentence: its length and its characters.

    Raises:
        UsageError: it is too long, or has characters that a person does not see.
    """
    if _SURROGATE.search(text):
        raise UsageError("the sentence is not UTF-8")
    if len(text) * 4 > MAX_TEXT_BYTES and len(text.encode()) > MAX_TEXT_BYTES:
        raise UsageError(
            f"the sentence is longer than {MAX_TEXT_BYTES >> 10} KiB; attach a file instead"
        )
    if hidden := _HIDDEN.search(text):
        raise UsageError(
            f"the sentence has the invisible character U+{ord(hidden[0]):04X} at position {hidden.start()}; remove it"
        )


def _is_short_line(text: str) -> bool:
    return 0 < len(text) <= MAX_CLIENT_ID_CHARACTERS and text.isprintable()
