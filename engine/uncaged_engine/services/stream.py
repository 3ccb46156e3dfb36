"""Network stream to checked addresses. It loads the HTTP library, so it is imported where a request
is made.
"""

from __future__ import annotations

from ..network.connection import Backend, Lookup, NetworkSession, system_lookup

__all__ = ["Backend", "Lookup", "NetworkSession", "system_lookup"]
