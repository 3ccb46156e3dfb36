"""Check of the files of a TLS certificate and its key, before a server uses them."""

from __future__ import annotations

import ssl
from pathlib import Path

from uncaged_bundles.errors import UsageError

MAX_BYTES = 1 << 20


def check_certificate(certificate: Path, key: Path) -> None:
    """Refuse files that a TLS server cannot use.

    Args:
        certificate, key: PEM files.
    Raises:
        UsageError: one cannot be read or is no PEM file of its kind, the key has a passphrase, or
            it is another certificate's. The message names the file and the next step.
    """
    for path, label, kind in (
        (certificate, b"CERTIFICATE-----", "certificate"),
        (key, b"PRIVATE KEY-----", "private key"),
    ):
        if label not in _read(path):
            raise UsageError(
                f"{path} holds no {kind} in PEM; --tls takes the certificate's file, then its key's"
            )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password=lambda: _refuse_passphrase(key))
    except ssl.SSLError as exc:
        if exc.reason == "KEY_VALUES_MISMATCH":
            raise UsageError(
                f"the key {key} is not that of the certificate {certificate}; name the files of one pair"
            ) from exc
        reason = (exc.reason or "one of them is damaged").lower().replace("_", " ")
        raise UsageError(
            f"{certificate} and {key} cannot be used for TLS: {reason}; write them anew"
        ) from exc


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES)
    except OSError as exc:
        raise UsageError(f"{path} cannot be read: {exc.strerror}; let this user read it") from exc


def _refuse_passphrase(key: Path) -> str:
    raise UsageError(
        f"the key {key} has a passphrase; write it without one: openssl pkey -in {key} -out FILE"
    )
