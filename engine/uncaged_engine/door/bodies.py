"""Bodies of effects as annotated dataclasses: read by `uncaged_bundles.fields`, with one form of
message for all kinds.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeVar

from uncaged_bundles import fields, shapes

from .outcomes import Failure

__all__ = ["ABSENT", "Absent", "Seconds", "read_body"]

_Body = TypeVar("_Body")
Seconds = Annotated[float, shapes.positive] | None


class Absent:
    """The type of `ABSENT`."""


ABSENT: Final = Absent()
"""The default of a key whose every JSON value, null too, means something."""


def read_body(kind: str, cls: type[_Body], body: object) -> _Body | Failure:
    """Return what a bundle yielded under *kind* as an instance of *cls*, or the failure that names
    the kind and the wrong key.
    """
    try:
        return fields.read(cls, body, (kind,))
    except shapes.ShapeError as exc:
        return Failure.of("effect", str(exc))
