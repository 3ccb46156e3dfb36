"""Operations for the person at the browser: reading aloud with the speech synthesis of the page."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

from uncaged_engine.services.secrets import PREFIX

from ..operations import OpenSettings, ShowStatus, Speak, StopSpeaking
from ..problems import BrowserProblem
from .elements import element_of

if TYPE_CHECKING:
    from playwright.async_api import Page

    from .context import DrivenContext

__all__ = ["settings", "show_status", "speak", "spoken_parts", "stop_speaking"]

MAX_CHARACTERS = 100_000
"""Longest text that is read aloud, about two hours; the rest is cut, and the answer says so."""
PART_CHARACTERS = 1_000
"""Browsers refuse an utterance of more than 32,767 characters."""
STOP_S = 2.0
SPEAK = """async ([parts, limitMs]) => {
  const event = (target, ...names) => new Promise(go =>
    names.forEach(name => target.addEventListener(name, go, {once: true})));
  const within = work => Promise.race([work, new Promise(go => setTimeout(go, limitMs))]);
  const speech = window.speechSynthesis;
  if (!speech.getVoices().length) await within(event(speech, 'voiceschanged'));
  const voices = speech.getVoices().filter(voice => voice.localService);
  const language = document.documentElement.lang.toLowerCase();
  const same = voice => voice.lang.toLowerCase().replace('_', '-');
  const voice = voices.find(one => same(one) === language)
    ?? voices.find(one => language && same(one).split('-')[0] === language.split('-')[0])
    ?? voices.find(one => one.default) ?? voices[0];
  if (!voice) return {voice: ''};
  speech.cancel();
  const utterances = parts.map(part =>
    Object.assign(new SpeechSynthesisUtterance(part), {voice, lang: voice.lang}));
  const begun = event(utterances[0], 'start', 'error');
  for (const one of utterances) speech.speak(one);
  const first = await within(begun);
  if (first?.type !== 'start') speech.cancel();
  return {voice: voice.name, error: first ? first.error ?? '' : 'it did not begin in time'};
}"""
"""Voices of a server are left out: the text of the page would be sent there."""
SPEAKS = "() => speechSynthesis.speaking || speechSynthesis.pending"
STOP = "() => speechSynthesis.cancel()"
NO_VOICE = (
    "this browser has no voice of its own to read with (voices of a server are not used); Chrome on macOS and"
    " Windows has some, elsewhere an extension can add one"
)
NO_SETTINGS = (
    "this browser has no extension whose settings could be shown; those of the browser are in config.yaml"
    " (docs/browser.md), and `uncaged-workflow browser external on` uses your own browser"
)


def spoken_parts(text: str, secrets: Mapping[str, str]) -> list[str]:
    """Return a text as the parts that are read one after the other: its lines, and long ones cut
    between words.

    Args:
        secrets: names of values that are not read, by the value.
    """
    for value in sorted(secrets, key=len, reverse=True):  # one may be part of another
        text = text.replace(value, f"{PREFIX}{secrets[value]}")
    return [
        part
        for line in text[:MAX_CHARACTERS].splitlines()
        for part in textwrap.wrap(line, PART_CHARACTERS, break_on_hyphens=False)
    ]


async def speak(context: DrivenContext, operation: Speak) -> dict[str, object]:
    """Begin to read the page or an element aloud. Secrets that were typed are not read.

    Raises:
        BrowserProblem: there is no text or no voice, or the voice fails.
    """
    page = context.tabs.page(operation.tab)
    if operation.target is None:
        text = await page.locator("body").inner_text(timeout=operation.timeout_s * 1000)
    else:
        found = await element_of(context, page, operation)
        text = await found.locator.inner_text(timeout=operation.timeout_s * 1000)
    parts = spoken_parts(text, context.secret_values)
    if not parts:
        raise BrowserProblem("refused", "there is no text that could be read aloud")
    begun = await page.evaluate(SPEAK, [parts, operation.timeout_s * 1000])
    if not begun["voice"]:
        raise BrowserProblem("unsupported", NO_VOICE)
    if begun["error"]:
        raise BrowserProblem("refused", f"the voice {begun['voice']}: {begun['error']}")
    cut = {"truncated": True} if len(text) > MAX_CHARACTERS else {}
    characters = sum(map(len, parts))
    return {"url": page.url, "voice": begun["voice"], "characters": characters, **cut}


async def stop_speaking(context: DrivenContext, operation: StopSpeaking) -> dict[str, object]:
    """Stop reading aloud: the number of tabs that did, and those that did not answer."""
    pages = [page for page in context.tabs.pages if not context.tabs.has_crashed(page)]
    if operation.tab is not None:
        pages = [context.tabs.page(operation.tab)]
    # all are asked before one is stopped: a page without an address stops the others, too
    answers = await asyncio.gather(*(_evaluated(page, SPEAKS) for page in pages))
    asked = list(zip(pages, answers, strict=True))
    speaking = [page for page, answer in asked if answer is True]
    await asyncio.gather(*(_evaluated(page, STOP) for page in speaking))
    silent = [context.tabs.id_of(page) for page, answer in asked if answer is None]
    return {"stopped": len(speaking), **({"silent": silent} if silent else {})}


async def _evaluated(page: Page, script: str) -> object:
    """Return what a script returns in a page; None if the page does not answer."""
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(STOP_S):
            return await page.evaluate(script)
    except (Error, TimeoutError):
        return None


async def show_status(context: DrivenContext, operation: ShowStatus) -> dict[str, object]:
    """Answer that nothing was shown: only the extension has a button."""
    del context, operation
    return {"shown": False}


async def settings(context: DrivenContext, operation: OpenSettings) -> dict[str, object]:
    """Refuse: only the extension has a page of settings."""
    del context, operation
    raise BrowserProblem("unsupported", NO_SETTINGS)
