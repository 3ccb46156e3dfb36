"""Pages of our own, recorded on one seed of data and replayed on others, redesigned, too."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .bench import Bench, Figure
from .pages.collection import COUNT, template_of
from .pages.trial import Attempt, fresh_context, record_page, replay_page
from .table import Row
from .web_bench import bare_browser

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["FIGURES", "sampled_pages", "try_pages"]

SEEDS = tuple(range(1, 10))
AT_ONCE = 3
SHARE = 10


def sampled_pages() -> tuple[int, ...]:
    """Return a tenth of the pages: each of its numbers has another template."""
    return tuple(range(0, COUNT, SHARE))


async def try_pages(
    browser: Browser,
    numbers: Sequence[int],
    seeds: Sequence[int],
    directory: Path,
    *,
    redesign: bool = False,
) -> list[Attempt]:
    """Record each page on seed 0 and replay it on other seeds, perhaps redesigned; several pages at
    once.
    """
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> list[Attempt]:
        async with turn:
            recording = await record_page(browser, number, directory)
            async with fresh_context(browser) as context:
                return [
                    await replay_page(
                        context, recording, number, seed, directory, redesign=redesign
                    )
                    for seed in seeds
                ]

    return [attempt for found in await asyncio.gather(*map(one, numbers)) for attempt in found]


def pages(bench: Bench) -> Sequence[Row]:
    """Count what replays do on other data. Quick: a tenth of the pages on one other seed."""
    found = _tried(bench, redesign=False)
    counts = Counter(attempt.verdict for attempt in found)
    return (
        Row(
            figure="web-pages",
            title=f"of {len(found):,} replays on other data, not successful",
            values=(100 - 100 * counts["success"] / len(found),),
            unit="%",
            baseline=_listed(counts),
            reach=5,
            missed="the pages are listed above",
        ),
        Row(
            figure="web-pages",
            title="of these, successes that are none",
            values=(counts["wrong success"],),
            unit="",
            baseline="the page reports what it was made to do",
            reach=0,
            exact=True,
            missed="an element was taken for another one",
        ),
    )


def redesigns(bench: Bench) -> Sequence[Row]:
    """Count what replays with healing do on redesigned pages with other data."""
    found = _tried(bench, redesign=True)
    counts = Counter(attempt.verdict for attempt in found)
    healed = sum(attempt.healed > 0 for attempt in found if attempt.verdict == "success")
    return (
        Row(
            figure="web-redesign",
            title=f"of {len(found):,} replays on redesigned pages, not successful",
            values=(100 - 100 * counts["success"] / len(found),),
            unit="%",
            baseline=f"{_listed(counts)}; {healed} of the successes by healing",
            reach=20,
            missed="the pages are listed above",
        ),
        Row(
            figure="web-redesign",
            title="of these, with an act that the task does not ask for, or successes that are none",
            values=(sum(one.wrong or one.verdict == "wrong success" for one in found),),
            unit="",
            baseline="the page reports what it was made to do",
            reach=0,
            exact=True,
            missed="an element was taken for another one",
        ),
    )


def _tried(bench: Bench, *, redesign: bool) -> list[Attempt]:
    numbers = sampled_pages() if bench.quick else range(COUNT)
    seeds = SEEDS[:1] if bench.quick or redesign else SEEDS
    with bench.directory() as directory, bare_browser() as bare:
        found = bare.run(try_pages(bare.browser, numbers, seeds, directory, redesign=redesign))
    for attempt in found:
        if attempt.verdict != "success":
            sys.stderr.write(
                f"page {attempt.number} ({template_of(attempt.number)}), seed {attempt.seed}:"
                f" {attempt.verdict}: {attempt.reason}\n"
            )
    return found


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


FIGURES = (
    Figure(name="web-pages", measure=pages),
    Figure(name="web-redesign", measure=redesigns),
)
