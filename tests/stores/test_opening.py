"""Addresses of stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, UsageError
from uncaged_engine import plugins
from uncaged_engine.stores.opening import open_store, opened


def test_a_directory_is_made_only_on_request(tmp_path: Path) -> None:
    """A directory without a store is no source."""
    with pytest.raises(NotFoundError, match="no store in"):
        open_store(str(tmp_path), create=False, is_visible=True)
    assert list(tmp_path.iterdir()) == []
    with opened(str(tmp_path), create=True, is_visible=True) as store:
        assert store.address == str(tmp_path)
    open_store(str(tmp_path), create=False, is_visible=True)


def test_a_file_is_no_directory_for_a_store(tmp_path: Path) -> None:
    """The message has the reason and asks for another directory."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match=r"no store can be made in .*: .*; give another directory"):
        open_store(str(tmp_path / "file"), create=True, is_visible=True)


@pytest.mark.parametrize("address", ["", "mysql://user:hidden@host/x"])
def test_an_address_that_nothing_serves_is_refused(address: str) -> None:
    """The message does not repeat a password."""
    with pytest.raises(UsageError) as refused:
        open_store(address, create=False, is_visible=True)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:/hidden",
        "postgres:user:hidden",
        "'postgresql://user:hidden@host/x'",
        " postgresql://user:hidden@host/x",
        "postgresql//user:hidden@host/x",
        "host=db.example password=hidden",
        "user:hid/den@hidden/x",
        "//user:hidden@host/x",
        "host/x?password=hidden",
    ],
)
def test_a_misspelt_url_is_no_directory(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is made, and the message does not repeat a password."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="does not begin with postgresql://") as refused:
        open_store(address, create=True, is_visible=True)
    assert "hid" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["./host=x", "./postgresql:x", "a@b", "c:d"])
def test_a_directory_may_have_any_name(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ./ in front, also one that looks like an address."""
    monkeypatch.chdir(tmp_path)
    open_store(address, create=True, is_visible=True)
    assert (tmp_path / address / "logs").is_dir()


def test_a_directory_with_other_files_is_left_as_it_is(tmp_path: Path) -> None:
    """One with a part of a store, or with what a person puts there before, becomes a store."""
    (tmp_path / "config.yaml").touch()
    (tmp_path / "bundles").mkdir()
    open_store(str(tmp_path), create=True, is_visible=True)
    (tmp_path / "notes").touch()
    open_store(str(tmp_path), create=True, is_visible=True)  # a store with one more file
    (tmp_path / "blobs").rmdir()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match=f"{tmp_path} is no store .*; give a store's directory"):
        open_store(str(tmp_path), create=True, is_visible=True)
    assert sorted(tmp_path.iterdir()) == before


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the message has the command that installs it."""
    monkeypatch.setattr(plugins, "ours", lambda _group: {})
    with pytest.raises(EnvironmentLacks, match=r"pip install 'uncaged-workflow\[cluster\]'"):
        open_store("postgresql://user:hidden@host/x", create=False, is_visible=True)
