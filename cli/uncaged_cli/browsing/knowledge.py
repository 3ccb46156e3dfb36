"""The verb `browser knowledge`: pages in the full-text index."""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import click
from uncaged_browser.knowledge.index import KnowledgeIndex, knowledge_path
from uncaged_browser.knowledge.pages import read_page
from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError
from uncaged_engine.settings.editing import change_setting

from ..display import json_output
from ..display.output import Piece, Styled, next_step, note, result, table, text_width
from ..display.table import render
from ..inputs.options import json_option
from ..runtime import now_ms, open_engine
from .session import performed, running_session, session_option

__all__ = ["command"]

HEADERS = ("host", "source", "time", "page")
private_option = click.option(
    "--private",
    is_flag=True,
    help="Also pages of this machine and its network, and pages with a field for a password.",
)


@click.group("knowledge", no_args_is_help=True)
def command() -> None:
    """Index pages that you read, for `browser ask`.

    Nothing is indexed unless you add it, import it, or switch its host on. The index stays on this
    machine.
    """


@command.command("add", short_help="Index the page of a tab.")
@click.option("--tab", metavar="TAB", help="Its number; without it, the current one.")
@click.option("--again", is_flag=True, help="Also if it was indexed within the last ten minutes.")
@private_option
@session_option
@json_option
def add(tab: str | None, again: bool, private: bool, name: str, as_json: bool) -> None:
    """Index the text, title and headings of the page in a tab of a session."""
    engine = open_engine(of_machine=True)
    with running_session(name) as client:
        page = read_page(lambda operation: performed(client, operation), now_ms(), tab)
    if page.private and not private:
        raise RefusedError(f"{page.url} is left out: {page.private}; --private adds it")
    added = KnowledgeIndex(knowledge_path(engine.store)).add(page, again=again)
    if as_json:
        json_output.document({"url": page.url, "title": page.title, "added": added})
    elif added:
        result(f"indexed {page.title or page.url}")
        next_step('uncaged-workflow browser ask "…" --all')
    else:
        note(f"{page.url} was indexed within the last ten minutes; --again indexes it once more")


@command.command("import", short_help="Index bookmarks and history of another browser.")
@click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
@private_option
@json_option
def import_pages(path: Path, private: bool, as_json: bool) -> None:
    """Index addresses and titles of FILE: the file Bookmarks or History of a profile of Chrome or
    Chromium, the profile's directory, or bookmarks that a browser exported as HTML.
    """
    from uncaged_browser.knowledge.imports import imported_pages

    found = imported_pages(path)
    wanted = [(page, source) for page, source in found if private or not page.private]
    changed = KnowledgeIndex(knowledge_path(open_engine(of_machine=True).store)).add_all(wanted)
    left_out = len(found) - len(wanted)
    if as_json:
        json_output.document({"found": len(found), "indexed": changed, "leftOut": left_out})
        return
    result(f"{changed:,} of {len(found):,} pages indexed")
    if left_out:
        note(
            f"{left_out:,} pages of this machine and its network are left out; --private adds them"
        )


@command.command("list", short_help="List the indexed pages.")
@json_option
def list_pages(as_json: bool) -> None:
    """List the indexed pages, the newest first, and the hosts whose pages are indexed when they are
    opened.
    """
    engine = open_engine(of_machine=True)
    pages = KnowledgeIndex(knowledge_path(engine.store)).pages()
    hosts = engine.config.browser.knowledge
    if as_json:
        json_output.document({"hosts": list(hosts), "pages": [page.document() for page in pages]})
        return
    rows: list[list[Piece]] = [
        [Styled(page.host, "cyan"), page.source, _day(page.time_ms), page.title or page.url]
        for page in pages
    ]
    if rows:
        table(render(HEADERS, rows, width=text_width(sys.stdout)))
    counts = Counter(page.source for page in pages)
    note(
        f"{len(pages):,} page{'' if len(pages) == 1 else 's'}"
        + "".join(f", {n:,} of source {source}" for source, n in counts.items())
    )
    if hosts:
        note(f"indexed when they are opened: pages of {', '.join(hosts)}")


@command.command("on", short_help="Index the pages of a host when a session opens them.")
@click.argument("host")
@json_option
def switch_on(host: str, as_json: bool) -> None:
    """Index each page of HOST, and of names below it, when a session opens it in its own tabs;
    pages with a field for a password are left out.
    """
    _switch(host, on=True, as_json=as_json)


@command.command("off", short_help="Do not index the pages of a host any more.")
@click.argument("host")
@json_option
def switch_off(host: str, as_json: bool) -> None:
    """Do not index pages of HOST any more when they are opened; those that are indexed stay."""
    _switch(host, on=False, as_json=as_json)


@command.command("forget", short_help="Remove the pages of a host from the index.")
@click.argument("host")
@json_option
def forget(host: str, as_json: bool) -> None:
    """Remove the pages of HOST, and of names below it, from the index."""
    removed = KnowledgeIndex(knowledge_path(open_engine(of_machine=True).store)).forget(
        host.casefold()
    )
    if not removed:
        raise NotFoundError(
            f"no page of {host!r} is indexed; see: uncaged-workflow browser knowledge list"
        )
    _report_removed(removed, as_json=as_json)


@command.command("clear", short_help="Remove all pages from the index.")
@json_option
def clear(as_json: bool) -> None:
    """Remove all pages from the index, with the history that sessions noted."""
    removed = KnowledgeIndex(knowledge_path(open_engine(of_machine=True).store)).forget(None)
    _report_removed(removed, as_json=as_json)


def _report_removed(removed: int, *, as_json: bool) -> None:
    if as_json:
        json_output.document({"removed": removed})
    else:
        result(f"{removed:,} page{'' if removed == 1 else 's'} removed")


def _switch(host: str, *, on: bool, as_json: bool) -> None:
    engine = open_engine(of_machine=True)
    wanted = host.casefold()
    if not wanted.strip() or any(mark in wanted for mark in "/ *"):
        raise UsageError(f"{host[:80]!r} is no host; write a name such as docs.example.org")
    if not on and wanted not in engine.config.browser.knowledge:
        raise NotFoundError(f"{host!r} is not switched on")
    change_setting(
        engine.store.config_path,
        "knowledge",
        lambda config: [
            *(one for one in config.browser.knowledge if one != wanted),
            *([wanted] if on else []),
        ],
        section="browser",
    )
    if as_json:
        json_output.document({"hosts": list(engine.config.browser.knowledge)})
    else:
        result(
            f"pages of {wanted} are {'indexed when they are opened' if on else 'not indexed any more'}"
        )


def _day(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(time_ms / 1000)) if time_ms else ""
