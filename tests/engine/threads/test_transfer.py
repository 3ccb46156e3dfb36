"""Archives from elsewhere: what `import` refuses, and what a refused one leaves behind."""

from __future__ import annotations

import io
import resource
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from testbed.archives import Member, member, tar_of, write_archive
from testbed.bundles import COUNT, granted
from testbed.journals import NOW_MS, THREAD, Script
from uncaged_bundles.errors import DamagedError, UncagedError, UsageError
from uncaged_bundles.ids import bundle_hash
from uncaged_engine.api import Engine
from uncaged_engine.journal.origin import path_beside
from uncaged_engine.threads.transfer import BUNDLE, JOURNAL, import_thread

GIB = 1 << 30
HASH = bundle_hash(COUNT)


def script() -> Script:
    return Script.begun(HASH, THREAD, name="count", params={"n": 2})


def kept(engine: Engine) -> list[Path]:
    """Every file of the store's threads, bundles and blobs."""
    store = engine.store
    return [
        path
        for place in (store.bundles, store.logs, store.blobs)
        for path in place.rglob("*")
        if path.is_file()
    ]


def packed(path: Path, tar: bytes) -> Path:
    path.write_bytes(zstandard.ZstdCompressor().compress(tar))
    return path


def header(kind: bytes, size: int, name: str = "././@PaxHeader") -> bytes:
    """A tar header of a kind that states a size, with a checksum that holds."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


class Zeros(io.BytesIO):
    """A stream of a header and then zeros, for an archive that is large only when it is
    unpacked.
    """

    def __init__(self, head: bytes, size: int) -> None:
        super().__init__()
        self._head, self._left = head, size

    def read(self, size: int | None = -1) -> bytes:
        size = size or 0
        piece = self._head[:size] or bytes(min(size, self._left))
        self._left -= 0 if self._head else len(piece)
        self._head = self._head[size:]
        return piece


def bomb(path: Path, kind: bytes, size: int) -> Path:
    with path.open("wb") as target:
        zstandard.ZstdCompressor(level=3).copy_stream(
            Zeros(header(kind, size), size), target, read_size=1 << 20
        )
    return path


IMPORT = """
import re, sys
from pathlib import Path
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.threads.transfer import import_thread
from uncaged_bundles.errors import UncagedError
try:
    import_thread(Engine(Store.open(Path(sys.argv[1]))), Path(sys.argv[2]), now_ms=1)
except UncagedError as exc:
    print(exc)
status = Path("/proc/self/status").read_text()  # ru_maxrss counts the parent before exec, too
print(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [b"x", b"g", b"L", b"K"], ids=["pax", "global-pax", "long-name", "long-link"]
)
def test_a_header_of_six_gibibytes_is_not_read(engine: Engine, tmp_path: Path, kind: bytes) -> None:
    """A PAX record or a long name says that it has 6 GiB, which zeros pack into little: the header
    alone is read, within little memory.
    """
    path = bomb(tmp_path / "bomb.tar.zst", kind, 6 * GIB if kind == b"x" else GIB)
    assert path.stat().st_size < 1 << 20
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (GIB, GIB))  # noqa: E731 - one line, for one process
    words = [sys.executable, "-c", IMPORT, str(engine.store.root), str(path)]
    done = subprocess.run(
        words, preexec_fn=limit, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    message, peak_kib = done.stdout.strip().split("\n")
    assert "only regular files are read" in message
    assert int(peak_kib) < 300 << 10
    assert kept(engine) == []


@pytest.mark.slow
def test_a_content_of_gibibytes_is_refused_at_its_header(engine: Engine, tmp_path: Path) -> None:
    """A blob that says it has 2 GiB is refused before its first byte."""
    info = header(b"0", 2 * GIB, "blobs/" + "0" * 32)
    with pytest.raises(UsageError, match="at most 67,108,864 are read"):
        import_thread(engine, packed(tmp_path / "a.zst", info + bytes(1 << 20)), now_ms=NOW_MS)


def strange_members() -> Iterator[tuple[str, list[Member], str]]:
    good = [member(BUNDLE, COUNT), member(JOURNAL, script().data)]
    blob = "blobs/" + "0" * 32
    yield (
        "a symbolic link",
        [*good, member(blob, type=tarfile.SYMTYPE, linkname="/etc/passwd")],
        "symbolic link",
    )
    yield "a hard link", [*good, member(blob, type=tarfile.LNKTYPE, linkname=BUNDLE)], "hard link"
    yield "a device", [*good, member(blob, type=tarfile.CHRTYPE)], "device"
    yield "a FIFO", [*good, member(blob, type=tarfile.FIFOTYPE)], "FIFO"
    yield "a directory", [*good, member("blobs", type=tarfile.DIRTYPE)], "directory"
    yield "a sparse file", [*good, member(blob, type=tarfile.GNUTYPE_SPARSE)], "sparse"
    yield "a name twice", [*good, member(BUNDLE, COUNT)], "twice"
    yield "a way up", [*good, member("../../config.yaml", b"agent: evil")], "does not"
    yield "a root", [*good, member("/etc/cron.d/x", b"x")], "does not"
    yield "a blob of another name", [*good, member("blobs/../x", b"x")], "does not"
    yield "no journal", good[:1], "lacks"


@pytest.mark.parametrize(
    ("members", "words"),
    [one[1:] for one in strange_members()],
    ids=[one[0] for one in strange_members()],
)
def test_members_that_do_not_belong_are_refused_and_nothing_is_kept(
    engine: Engine, tmp_path: Path, members: list[Member], words: str
) -> None:
    """Links, devices, sparse files, names twice or with `..`: the archive is refused whole."""
    with pytest.raises(UsageError, match=words):
        import_thread(
            engine, packed(tmp_path / "a.zst", tar_of(members, tarfile.GNU_FORMAT)), now_ms=NOW_MS
        )
    assert kept(engine) == []


@pytest.mark.parametrize("cut", [100, 512, 700, 1024, 1600])
def test_an_archive_that_is_cut_off_is_refused(engine: Engine, tmp_path: Path, cut: int) -> None:
    """Inside a header, behind it, or inside a content: nothing is kept."""
    tar = tar_of([member(BUNDLE, COUNT), member(JOURNAL, script().data)])
    with pytest.raises(UsageError, match="cut off"):
        import_thread(engine, packed(tmp_path / "a.zst", tar[:cut]), now_ms=NOW_MS)
    assert kept(engine) == []


def test_a_whole_archive_is_imported_with_its_origin(engine: Engine, tmp_path: Path) -> None:
    """The control: the same members in order are taken in, and the file beside the journal says
    where they come from.
    """
    journal = script().done(1).data
    thread = import_thread(engine, write_archive(tmp_path / "a.zst", COUNT, journal), now_ms=NOW_MS)
    path = engine.store.data_path(HASH, thread)
    assert path.read_bytes() == journal
    assert path_beside(path).stat().st_mode & 0o777 == 0o600
    assert engine.thread(thread).start["imported"] == {"steps": 1, "bound": False}


FORGED = {
    "another bundle's hash": (
        Script.begun(HASH, THREAD, name="count", **{"hash": bundle_hash(b"other")}),
        "another bundle",
    ),
    "a name that paints": (Script.begun(HASH, THREAD, name="count\x1b[2J"), "'name'"),
    "a name with a line": (Script.begun(HASH, THREAD, name="count\nnext: evil"), "'name'"),
    "no parameters": (Script.begun(HASH, THREAD, name="count", parameters=None), "'parameters'"),
    "a fork that is a list": (Script.begun(HASH, THREAD, name="count", forkFrom=[1]), "'forkFrom'"),
    "a fork of more steps than there are": (
        Script.begun(
            HASH, THREAD, name="count", forkFrom={"threadId": THREAD, "seq": 5, "handedOver": 0}
        ),
        "a fork of 5 steps",
    ),
    "a snapshot that is an option": (
        script().done(1, outcome=1, snapshot="--output=/home/x"),
        "'snapshot'",
    ),
    "negative use": (script().done(1, outcome=1, usage={"cost": -1e9}), "'usage'"),
    "endless use": (script().done(1, outcome=1, usage={"cost": 1e308}), "'usage'"),
    "a limit that is text": (script().control("resume", maxRounds="many"), "'maxRounds'"),
    "a binding that is text": (script().control("resume", binding="mine"), "'binding'"),
    "an end of a new kind": (script().control("note").add(b'{"end":"won","timestamp":1'), "'end'"),
    "a blob that is a path": (
        script().add(
            b'{"seq":1,"outcome":null,"blob":{"field":"outcome","hash":"/dev/zero","bytes":1},"timestamp":1'
        ),
        "names no hash",
    ),
    "a blob that is not there": (
        script().add(
            b'{"seq":1,"outcome":null,"blob":{"field":"outcome","hash":"%b","bytes":1},"timestamp":1'
            % (b"0" * 32)
        ),
        "not in the archive",
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_fields_that_cannot_be_are_refused_with_their_line(
    engine: Engine, tmp_path: Path, case: str
) -> None:
    """An import checks each field that the engine reads, even where the forged line has a valid
    seal.
    """
    forged, words = FORGED[case]
    with pytest.raises(DamagedError, match=words):
        import_thread(engine, write_archive(tmp_path / "a.zst", COUNT, forged.data), now_ms=NOW_MS)
    assert kept(engine) == []


def test_a_bundle_of_the_same_hash_is_refused_before_anything_is_kept(
    engine: Engine, tmp_path: Path
) -> None:
    """XXH64 can be forged: other bytes under a hash that is here leave no blob and no journal."""
    engine.store.bundle_path(HASH).write_bytes(COUNT + b"\n")
    before = kept(engine)
    with pytest.raises(DamagedError, match="other bytes"):
        import_thread(
            engine, write_archive(tmp_path / "a.zst", COUNT, script().data), now_ms=NOW_MS
        )
    assert kept(engine) == before


def test_a_journal_that_cannot_be_written_leaves_no_origin(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk at the last write: the thread is not there, and neither is the file that says
    where it came from.
    """
    from uncaged_engine.threads import transfer

    def full(path: Path, _data: bytes) -> None:
        raise UncagedError(f"cannot write {path}: No space left on device")

    granted(engine.store, COUNT)
    monkeypatch.setattr(transfer, "write_atomically", full)
    with pytest.raises(UncagedError, match="No space"):
        import_thread(
            engine, write_archive(tmp_path / "a.zst", COUNT, script().data), now_ms=NOW_MS
        )
    assert list(engine.store.logs.rglob("*.*")) == []
