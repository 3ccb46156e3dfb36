"""Fault tests need a tracer; without one they say so and are skipped."""

from __future__ import annotations

import pytest
from testbed import straced


@pytest.fixture(scope="session")
def tracer() -> None:
    """Skips the test where processes cannot be traced."""
    if not straced.available():
        pytest.skip("strace is not installed, or may not trace here")
