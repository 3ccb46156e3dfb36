"""Browsers that are installed on the machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.records import dataclass

__all__ = [
    "INSTALL",
    "InstalledBrowser",
    "check_display",
    "find_browser",
    "installed_browsers",
    "usable_browsers",
]

Product = Literal["Chromium", "Chrome", "Edge", "Firefox"]
PROGRAMS: tuple[tuple[Product, tuple[str, ...]], ...] = (
    ("Chromium", ("chromium", "chromium-browser")),
    ("Chrome", ("google-chrome", "google-chrome-stable", "chrome")),
    ("Edge", ("microsoft-edge", "microsoft-edge-stable")),
    ("Firefox", ("firefox", "firefox-esr")),
)
MAC: tuple[tuple[Product, str], ...] = (
    ("Chromium", "/Applications/Chromium.app/Contents/MacOS/Chromium"),
    ("Chrome", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    ("Edge", "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge"),
    ("Firefox", "/Applications/Firefox.app/Contents/MacOS/firefox"),
)
INSTALL = "install Chromium, for example with `apt install chromium`, or name one in config.yaml under browser: program"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledBrowser:
    """A browser of the machine. Firefox is found and cannot be used: it has another protocol."""

    product: Product
    path: Path

    @property
    def usable(self) -> bool:
        """Whether flows can run in it."""
        return self.product != "Firefox"


def installed_browsers(environment: Mapping[str, str]) -> list[InstalledBrowser]:
    """Return the browsers on the search path, the preferred one first."""
    found = []
    for product, names in PROGRAMS:
        paths = (shutil.which(name, path=environment.get("PATH", os.defpath)) for name in names)
        path = next((one for one in paths if one is not None), None)
        if path is not None:
            found.append(InstalledBrowser(product=product, path=Path(path)))
    found += [
        InstalledBrowser(product=product, path=Path(path))
        for product, path in MAC
        if Path(path).exists()
    ]
    return found


def usable_browsers(environment: Mapping[str, str]) -> list[InstalledBrowser]:
    """Return the browsers that flows can run in, the preferred one first."""
    return [browser for browser in installed_browsers(environment) if browser.usable]


def check_display(environment: Mapping[str, str]) -> None:
    """Refuse a browser with a window where none can be shown.

    Raises:
        EnvironmentLacks: there is no display.
    """
    if sys.platform == "linux" and not (
        environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")
    ):
        raise EnvironmentLacks(
            "there is no display to show a browser on",
            remedy="run this in a desktop session, log in with `ssh -X`, or use a browser without a window",
        )


def find_browser(program: str | None, environment: Mapping[str, str]) -> Path:
    """Return the browser that is named in the settings, or the first usable one.

    Raises:
        EnvironmentLacks: there is none.
    """
    if program is not None:
        path = shutil.which(program, path=environment.get("PATH", os.defpath))
        if path is None:
            raise EnvironmentLacks(f"the browser {program} is not installed", remedy=INSTALL)
        return Path(path)
    usable = usable_browsers(environment)
    if not usable:
        others = ", ".join(browser.product for browser in installed_browsers(environment))
        raise EnvironmentLacks(
            "no usable browser is installed" + (f" ({others} cannot be used)" if others else ""),
            remedy=INSTALL,
        )
    return usable[0].path
