"""Absolute URLs in one spelling, without credentials: scheme, host, port and path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urljoin, urlsplit

from .hosts import NoHost, canonical

PORTS = {"http": 80, "https": 443}
MAX_CHARACTERS = 65_536
PATH_SAFE = "/%:@!$&'()*+,;=-._~"
QUERY_SAFE = PATH_SAFE + "?"


class UrlError(ValueError):
    """The text is not an absolute web address. disguised: see `hosts.NoHost`."""

    def __init__(self, message: str, *, disguised: bool = False) -> None:
        super().__init__(message)
        self.disguised = disguised


LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of a request. host: canonical. path: with the query; ASCII."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def is_in_clear(self) -> bool:
        """Whether a request crosses a network without TLS."""
        return self.scheme != "https" and self.host not in LOOPBACK

    @property
    def authority(self) -> str:
        """Return the value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"

    def with_query(self, pairs: Sequence[tuple[str, str]]) -> Target:
        """Return the target with more pairs in its query."""
        if not pairs:
            return self
        path = f"{self.path}{'&' if '?' in self.path else '?'}{urlencode(pairs)}"
        return Target(scheme=self.scheme, host=self.host, port=self.port, path=path)

    def following(self, location: str) -> Target:
        """Return the target of a redirect from here."""
        try:
            joined = urljoin(self.url, location.strip())
        except ValueError:
            raise UrlError(f"{location!r} is no web address") from None
        return read_target(joined)


def read_target(text: str) -> Target:
    """Read an absolute address.

    Raises:
        UrlError: *text* is not such an address; the message never repeats a password.
    """
    if len(text) > MAX_CHARACTERS:
        raise UrlError(f"the url has {len(text)} characters; {MAX_CHARACTERS} are the most")
    if any(character < " " or character == "\x7f" for character in text):
        raise UrlError("the url holds a line break or another control character; percent-encode it")
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as exc:
        raise UrlError(f"the url is no web address ({exc})") from None
    if parts.scheme not in PORTS:
        scheme = (
            f"{parts.scheme}: addresses are not requested" if parts.scheme else "it has no scheme"
        )
        raise UrlError(f"the url begins with http:// or https://; {scheme}")
    if "@" in parts.netloc:
        raise UrlError(
            'the url holds a user name or a password; put "secret:NAME" into a header instead, as {"Authorization": "Bearer secret:NAME"}',
        )
    if not parts.hostname or port == 0:
        raise UrlError(f"the url names no {'port that there is' if port == 0 else 'host'}")
    try:
        host = canonical(parts.hostname)
    except NoHost as exc:
        raise UrlError(str(exc), disguised=exc.disguised) from None
    path, query = (
        quote(parts.path or "/", PATH_SAFE, errors="replace"),
        quote(parts.query, QUERY_SAFE, errors="replace"),
    )
    return Target(
        scheme=parts.scheme,
        host=host,
        port=port or PORTS[parts.scheme],
        path=f"{path}?{query}" if query else path,
    )
