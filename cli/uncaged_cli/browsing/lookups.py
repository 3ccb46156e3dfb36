"""The verbs `browser search` and `browser resolver`: searches, and pages by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from uncaged_browser.knowledge.index import knowledge_path
from uncaged_browser.lookup.performing import looked_up
from uncaged_browser.lookup.providers import provider_named, providers_of, search_address
from uncaged_browser.lookup.requests import FindPage, SearchWeb
from uncaged_engine.settings.editing import change_setting

from ..display import json_output
from ..display.output import result
from ..inputs.options import json_option
from ..runtime import open_engine
from .session import opened_session, performed, session_option
from .switches import show_rows

if TYPE_CHECKING:
    from uncaged_engine.api import Engine

__all__ = ["opened_by_name", "search"]

LOAD_S = 30.0


@click.command("search", short_help="Search the web, or choose the search provider.")
@click.argument("words", nargs=-1, metavar="TEXT | list | set NAME TEMPLATE | default NAME")
@click.option(
    "--provider", metavar="NAME", help="Search with this provider instead of the default one."
)
@session_option
@json_option
def search(words: tuple[str, ...], provider: str | None, name: str, as_json: bool) -> None:
    """Search the web for TEXT and show the results in the current tab.

    `list` lists the search providers; `set` adds one, or changes its address template, in which
    {text} is the place of the words; `default` chooses the one that searches.

    \b
    Examples:
      uncaged-workflow browser search "otters and kelp"
      uncaged-workflow browser search set house 'https://search.example.org/?q={text}'
    """
    engine = open_engine(of_machine=True)
    match words:
        case () | ("list",):
            pass
        case ("set", chosen, template):
            _set_provider(engine, chosen, template)
        case ("default", chosen):
            _choose_provider(engine, chosen)
        case _:
            wanted = SearchWeb(words=" ".join(words), provider=provider, timeout_s=LOAD_S)
            # a search that cannot be made starts no session
            search_address(wanted.words, engine.config.browser, provider)
            with opened_session(name) as client:
                tab = looked_up(
                    wanted,
                    engine.config.browser,
                    None,
                    lambda body, _: performed(client, body),
                )
            if as_json:
                json_output.document({"results": tab})
            else:
                result(f"tab {tab['tab']}: {tab['title'] or tab['url']}")
            return
    settings = engine.config.browser
    known = providers_of(settings)
    if as_json:
        json_output.document({"default": settings.search, "providers": known})
        return
    show_rows(
        ("provider", "default", "address"),
        [(one, "yes" if one == settings.search else "", known[one]) for one in known],
    )


def opened_by_name(engine: Engine, session: str, name: str) -> dict[str, Any]:
    """Open the page that a name means in a new tab of a session.

    Raises:
        NotFoundError: no resolver found it.
    """
    wanted = FindPage(words=name, timeout_s=LOAD_S)
    history = knowledge_path(engine.store)
    with opened_session(session) as client:
        return looked_up(
            wanted, engine.config.browser, history, lambda body, _: performed(client, body)
        )


def _set_provider(engine: Engine, name: str, template: str) -> None:
    change_setting(
        engine.store.config_path,
        "providers",
        lambda config: {**config.browser.providers, name: template},
        section="browser",
    )


def _choose_provider(engine: Engine, name: str) -> None:
    provider_named(name, engine.config.browser)
    change_setting(engine.store.config_path, "search", lambda _: name, section="browser")
