"""Recording of a page's task on one seed of data, and its replay on others: what the replay says,
and what the page was really made to do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_browser.driving.context import DrivenContext
from uncaged_browser.recording.recorder import Recorder
from uncaged_browser.recording.recording import Recording
from uncaged_browser.recording.replaying import RecordingReplay, replay

from .case import PageCase
from .collection import page_case
from .person import Person
from .site import Visit, visiting

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["Attempt", "fresh_context", "record_case", "record_page", "replay_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """done: the page was made to do the task and nothing else. wrong: it was made to do anything
    that the task does not ask for. reported: the replay says that it succeeded. healed: targets
    that were. reason: why it did not succeed.
    """

    number: int
    seed: int
    done: bool
    wrong: bool
    reported: bool
    healed: int
    reason: str
    acts: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Return ``success``, ``wrong success``, ``wrong act``, ``drift`` or ``unnoticed``."""
        if self.reported:
            return "success" if self.done else "wrong success"
        return "wrong act" if self.wrong else "unnoticed success" if self.done else "drift"


async def record_page(
    browser: Browser, number: int, directory: Path, *, seed: int = 0
) -> Recording:
    """Return the recording of the task of a page, with the person's values as its parameters.

    Raises:
        RuntimeError: the person could not do the task.
    """
    case = _case(number, seed, directory)
    async with visiting(case) as visit:
        url = f"{visit.origin}/"
        recording = await record_case(browser, case, url, f"page-{number}", visit.wait)
        if not visit.done:
            raise RuntimeError(f"page {number}, seed {seed}: {visit.acts}, not {case.acts}")
    shown = {
        name: Path(value).name if name == "file" else value for name, value in case.values.items()
    }
    return replace(recording, parameters=shown)


async def record_case(
    browser: Browser,
    case: PageCase,
    url: str,
    name: str,
    wait: Callable[[], Awaitable[None]] | None = None,
) -> Recording:
    """Return the recording of the task of a page that is served at an address.

    Args:
        wait: waits for the end of the task, which a page may reach some time after the last action.
    """
    async with fresh_context(browser) as context:
        page = await context.context.new_page()
        recorder = Recorder(context, name)
        await recorder.start()
        await page.goto(url)
        await case.perform(Person(page))
        if wait is not None:
            await wait()
        return await recorder.stop()


async def replay_page(
    context: DrivenContext,
    recording: Recording,
    number: int,
    seed: int,
    directory: Path,
    *,
    redesign: bool = False,
) -> Attempt:
    """Replay a recording of a page on another seed of data. redesign: of the page as it is after
    the redesign, with healing.
    """
    case = _case(number, seed, directory)
    for page in context.tabs.pages[1:]:
        await page.close()
    async with visiting(case, number if redesign else None) as visit:
        values = {**case.values, "origin": visit.origin}
        done = await replay(recording, context, values, heal="propose" if redesign else "off")
        await visit.wait(1.5 if done.succeeded else 0.2)
        return _attempt(number, seed, visit, done)


@asynccontextmanager
async def fresh_context(browser: Browser) -> AsyncIterator[DrivenContext]:
    """Open a context for the block."""
    context = DrivenContext(await browser.new_context())
    try:
        yield context
    finally:
        await context.aclose()


def _attempt(number: int, seed: int, visit: Visit, done: RecordingReplay) -> Attempt:
    last = done.steps[-1]
    reason = "" if done.succeeded else str(last.problem or last.drift)
    return Attempt(
        number=number,
        seed=seed,
        done=visit.done,
        wrong=visit.wrong,
        reported=done.succeeded,
        healed=sum(len(step.healed) for step in done.steps),
        reason=f"step {len(done.steps)} of {done.total}: {reason}" if reason else "",
        acts=tuple(visit.acts),
    )


def _case(number: int, seed: int, directory: Path) -> PageCase:
    case = page_case(number, seed, directory)
    if "file" in case.values:
        Path(case.values["file"]).write_text("A file.\n", "utf-8")
    return case
