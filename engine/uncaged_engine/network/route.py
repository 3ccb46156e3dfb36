"""Route to a server: host rules, TLS, proxy and certificates.

Proxy and certificates come from the caller's environment variables, never from those of this
process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from .problems import WebProblem
from .rules import HostRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Route of requests. rules: None for a server that the person configured. secure: over TLS.
    proxy: address of an HTTP proxy. ca_file, ca_directory: the caller's certificates.
    """

    rules: HostRules | None
    secure: bool
    proxy: str | None
    ca_file: str | None
    ca_directory: str | None

    @classmethod
    def of(
        cls,
        url: str,
        environment: Mapping[str, str],
        *,
        proxy: str | None,
        rules: HostRules | None = None,
    ) -> Route:
        secure = urlsplit(url).scheme == "https"
        reads_certificates = secure or (proxy is not None and urlsplit(proxy).scheme == "https")
        return cls(
            rules=rules,
            secure=secure,
            proxy=proxy,
            ca_file=environment.get("SSL_CERT_FILE") if reads_certificates else None,
            ca_directory=environment.get("SSL_CERT_DIR") if reads_certificates else None,
        )


def proxy_for(url: str, environment: Mapping[str, str]) -> str | None:
    """Return the proxy that the caller's variables name for *url*; None without one.

    Raises:
        WebProblem: it is no HTTP proxy.
    """
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # missing in typeshed

    parts = urlsplit(url)
    without = environment.get("no_proxy") or environment.get("NO_PROXY")
    if without and proxy_bypass_environment(parts.netloc.rpartition("@")[2], {"no": without}):
        return None
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    proxy = next((environment[name] for name in names if environment.get(name)), None)
    if proxy is not None and urlsplit(proxy).scheme not in ("http", "https"):
        raise WebProblem("connect", "the proxy that the environment names is none of http or https")
    return proxy
