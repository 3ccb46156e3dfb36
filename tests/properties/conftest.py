"""Property tests: as many examples as a quick suite can afford, and no deadlines on a shared
machine.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("quick")
