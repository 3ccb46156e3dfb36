"""HTTP client over streams to checked addresses. It loads the HTTP library, so it is imported where
a request is made.
"""

from __future__ import annotations

from ..network.client import HttpClient

__all__ = ["HttpClient"]
