"""Fresh workspaces of proofs, and how their files differ from those of a step."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from testbed.repositories import git, make_repository, write
from uncaged_bundles.errors import DamagedError, NotFoundError
from uncaged_capture.workspaces import FreshWorkspace, StepFiles, files_of, members_of


def archive(time: int, content: bytes) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as stream:
        member = tarfile.TarInfo("a")
        member.size, member.mtime = len(content), time
        stream.addfile(member, io.BytesIO(content))
    return data.getvalue()


def test_the_files_before_a_step_and_their_differences(tmp_path: Path) -> None:
    """Nothing is shared with the repository; archives with the same members are equal."""
    repository = make_repository(tmp_path / "r", {"a": "1\n", "d/b": "2\n"})
    before = git(repository, "rev-parse", "HEAD").strip()
    write(
        repository, {"a": "3\n", "new": "x\n", "z.tgz": archive(1, b"x"), "y.tgz": archive(1, b"y")}
    )
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message=two")
    after = git(repository, "rev-parse", "HEAD").strip()
    start = {"workspace": {"repository": str(repository), "subdirectory": "d", "base": before}}
    files = files_of(start, [{"seq": 1, "snapshot": after}], 1)
    assert files == StepFiles(repository=repository, subdirectory="d", before=before, after=after)
    with FreshWorkspace.fresh(files, os.environ) as workspace:
        assert workspace.directory == workspace.top / "d"
        assert (workspace.top / "a").read_text() == "1\n"
        write(
            workspace.top,
            {"a": "4\n", "more": "", "z.tgz": archive(2, b"x"), "y.tgz": archive(2, b"Y")},
        )
        assert workspace.differences() == [
            "the file a has another content",
            "the file more is there and was not",
            "the file new was not made",
            "the file y.tgz has another content",
        ]
    assert not workspace.top.exists()
    assert git(repository, "status", "--porcelain") == ""
    later = files_of(start, [{"seq": 1, "snapshot": after}, {"seq": 2, "snapshot": before}], 2)
    assert later is not None
    assert (later.before, later.after) == (after, before)


def test_a_repository_that_is_gone_is_named(tmp_path: Path) -> None:
    """Also one without the commit, and a thread without a workspace."""
    assert files_of({}, [], 1) is None
    repository = make_repository(tmp_path / "r")
    lost = StepFiles(repository=repository, subdirectory="", before="0" * 39 + "1", after=None)
    with (
        pytest.raises(NotFoundError, match="the files that the step found are gone from"),
        FreshWorkspace.fresh(lost, os.environ),
    ):
        pass


@pytest.mark.parametrize("data", [b"", b"text", b"\x1f\x8bno", b"PK\x03\x04no", b"\0" * 600])
def test_what_is_no_archive_has_no_members(data: bytes) -> None:
    """Damaged ones included."""
    assert not members_of(data)


@pytest.mark.parametrize(
    "changed",
    [
        {"subdirectory": "../.."},
        {"subdirectory": "/etc"},
        {"base": "--all"},
        {"base": "HEAD"},
        {"base": "0" * 40 + "\n--all"},
    ],
)
def test_a_stranger_s_record_names_no_other_place(changed: dict[str, str]) -> None:
    """Neither a directory outside of the fresh workspace nor an option of git."""
    start = {"workspace": {"repository": "/r", "base": "0" * 40, **changed}}
    with pytest.raises(DamagedError):
        files_of(start, [], 1)


def zipped(*members: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for name, content in members:
            target.writestr(name, content)
    return stream.getvalue()


def test_the_members_of_an_archive_are_bounded() -> None:
    """A small file may hold more than memory has, and hold itself: it has no members, or one."""
    half = bytes(40 << 20)
    assert members_of(zipped(("a", half))) is not None
    assert members_of(zipped(("a", half), ("b", half))) is None
    assert members_of(gzip.compress(half + half, 1)) is None
    nested = gzip.compress(gzip.compress(b"x"))
    assert members_of(nested) == [("", gzip.decompress(nested))]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_of_one_name_are_all_compared() -> None:
    """Both count, in any order."""
    one, two = ("a", b"1"), ("a", b"2")
    assert members_of(zipped(one, two)) == members_of(zipped(two, one)) == [one, two]
    assert members_of(zipped(two)) == [two]
