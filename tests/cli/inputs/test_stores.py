"""The shared store that a verb uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_bundles.storage.store import Store
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cli.inputs.completion import complete_threads
from uncaged_cli.inputs.stores import chosen_store, names_shared
from uncaged_cli.verbs.ps import command as ps

ADDRESS = "postgresql://me:s3cr@127.0.0.1:1/none"


@pytest.mark.parametrize(
    "text", ["store: {}", "notify: null\nstore : {}", '"store": {}', '{{store: "{}"}}']
)
def test_the_setting_is_found_in_each_notation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """A setting that is passed over would have the verb work on the directory."""
    monkeypatch.delenv(STORE_VARIABLE, raising=False)
    home = Store.open(tmp_path)
    home.config_path.write_text(text.format(ADDRESS))
    chosen = chosen_store(None, home)
    assert chosen is not None and chosen.address == ADDRESS


def test_a_wrong_setting_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The value may have a password."""
    monkeypatch.delenv(STORE_VARIABLE, raising=False)
    home = Store.open(tmp_path)
    home.config_path.write_text(f"store: [{ADDRESS}]")
    with pytest.raises(UsageError) as raised:
        chosen_store(None, home)
    assert "store: " in str(raised.value) and "s3cr" not in str(raised.value)


def test_threads_of_a_shared_store_are_not_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the directory are others, and a server may be slow: ``latest`` alone, unreached."""
    monkeypatch.setenv(STORE_VARIABLE, ADDRESS)
    context = ps.make_context("ps", [], resilient_parsing=True)
    assert names_shared(context)
    assert [item.value for item in complete_threads(context, None, "")] == ["latest"]
    assert complete_threads(context, None, "0") == []
