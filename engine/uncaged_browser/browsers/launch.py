"""Start of a browser with a profile of its own. As root it runs as a user without an account, as
scripts do, so that it keeps its own sandbox.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EngineBug, EnvironmentLacks
from uncaged_bundles.records import dataclass
from uncaged_engine.services.sandbox import BROWSER_UIDS, ScratchUser, scratch_user

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright

__all__ = ["LaunchOptions", "LaunchedBrowser", "launched"]

ARGUMENTS = (
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--no-pings",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
    "--enable-blink-features=WebMCP",
)
"""Options that leave the proxy as the only way out; the policy of WebRTC has two names, by the
browser's version. The last one is for actions that pages register.
"""
UNUSED_FEATURES = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "PreloadTopChromeWebUI")
"""Pages of the browser's own window, which a headless browser does not show. For each context they
took a process and three fifths of its processor time.
"""
WRAPPER = """#!/bin/sh
# Chromium heeds one option of this name, the last
features={features}
for word; do
  shift
  case $word in
  --disable-features=*) features=${{word#*=}}${{features:+,$features}} ;;
  *) set -- "$@" "$word" ;;
  esac
done
exec {command} ${{features:+"--disable-features=$features"}} "$@"
"""
START_TIMEOUT_S = 30.0
NO_DISPLAY = re.compile(r"missing x server|cannot open display|\$DISPLAY", re.IGNORECASE)
NO_SANDBOX = (
    "chromium's own sandbox is not possible here: {reason}; a person can allow a browser without it by"
    " `browser: {{sandbox: off}}` in config.yaml"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """How a browser is started. extensions: the directories of those that are loaded."""

    program: Path
    headless: bool = True
    sandbox: bool = True
    proxy: str | None = None
    extensions: Sequence[Path] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchedBrowser:
    """A running browser. kept: the context of its profile."""

    browser: Browser
    kept: BrowserContext


@asynccontextmanager
async def launched(
    playwright: Playwright, options: LaunchOptions, directory: Path
) -> AsyncIterator[LaunchedBrowser]:
    """Run a browser for the block, and end it with all its processes.

    Args:
        directory: keeps its profile. As root it must be one that other users can enter.
    Raises:
        EnvironmentLacks: it cannot be started.
    """
    from playwright.async_api import Error

    directory.mkdir(mode=0o711, parents=True, exist_ok=True)
    profile = directory / "profile"
    profile.mkdir(mode=0o700, exist_ok=True)
    program = _program(options, directory, profile)
    copies = [directory / f"extension-{number}" for number in range(len(options.extensions))]
    for extension, copy in zip(options.extensions, copies, strict=True):
        shutil.copytree(extension, copy, dirs_exist_ok=True)  # where its user can read it
    options = replace(options, extensions=copies)
    context = await _start(playwright, options, program, profile)
    try:
        if context.browser is None:
            raise EngineBug("a launched browser has no handle")
        yield LaunchedBrowser(browser=context.browser, kept=context)
    finally:
        with suppress(Error):  # it is gone already
            await context.close()


async def _start(
    playwright: Playwright, options: LaunchOptions, program: Path, profile: Path
) -> BrowserContext:
    from playwright.async_api import Error

    arguments = [*ARGUMENTS, *(["--headless=new"] if options.headless else [])]
    left_out = []
    if options.extensions:
        directories = ",".join(map(str, options.extensions))
        arguments += [
            f"--load-extension={directories}",
            f"--disable-extensions-except={directories}",
        ]
        left_out.append("--disable-extensions")
    try:
        return await playwright.chromium.launch_persistent_context(
            profile,
            executable_path=program,
            chromium_sandbox=options.sandbox,
            headless=False,  # the option of the new headless mode is among the arguments
            args=arguments,
            ignore_default_args=left_out,
            timeout=START_TIMEOUT_S * 1000,
            accept_downloads=False,
            proxy=None if options.proxy is None else {"server": options.proxy},
        )
    except Error as exc:
        raise EnvironmentLacks(_reason(exc.message, options)) from None


def _program(options: LaunchOptions, directory: Path, profile: Path) -> Path:
    """Return a script that starts the browser without the features that it does not use."""
    wrapper = directory / "browser"
    command = [*_as_user(directory, profile), str(options.program)]
    features = ",".join(UNUSED_FEATURES if options.headless else ())
    wrapper.write_text(WRAPPER.format(command=shlex.join(command), features=features))
    wrapper.chmod(0o755)
    return wrapper


def _as_user(directory: Path, profile: Path) -> list[str]:
    """Return the command as which root starts a program as a user without an account; nothing for
    another user.
    """
    if os.geteuid() != 0:
        return []
    user = scratch_user(profile, BROWSER_UIDS)
    _give(profile, user)
    home = directory / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    os.chown(home, user.uid, user.gid)
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise EnvironmentLacks(
            "as root a browser is started by setpriv, which is not installed",
            remedy="install util-linux",
        )
    return [
        setpriv,
        f"--reuid={user.uid}",
        f"--regid={user.gid}",
        "--clear-groups",
        "--",
        "/usr/bin/env",
        f"HOME={home}",
        f"XDG_CONFIG_HOME={home}/.config",
        f"XDG_CACHE_HOME={home}/.cache",
    ]


def _give(directory: Path, user: ScratchUser) -> None:
    for parent, directories, files in os.walk(directory):
        os.lchown(parent, user.uid, user.gid)
        for name in (*directories, *files):
            os.lchown(Path(parent, name), user.uid, user.gid)


def _reason(message: str, options: LaunchOptions) -> str:
    if not options.headless and NO_DISPLAY.search(message):
        return f"{options.program} has no display for a window; start it without --shown"
    text = message.partition("\nCall log:")[0].strip()
    if "sandbox" in message.casefold() and options.sandbox:
        line = next((one for one in message.splitlines() if "sandbox" in one.casefold()), text)
        return NO_SANDBOX.format(reason=line.strip()[:300])
    return f"{options.program} cannot be started: {text[:300]}"
