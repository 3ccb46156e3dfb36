"""Errors of the API as HTTP statuses and documents."""

from __future__ import annotations

import errno

from pydantic import ValidationError
from uncaged_bundles.errors import (
    BundleError,
    DamagedError,
    EnvironmentLacks,
    NotFoundError,
    RefusedError,
    SandboxUnavailable,
    StorageError,
    UncagedError,
    UsageError,
    without_thread,
)

from .endpoints import ConflictError

STATUSES: tuple[tuple[type[UncagedError], int, str], ...] = (
    (UsageError, 400, "usage"),
    (NotFoundError, 404, "not-found"),
    (RefusedError, 409, "refused"),
    (BundleError, 422, "bundle"),
    (DamagedError, 422, "damaged"),
    (StorageError, 503, "storage"),
    (EnvironmentLacks, 503, "environment"),
    (SandboxUnavailable, 503, "sandbox"),
    (UncagedError, 422, "failed"),
)


def error_document(kind: str, message: str, **more: object) -> dict[str, object]:
    """Return the body of an error's response."""
    return {"error": {"kind": kind, "message": message, **more}}


def response_of(exc: Exception) -> tuple[int, dict[str, object]]:
    """Return the status and the body for an exception of a handler. The text of one that is not
    ours is not sent: it may hold anything.
    """
    if isinstance(exc, ConflictError):
        return 409, error_document("conflict", str(exc), **exc.document)
    if isinstance(exc, UncagedError):
        status, kind = next(
            (status, kind) for cls, status, kind in STATUSES if isinstance(exc, cls)
        )
        return status, error_document(kind, without_thread(exc), exitCode=exc.exit_code)
    if isinstance(exc, OSError):
        reason = errno.errorcode.get(exc.errno or 0, type(exc).__name__)
        return 503, error_document("storage", f"the machine refused it: {reason}")
    return 500, error_document(
        "bug", f"a fault of the server ({type(exc).__name__}); the other views go on"
    )


def invalid(exc: ValidationError) -> str:
    """Return one line about the first key that is wrong."""
    first = exc.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])
