"""A thread as a pytest file: it replays the thread from files beside it, without a store, and
performs nothing.

``test_x.py`` has the directory ``test_x`` with ``bundle.py``, ``journal.data.jsonl`` and the blobs
that the journal names. The test file holds the hash of the bundle and the digest of the journal.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

from uncaged_bundles.errors import (
    BundleError,
    DamagedError,
    EnvironmentLacks,
    RefusedError,
    UsageError,
    os_problem,
)
from uncaged_bundles.ids import parse_thread_id
from uncaged_bundles.storage.files import write_atomically
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Engine
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.registry import KNOWN
from uncaged_engine.services.replaying import (
    ThreadFiles,
    Verification,
    read_files,
    recover_strictly,
    replay_files,
)
from uncaged_engine.services.secrets import MIN_CHARACTERS, secret_names, secret_value

__all__ = ["WrittenTest", "default_name", "replay_past_run", "write_test"]

MAX_BYTES = 16 << 20
BUNDLE = "bundle.py"
JOURNAL = "journal.data.jsonl"
BLOBS = "blobs"
DEADLINE_S = 60.0
"""Time limit of one computation of the bundle; a machine of tests may be slow."""
ENDED = frozenset({"completed", "failed", "killed", "limit"})
MODULE = '''\
"""A past run of the flow {flow}: thread {thread}, {steps}, {status}.

Its bundle and journal are in the directory beside this file. Nothing is performed.
"""

from pathlib import Path

from uncaged_capture.as_test import replay_past_run

FILES = Path(__file__).with_suffix("")
THREAD = "{thread}"
BUNDLE = "{bundle}"
DIGEST = "{digest}"


def test_{function}() -> None:
    """The recorded code with the recorded outcomes gives the recorded journal."""
    found = replay_past_run(FILES, thread=THREAD, bundle=BUNDLE, digest=DIGEST)
    assert found.ok, found.message
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTest:
    """A test file with its directory. size_bytes: of all files."""

    file: Path
    directory: Path
    size_bytes: int


def default_name(engine: Engine, text: str) -> str:
    """Return the default name of a thread's test file."""
    summary = engine.thread(text).summary
    return f"test_{_identifier(summary.name)}_{summary.thread_id.lower()}.py"


def write_test(
    engine: Engine, text: str, target: Path, environment: Mapping[str, str], *, force: bool
) -> WrittenTest:
    """Write the test of a thread, and the directory beside it.

    Args:
        environment: where secrets are looked up, of which none may be in a file.
        force: replace an existing test.
    Raises:
        UsageError: pytest would not collect a file of this name. RefusedError: the thread has not
            ended or is not replayed, a file exists or is too large, or a secret is in one.
    """
    if not re.fullmatch(r"test_\w+\.py", target.name, re.ASCII):
        raise UsageError(f"{target.name!r} is no name of a test; pytest collects test_NAME.py")
    summary = engine.thread(text).summary
    if summary.status not in ENDED:
        raise RefusedError(f"thread {summary.thread_id} is {summary.status}; a test needs its end")
    files = read_files(engine, text)
    if files.bundle.trusted:
        raise RefusedError(f"bundle {files.bundle.hash} is trusted, so no thread of it is replayed")
    contents = dict(_contents(files))
    size_bytes = sum(map(len, contents.values()))
    if size_bytes > MAX_BYTES:
        raise RefusedError(
            f"thread {files.thread_id} has {size_bytes:,} bytes, and a test at most {MAX_BYTES:,}; `export` writes an archive"
        )
    _refuse_secrets(engine, contents, environment)
    directory = target.with_suffix("")
    existing = next((path for path in (target, directory) if os.path.lexists(path)), None)
    if existing is not None and not force:
        raise RefusedError(f"{str(existing)!r} already exists; choose another name or add --force")
    steps = len(files.history.steps)
    module = MODULE.format(
        flow=_identifier(summary.name),
        thread=files.thread_id,
        steps=f"{steps} step{'' if steps == 1 else 's'}",
        status=summary.status,
        bundle=files.bundle.hash,
        digest=_digest(files.journal),
        function=target.stem.removeprefix("test_"),
    )
    _write(directory, contents)
    write_atomically(target.absolute(), module.encode())
    target.chmod(0o644)
    return WrittenTest(file=target, directory=directory, size_bytes=size_bytes)


def replay_past_run(directory: Path, *, thread: str, bundle: str, digest: str) -> Verification:
    """Replay the bundle of a directory over its journal in the sandbox. A wrong file is a result
    that is not ok.

    Args:
        thread, bundle: id and hash that the journal was written with. digest: of the journal.
    Raises:
        SandboxUnavailable: there is no sandbox on this machine.
    """
    try:
        found = read_bundle(directory.joinpath(BUNDLE).read_bytes(), KNOWN)
        journal = directory.joinpath(JOURNAL).read_bytes()
    except (OSError, BundleError) as exc:
        return _not_ok(f"{directory}: {exc}")
    if found.hash != bundle:
        return _not_ok(f"{directory / BUNDLE} is {found.hash}; the journal is one of {bundle}")
    if _digest(journal) != digest:
        return _not_ok(f"{directory / JOURNAL} is not the journal that was exported")
    history = recover_strictly(journal, found.hash, parse_thread_id(thread))
    try:
        return replay_files(
            found,
            journal,
            history,
            BlobDirectory(directory / BLOBS),
            prefer="auto",
            deadline_s=DEADLINE_S,
        )
    except DamagedError as exc:
        return _not_ok(f"{directory}: {exc}")


def _contents(files: ThreadFiles) -> Iterator[tuple[str, bytes]]:
    yield BUNDLE, files.bundle.source
    yield JOURNAL, files.journal
    for name, data in files.blobs.items():
        yield f"{BLOBS}/{name}", data


def _write(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Replace a directory by one with these files, once all of them are written."""
    is_there = directory.is_dir() and not directory.is_symlink()
    if is_there and not directory.joinpath(JOURNAL).is_file():
        raise RefusedError(f"{str(directory)!r} holds no past run; choose another name")
    try:
        with TemporaryDirectory(prefix=f".{directory.name}-", dir=directory.parent) as place:
            fresh = Path(place) / "new"
            fresh.mkdir()
            for name, data in contents.items():
                path = fresh / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(data)
            _exchange(directory, fresh, Path(place) / "old" if is_there else None)
    except OSError as exc:
        raise UsageError(os_problem(exc, directory)) from exc


def _exchange(directory: Path, fresh: Path, old: Path | None) -> None:
    """Move a directory to its place; the former one, if any, to *old*, or back if that fails."""
    if old is None:
        fresh.rename(directory)
        return
    directory.rename(old)
    # crash here: the former directory is in the temporary one, which stays
    try:
        fresh.rename(directory)
    except OSError:
        old.rename(directory)
        raise


def _refuse_secrets(
    engine: Engine, contents: Mapping[str, bytes], environment: Mapping[str, str]
) -> None:
    """Refuse files with the value of a secret of this machine, in any of its spellings."""
    for name in secret_names(engine.config):
        try:
            value = secret_value(name, engine.config, environment)
        except EnvironmentLacks:
            continue
        if len(value) < MIN_CHARACTERS:
            continue
        spellings = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        for file, data in contents.items():
            if any(spelling.encode() in data for spelling in spellings):
                raise RefusedError(f"the value of secret:{name} is in {file}; no test is written")


def _digest(journal: bytes) -> str:
    return blake2b(journal, digest_size=16).hexdigest()


def _not_ok(message: str) -> Verification:
    return Verification(ok=False, steps=0, mechanism="none", message=message)


def _identifier(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "flow"
