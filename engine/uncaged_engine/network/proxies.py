"""Choice of an HTTP proxy from the caller's environment variables, never from those of this
process.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(url: str, environment: Mapping[str, str]) -> str | None:
    """Return the proxy that the caller's variables name for *url*; None without one."""
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]  # missing in typeshed

    parts = urlsplit(url)
    without = environment.get("no_proxy") or environment.get("NO_PROXY")
    if without and proxy_bypass_environment(parts.netloc.rpartition("@")[2], {"no": without}):
        return None
    names = (f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    return next((environment[name] for name in names if environment.get(name)), None)
