"""A recording: the operations of a web task with all alternatives of their targets, and its JSON.

``{"format": 1, "name", "url", "steps": [operation, …], "leftOut"?, "hosts"?}``
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from uncaged_bundles import shapes
from uncaged_bundles.errors import BundleError
from uncaged_bundles.records import dataclass, replace

from ..operations import Navigate, Open, Operation, read_operation, write_operation

__all__ = [
    "Recording",
    "RecordingError",
    "check_size",
    "checked",
    "hosts_of",
    "hosts_seen",
    "parsed",
    "read_recording",
]

FORMAT = 1
MAX_BYTES = 4 << 20
MAX_STEPS = 1_000
MAX_HOSTS = 10
KEYS = frozenset(
    {"format", "name", "url", "steps", "leftOut", "hosts", "originParameter", "parameters"}
)
MEANINGLESS = frozenset({"hover", "scroll", "close", "zoom"})
"""Operations that change nothing that a task is about."""
RecordingFault = Literal["torn", "newer", "too-large", "foreign-hosts", "malformed", "too-short"]


class RecordingError(BundleError):
    """A recording cannot be used. fault: the reason as a word."""

    def __init__(self, fault: RecordingFault, message: str) -> None:
        super().__init__(message)
        self.fault: RecordingFault = fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """url: the address that it begins at. left_out: what could not be noted or imported, for
    people. hosts: the other hosts, besides the one of the url, that it goes to. origin_parameter:
    a flow made of it can run at another origin. parameters: recorded values by the names that a
    person gave them.
    """

    name: str
    url: str
    steps: tuple[Operation, ...]
    left_out: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    origin_parameter: bool = True
    parameters: Mapping[str, str] = MappingProxyType({})

    @property
    def actions(self) -> tuple[Operation, ...]:
        """Return the steps that mean something: those that act, and pages loaded after the
        first.
        """
        rest = self.steps[1:] if self.steps and isinstance(self.steps[0], Navigate) else self.steps
        return tuple(step for step in rest if step.effect != "reads" and step.do not in MEANINGLESS)

    def check_length(self) -> None:
        """Refuse a recording that is no task.

        Raises:
            RecordingError: it has fewer than two meaningful actions.
        """
        count = len(self.actions)
        if count < 2:
            raise RecordingError(
                "too-short",
                f"recording {self.name!r} has {count} meaningful action{'' if count == 1 else 's'};"
                " a flow needs at least two",
            )

    def with_start(self) -> Recording:
        """Return the recording with the load of its address as the first step."""
        if self.steps and isinstance(self.steps[0], Navigate | Open):
            return self
        return replace(self, steps=(Navigate(url=self.url), *self.steps))

    def document(self) -> dict[str, object]:
        """Return the recording as JSON data."""
        return {
            "format": FORMAT,
            "name": self.name,
            "url": self.url,
            **({"hosts": list(self.hosts)} if self.hosts else {}),
            **({} if self.origin_parameter else {"originParameter": False}),
            **({"parameters": dict(self.parameters)} if self.parameters else {}),
            "steps": [write_operation(step) for step in self.steps],
            **({"leftOut": list(self.left_out)} if self.left_out else {}),
        }

    def text(self) -> str:
        """Return the recording as the text of a file."""
        return json.dumps(self.document(), ensure_ascii=False, indent=2) + "\n"

    def to_recipe(
        self, name: str, parameters: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        """Return a web recipe.

        Args:
            parameters: recorded value by name; None takes `propose_parameters`.
        Raises:
            RecordingError: it has fewer than two meaningful actions, or a parameter is wrong.
        """
        from .recipe import recipe_of

        self.check_length()
        return recipe_of(self, name, parameters)

    def propose_parameters(self) -> dict[str, str]:
        """Return the named values, and those that were typed or selected by a name from the field's
        label.
        """
        from .recipe import proposed_parameters

        return proposed_parameters(self)


def read_recording(text: str) -> Recording:
    """Read a recording.

    Raises:
        RecordingError: it is torn, of a newer format, too large, goes to hosts that it does not
            name, or is malformed.
    """
    value = parsed(text)
    try:
        return _read(value)
    except shapes.ShapeError as exc:
        raise RecordingError("malformed", str(exc)) from None


def parsed(text: str) -> object:
    """Return the JSON data in the text of a file.

    Raises:
        RecordingError: it is too large, torn, or nested too deeply.
    """
    check_size(text)
    try:
        return json.loads(text)
    except RecursionError:
        raise RecordingError("malformed", "the recording is nested too deeply") from None
    except ValueError as exc:  # also a number of thousands of digits
        raise RecordingError("torn", f"the recording is not whole JSON: {exc}") from None


def check_size(text: str) -> None:
    """Refuse the text of a file that is too large.

    Raises:
        RecordingError: it is.
    """
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise RecordingError("too-large", f"a recording has at most {MAX_BYTES >> 20} MiB")


def checked(operation: Operation) -> Operation:
    """Return an operation that was made of a foreign file, read as one of a recording.

    Raises:
        ShapeError: a value of it is wrong.
    """
    return read_operation(write_operation(operation), (operation.do,))


def _read(value: object) -> Recording:
    path: shapes.Path = ("recording",)
    fields = shapes.mapping(value, path)
    number = shapes.whole(shapes.required(fields, "format", path), (*path, "format"))
    if number > FORMAT:
        raise RecordingError(
            "newer", f"the recording has format {number}; the newest known here is {FORMAT}"
        )
    shapes.json_data(value, path)
    shapes.known_keys(fields, KEYS, path)
    listed = shapes.items(shapes.required(fields, "steps", path), (*path, "steps"))
    if len(listed) > MAX_STEPS:
        raise RecordingError(
            "too-large", f"the recording has {len(listed):,} steps; at most {MAX_STEPS:,} are read"
        )
    recording = Recording(
        name=shapes.filled(shapes.required(fields, "name", path), (*path, "name")),
        url=shapes.filled(shapes.required(fields, "url", path), (*path, "url")),
        steps=tuple(
            read_operation(step, (*path, "steps", index)) for index, step in enumerate(listed)
        ),
        left_out=tuple(shapes.texts(fields.get("leftOut", []), (*path, "leftOut"))),
        hosts=tuple(shapes.texts(fields.get("hosts", []), (*path, "hosts"))),
        origin_parameter=shapes.truth(
            fields.get("originParameter", True), (*path, "originParameter")
        ),
        parameters=_parameters(fields.get("parameters", {}), (*path, "parameters")),
    )
    check_hosts(recording)
    return recording


def _parameters(value: object, path: shapes.Path) -> dict[str, str]:
    named = shapes.mapping(value, path)
    return {name: shapes.filled(text, (*path, name)) for name, text in named.items()}


def hosts_of(url: str, steps: tuple[Operation, ...]) -> list[str]:
    """Return the hosts, with a port that is not the usual one, that a task goes to.

    Raises:
        RecordingError: an address is no address of the web.
    """
    urls = [url, *(step.url for step in steps if isinstance(step, Navigate | Open))]
    return list(dict.fromkeys(_host(one) for one in urls if one != "about:blank"))


def hosts_seen(url: str, steps: tuple[Operation, ...]) -> list[str]:
    """Return the hosts that a recorded task goes to, and those that its steps led to.

    Raises:
        RecordingError: an address is no address of the web.
    """
    led = [step.expect.url for step in steps if step.expect is not None and step.expect.url]
    found = [_host(one) for one in led if one.startswith(("http://", "https://"))]
    return list(dict.fromkeys([*hosts_of(url, steps), *found]))


def check_hosts(recording: Recording) -> None:
    """Refuse a recording that goes to a host that it does not name, or to too many.

    Raises:
        RecordingError: it does.
    """
    hosts = hosts_of(recording.url, ()) + hosts_of(recording.url, recording.steps)
    if not hosts:
        raise RecordingError("malformed", f"recording {recording.name!r} loads no address")
    first, *others = hosts
    known = {first, *(host.casefold() for host in recording.hosts)}
    foreign = [host for host in dict.fromkeys(others) if host not in known]
    if foreign:
        raise RecordingError(
            "foreign-hosts",
            f"recording {recording.name!r} is about {first}, but goes to {', '.join(foreign[:5])};"
            ' name them under "hosts" if that is intended',
        )
    if len(known) > MAX_HOSTS:
        raise RecordingError(
            "foreign-hosts",
            f"recording {recording.name!r} names {len(known)} hosts; at most"
            f" {MAX_HOSTS} are followed",
        )


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port = parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise RecordingError("malformed", f"{url[:200]!r} is no address of the web")
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"
