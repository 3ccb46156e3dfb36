"""Collection of the tests by the configured runner, with imports from the copy alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .wire import Message
from .with_command import with_command
from .with_pytest import with_pytest
from .with_unittest import with_unittest

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FEW = 40
"""Up to this many tests are collected by name; for more, the whole suite is collected."""


def gather(
    settings: Message,
    names: list[str] | None,
    loop: Callable[[Any], None],
    on_collected: Callable[[], None],
    errors: list[Message],
) -> None:
    """Collect and pass the tests to *loop*; before that, fill *errors* and call *on_collected*.

    names: collect only these, as absolute node ids; None: by the settings.
    """
    if settings["runner"] == "pytest":
        with_pytest(
            settings["arguments"] if names is None else [*settings["options"], *names],
            loop,
            on_collected,
            errors,
        )
    elif settings["runner"] == "command":
        with_command(settings["arguments"], Path(settings["root"]), loop, on_collected, errors)
    else:
        with_unittest(Path(settings["cwd"]), loop, on_collected, errors)


def few_names(settings: Message, command: Message) -> list[str] | None:
    """Return the tests of *command* as absolute node ids, if they are few."""
    root, tests = command.get("rootdir"), command["tests"]
    few = settings["runner"] == "pytest" and len(tests) <= FEW and root
    return [f"{root}/{name}" for name in tests] if few else None


def map_paths(origins: dict[str, str], first: list[str]) -> None:
    """Put the directories *first* in front of the import path, and replace directories of the
    original by the copy's.

    origins: directory of the original to the same in the copy.
    """
    own = tuple(prefix + os.sep for prefix in {sys.prefix, sys.base_prefix})

    def origin_of(entry: str) -> str | None:
        found = [
            origin for origin in origins if entry == origin or entry.startswith(origin + os.sep)
        ]
        return None if entry.startswith(own) or not found else max(found, key=len)

    finders = [
        module for name, module in list(sys.modules.items()) if name.startswith("__editable__")
    ]
    mapped = [
        str(Path(path).parent)
        for finder in finders
        for path in getattr(finder, "MAPPING", {}).values()
    ]
    moved = [
        (entry, origin)
        for entry in [*sys.path, *mapped]
        for origin in [origin_of(entry)]
        if origin is not None
    ]
    copied = [origins[origin] + entry[len(origin) :] for entry, origin in moved]
    kept = [entry for entry in sys.path if entry and origin_of(entry) is None]
    sys.path[:] = list(dict.fromkeys([*first, *copied, *kept]))
