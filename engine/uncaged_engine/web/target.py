"""A web address that was read here names a scheme, a host and a port without any doubt, and holds no credentials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urljoin, urlsplit

from .host import canonical
from .problems import WebProblem

PORTS = {"http": 80, "https": 443}
MAX_CHARACTERS = 65_536
PATH_SAFE = "/%:@!$&'()*+,;=-._~"
QUERY_SAFE = PATH_SAFE + "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request goes. host: canonical. path: with the query; ASCII."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """What stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"

    def with_query(self, pairs: Sequence[tuple[str, str]]) -> Target:
        """The same with more in its query."""
        if not pairs:
            return self
        path = f"{self.path}{'&' if '?' in self.path else '?'}{urlencode(pairs)}"
        return Target(scheme=self.scheme, host=self.host, port=self.port, path=path)

    def following(self, location: str) -> Target:
        """Where a redirect from here leads."""
        try:
            joined = urljoin(self.url, location.strip())
        except ValueError:
            raise WebProblem("effect", f"{location!r} is no web address") from None
        return read_target(joined)


def read_target(text: str) -> Target:
    """Read an absolute address.

    Raises:
        WebProblem: kind *effect* or *refused-address*; the message never repeats a password.
    """
    if len(text) > MAX_CHARACTERS:
        raise WebProblem("effect", f"the url has {len(text)} characters; {MAX_CHARACTERS} are the most")
    if any(character < " " or character == "\x7f" for character in text):
        raise WebProblem("effect", "the url holds a line break or another control character; percent-encode it")
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as exc:
        raise WebProblem("effect", f"the url is no web address ({exc})") from None
    if parts.scheme not in PORTS:
        scheme = f"{parts.scheme}: addresses are not requested" if parts.scheme else "it has no scheme"
        raise WebProblem("effect", f"the url begins with http:// or https://; {scheme}")
    if "@" in parts.netloc:
        raise WebProblem(
            "effect",
            'the url holds a user name or a password; put "secret:NAME" into a header instead, as {"Authorization": "Bearer secret:NAME"}',
        )
    if not parts.hostname or port == 0:
        raise WebProblem("effect", f"the url names no {'port that there is' if port == 0 else 'host'}")
    path, query = quote(parts.path or "/", PATH_SAFE, errors="replace"), quote(parts.query, QUERY_SAFE, errors="replace")
    return Target(
        scheme=parts.scheme,
        host=canonical(parts.hostname),
        port=port or PORTS[parts.scheme],
        path=f"{path}?{query}" if query else path,
    )
