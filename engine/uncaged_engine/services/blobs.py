"""Contents that a step's record names by hash, kept as files of the store and swept by `prune`.

A handler names a blob of its own by the key ``checkpoint``, ``screenshot`` or ``trace`` of its
outcome's fields.
"""

from __future__ import annotations

from ..journal.blobs import BlobDirectory, Blobs

__all__ = ["BlobDirectory", "Blobs"]
