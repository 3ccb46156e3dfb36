"""Texts of errors."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import EnvironmentLacks, UsageError, without_thread


@pytest.mark.parametrize(
    ("problem", "said", "shortened"),
    [
        (
            EnvironmentLacks("no git", remedy="install it"),
            "; install it, then resume",
            "; install it",
        ),
        (EnvironmentLacks("no git"), "no git", "no git"),
        (UsageError("no flow, then resume"), "then resume", "then resume"),
        (OSError("closed"), "closed", "closed"),
    ],
)
def test_advice_to_resume_is_for_threads_alone(
    problem: Exception, said: str, shortened: str
) -> None:
    """A command that has no thread gives only the remedy of what the machine lacks."""
    assert str(problem).endswith(said)
    assert without_thread(problem).endswith(shortened)
