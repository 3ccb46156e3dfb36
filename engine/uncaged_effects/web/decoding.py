"""Decompression of response bodies, up to a limit of decompressed bytes."""

from __future__ import annotations

import zlib

from uncaged_engine.services.network import WebProblem

GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
BARE_DEFLATE = -zlib.MAX_WBITS
MAX_MEMBERS = 100
"""A gzip file may be several members in a row; more than this are an attack."""
ACCEPTED = "gzip, deflate"


class Decompressor:
    """Decompressor of a body by its ``Content-Encoding``. is_full: the limit is reached."""

    def __init__(self, encoding: str, max_bytes: int) -> None:
        self._encoding = encoding.strip().lower()
        self._packed = self._encoding not in ("", "identity")
        self._max_bytes = max_bytes
        self._unpack = zlib.decompressobj(GZIP_OR_ZLIB)
        self._members = 0
        self._read_bytes = 0
        self._parts: list[bytes] = []
        self._size = 0
        self.is_full = False

    def feed(self, data: bytes) -> None:
        """Add bytes of the body. Bytes over the limit are dropped; once `is_full`, the rest need
        not be read.
        """
        self._read_bytes += len(data)
        if not self._packed:
            self._keep(data)
            return
        if self._encoding not in ("gzip", "x-gzip", "deflate"):
            raise WebProblem(
                "body",
                f"the answer is encoded as {self._encoding!r}, but only {ACCEPTED} were asked for",
            )
        try:
            self._inflate(data)
        except zlib.error as exc:
            raise WebProblem("body", f"the answer is not valid {self._encoding} ({exc})") from None
        if self._read_bytes > self._max_bytes + 65_536:
            self.is_full = True

    def finish(self) -> bytes:
        if self._packed and self._read_bytes and not self.is_full and not self._unpack.eof:
            raise WebProblem("body", f"the answer broke off in the middle of its {self._encoding}")
        return b"".join(self._parts)

    def _inflate(self, data: bytes) -> None:
        while data and not self.is_full:
            if self._unpack.eof:
                if not data.startswith(b"\x1f"):
                    return  # padding after the end
                self._members += 1
                if self._members > MAX_MEMBERS:
                    self.is_full = True
                    return
                self._unpack = zlib.decompressobj(GZIP_OR_ZLIB)
            self._keep(self._inflated(data))
            data = self._unpack.unused_data

    def _inflated(self, data: bytes) -> bytes:
        room = self._max_bytes - self._size + 1
        try:
            return self._unpack.decompress(data, room)
        except zlib.error:
            if self._encoding != "deflate" or self._size or self._read_bytes != len(data):
                raise
            # deflate without its zlib header, as some servers send it
            self._unpack = zlib.decompressobj(BARE_DEFLATE)
            return self._unpack.decompress(data, room)

    def _keep(self, data: bytes) -> None:
        room = self._max_bytes - self._size
        self._parts.append(data[:room])
        self._size += min(len(data), room)
        self.is_full = len(data) > room
