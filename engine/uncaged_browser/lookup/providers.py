"""Search providers: address templates, in which ``{text}`` is the place of the words."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_engine.services.settings import TEXT_PLACE, BrowserSettings

__all__ = [
    "PROVIDERS",
    "filled_template",
    "provider_named",
    "providers_of",
    "search_address",
    "shows_results",
]

PROVIDERS: Mapping[str, str] = {
    "bing": "https://www.bing.com/search?q={text}",
    "brave": "https://search.brave.com/search?q={text}",
    "duckduckgo": "https://html.duckduckgo.com/html/?q={text}",
    "google": "https://www.google.com/search?q={text}",
    "yahoo": "https://search.yahoo.com/search?p={text}",
}
"""The usual providers; those of config.yaml come before one of the same name."""
MAX_WORDS_CHARACTERS = 500


def providers_of(settings: BrowserSettings) -> dict[str, str]:
    """Return the address templates of all search providers by name."""
    return dict(sorted({**PROVIDERS, **settings.providers}.items()))


def provider_named(name: str, settings: BrowserSettings) -> str:
    """Return the address template of a search provider.

    Raises:
        NotFoundError: there is none of that name.
    """
    known = providers_of(settings)
    if name not in known:
        raise NotFoundError(
            f"there is no search provider {name[:80]!r}; there are: {', '.join(known)}"
        )
    return known[name]


def search_address(words: str, settings: BrowserSettings, provider: str | None = None) -> str:
    """Return the address of a search.

    Args:
        provider: None is the default one.
    Raises:
        NotFoundError: there is no provider of that name. UsageError: the words are empty or too
            long.
    """
    return filled_template(provider_named(provider or settings.search, settings), words)


def shows_results(url: str, settings: BrowserSettings) -> bool:
    """Whether an address is that of a page of results, which is no page that a name means."""
    heads = (template.partition(TEXT_PLACE)[0] for template in providers_of(settings).values())
    return any(
        url.startswith(head) for head in heads if not head.endswith("/") or head.count("/") > 3
    )


def filled_template(template: str, words: str) -> str:
    """Return the address of a template for some words.

    Raises:
        UsageError: the words are empty or too long.
    """
    text = " ".join(words.split())
    if not text or len(text) > MAX_WORDS_CHARACTERS:
        raise UsageError(
            f"give 1 to {MAX_WORDS_CHARACTERS} characters to look for, not {len(text)}"
        )
    return template.replace(TEXT_PLACE, quote(text, safe=""))
