"""A request that a busy endpoint turned away is sent again after a while, and one whose answer broke off once more; a kill ends either."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from uncaged_bundles.errors import EnvironmentLacks

from .client import Ask, Heard, ModelClient, Reply, Usage
from .errors import Busy, Cut, ModelFailed

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
LONGEST_ASKED_S = 300.0
"""An endpoint that wants to be left alone for longer than this will not be asked again by itself."""


class Stopped(Exception):
    """Somebody cut the line: a kill, or the time is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often and how long. wait(s): True when it was woken by a kill. is_cut: whether the line was cut on purpose."""

    wait: Callable[[float], bool]
    is_cut: Callable[[], bool]
    spent: Callable[[Usage], None]
    busy_times: int = 3
    cut_times: int = 1

    def send(self, client: ModelClient, ask: Ask, heard: Heard) -> Reply:
        """Send until there is a whole reply.

        Raises:
            Stopped, EnvironmentLacks, ModelFailed.
        """
        busy = cut = 0
        while True:
            try:
                return client.send(ask, heard)
            except Busy as exc:
                busy += 1
                pause_s = exc.retry_after_s if exc.retry_after_s is not None else min(FIRST_PAUSE_S * 2 ** (busy - 1), LONGEST_PAUSE_S)
                if self.is_cut():
                    raise Stopped from None
                if busy > self.busy_times:
                    raise ModelFailed(f"{exc} (asked {busy} times)") from exc
                if pause_s > LONGEST_ASKED_S:
                    raise ModelFailed(f"{exc}; it wants to be asked again in {pause_s:.0f} s at the earliest") from exc
                if self.wait(pause_s):
                    raise Stopped from None
            except Cut as exc:
                self.spent(exc.usage)
                cut += 1
                if self.is_cut():
                    raise Stopped from None
                if cut > self.cut_times:
                    raise ModelFailed(f"{exc} (tried {cut} times)") from exc
            except EnvironmentLacks:
                if self.is_cut():  # while it connected
                    raise Stopped from None
                raise
