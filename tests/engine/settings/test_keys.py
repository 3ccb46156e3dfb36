"""Keys that a person handed to the store are files for its owner only; nothing ever prints one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from uncaged_bundles.errors import EnvironmentLacks, NotFoundError, UsageError
from uncaged_bundles.storage.store import Store
from uncaged_engine.settings import keys
from uncaged_engine.settings.loading import load
from uncaged_engine.settings.secrets import secret_value

PLANTED = "sk-planted-7d1f"


def test_a_key_is_a_secret_of_its_name(store: Store) -> None:
    """`secret:NAME` finds it without a line in config.yaml; a well-known variable that is set goes
    before it.
    """
    path = keys.put(store.root / "keys", "OPENAI_API_KEY", PLANTED)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret_value("OPENAI_API_KEY", load(store), {}) == PLANTED
    assert (
        secret_value("OPENAI_API_KEY", load(store), {"OPENAI_API_KEY": "sk-other-99"})
        == "sk-other-99"
    )
    keys.remove(store.root / "keys", "OPENAI_API_KEY")
    with pytest.raises(EnvironmentLacks, match="which is not set"):
        secret_value("OPENAI_API_KEY", load(store), {})


def test_an_unknown_secret_says_how_to_set_it(store: Store) -> None:
    """The next step is one command."""
    with pytest.raises(EnvironmentLacks, match="uncaged-workflow keys set GITHUB"):
        secret_value("GITHUB", load(store), {})


@pytest.mark.parametrize("name", ["", "lower", "../X", "A/B", "A\0", "1A", "Ä", "A" * 65])
def test_bad_names_are_refused(tmp_path: Path, name: str) -> None:
    """A name never becomes a path."""
    with pytest.raises(UsageError, match="is no name of a key"):
        keys.put(tmp_path / "keys", name, PLANTED)
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("value", ["", "two\nlines", "x" * 20_000])
def test_bad_values_are_refused_and_not_shown(tmp_path: Path, value: str) -> None:
    """Nothing is kept, and the message has no part of the value."""
    with pytest.raises(UsageError, match="nothing was kept"):
        keys.put(tmp_path / "keys", "A", value)
    assert keys.names(tmp_path / "keys") == []


def test_a_key_that_is_not_there(tmp_path: Path) -> None:
    """The message lists the names that are."""
    keys.put(tmp_path / "keys", "HERE", PLANTED)
    with pytest.raises(NotFoundError, match="there are: HERE"):
        keys.remove(tmp_path / "keys", "GONE")
