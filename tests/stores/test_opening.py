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


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the message has the command that installs it."""
    monkeypatch.setattr(plugins, "ours", lambda _group: {})
    with pytest.raises(EnvironmentLacks, match=r"pip install 'uncaged-workflow\[cluster\]'"):
        open_store("postgresql://user:hidden@host/x", create=False, is_visible=True)
