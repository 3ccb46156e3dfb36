"""A name in a registry becomes an object only when asked for; other distributions are searched only for names that are not ours."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EnvironmentLacks, NotFoundError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def find(name: str, *, built_in: Mapping[str, str], group: str) -> object:
    """Return the object that *name* stands for.

    Args:
        built_in: name to ``module:attribute``.
        group: the entry point group in which other distributions register theirs.
    Raises:
        NotFoundError: nobody registered *name*; the message names the nearest ones. EnvironmentLacks: what somebody registered is broken.
    """
    reference = built_in.get(name)
    if reference is not None:
        module, _, attribute = reference.partition(":")
        found: object = getattr(import_module(module), attribute)
        return found
    points = points_of(group)
    if name in points:
        return loaded(points[name])
    from difflib import get_close_matches

    known = sorted({*built_in, *points})
    near = get_close_matches(name, known, n=3) or known
    raise NotFoundError(
        f"nothing is registered as {name!r} in {group} (known: {', '.join(near)}); check the name or install what provides it"
    )


def loaded(point: EntryPoint) -> object:
    """The object behind an entry of another distribution, whose faults are not ours."""
    try:
        found: object = point.load()
    except (ImportError, AttributeError, NameError, SyntaxError, TypeError, ValueError) as exc:
        whose = f" of the distribution {point.dist.name!r}" if point.dist is not None else ""
        raise EnvironmentLacks(
            f"{point.name!r}{whose} cannot be loaded: {type(exc).__name__} in {point.value}: {exc}", remedy="mend or uninstall it"
        ) from exc
    return found


def names(*, built_in: Mapping[str, str], group: str) -> tuple[str, ...]:
    """Return every registered name, those of other distributions included."""
    return tuple(sorted({*built_in, *points_of(group)}))


@functools.cache
def points_of(group: str) -> Mapping[str, EntryPoint]:
    """What other distributions registered; looked for once in a process, since that takes 35 ms."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)}
