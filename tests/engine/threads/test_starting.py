"""Limits of a new thread that its caller does not name, and flows that are only kept."""

from __future__ import annotations

from typing import Any

import pytest
from testbed.bundles import source
from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.door.preparing import RunOptions
from uncaged_engine.settings.config import Config, LimitSettings
from uncaged_engine.threads.starting import (
    checked_params,
    default_limits,
    require_characters,
)


@pytest.mark.parametrize(
    ("own", "configured", "expected"),
    [(None, None, None), (180, None, 180), (180, 60.0, 60), (180, 600.0, 180), (None, 60.0, 60)],
)
def test_the_shorter_of_two_times_applies(
    own: int | None, configured: float | None, expected: float | None
) -> None:
    """A bundle's own time limit is the default, and config's applies if it is shorter."""
    more: dict[str, Any] = {} if own is None else {"maxSeconds": own}
    bundle = read_bundle(source("timed", "    yield {}\n", policy={}, **more))
    config = Config(limits=LimitSettings(max_seconds=configured))
    assert default_limits(config, "timed", bundle).get("maxSeconds") == expected


def test_text_that_is_none_in_utf_8_is_refused() -> None:
    """JSON can hold half of a surrogate pair, and a journal cannot; the parameter is named."""
    require_characters("ö", {"text": "\U0001f600"})
    cases: list[tuple[str, dict[str, object], str]] = [
        ("\ud800", {}, "the prompt"),
        ("", {"text": ["\udc00"]}, "text"),
    ]
    for prompt, params, name in cases:
        with pytest.raises(UsageError, match=f"{name} has half of a surrogate pair"):
            require_characters(prompt, params)


@pytest.mark.parametrize(("kind", "subject"), [("task", "api"), ("web", "browser")])
def test_a_flow_in_another_language_names_the_function_that_it_needs(
    kind: str, subject: str
) -> None:
    """The refusal to run a kept flow has the signature of its kind, and the command."""
    body = "    raise NotImplementedError\n    yield\n"
    bundle = read_bundle(source("kept", body, kind=kind, policy={}, unsupported="javascript"))
    with pytest.raises(RefusedError, match=rf"execute\({subject}, params\).* edit kept --script"):
        checked_params(bundle, {}, Config(), RunOptions())
