"""Types of images by their first bytes; that of other data is not guessed."""

from __future__ import annotations

MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"))
OTHER = "application/octet-stream"


def media_type(data: bytes) -> str:
    """Return the media type of a PNG, JPEG or WebP image, else that of any bytes."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in MAGIC if data.startswith(magic)), OTHER)
