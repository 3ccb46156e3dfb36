"""A shared store with two small flows, and commands of several machines on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from uncaged_bundles.storage.store import Store
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cli.main import run as run_words
from uncaged_engine.shared_engine import SharedEngine, shared_engine

from .bundles import source

if TYPE_CHECKING:
    from psycopg import Connection  # 60 ms, which the tests of other parts do not need

EXIT_WAITING = 8
CAKES = source(
    "cakes",
    """
    answer = yield {"ask": {"question": "how many?"}}
    return {"success": True, "message": f"{answer} cakes"}
""",
    policy={"ask": {}},
    patterns=["bake (some)? cakes"],
)
TIME = source(
    "clock",
    """
    now = yield {"now": {}}
    night = {"name": "tonight", "type": "time", "value": 23}
    return {"success": True, "message": "it is late", "data": now > 0, "entities": [night]}
""",
    policy={"now": {}},
    patterns=["what is the hour"],
)


@dataclass(frozen=True, kw_only=True)
class Kitchen:
    """A shared store with two flows. directory: of the machines' directories."""

    address: str
    directory: Path
    rows: Connection[tuple[Any, ...]]


@contextmanager
def opened(address: str, home: Path) -> Iterator[SharedEngine]:
    with shared_engine(address, Store.open(home), is_visible=True, report=lambda _: None) as engine:
        yield engine


class Machine:
    """Commands of one machine."""

    def __init__(
        self,
        kitchen: Kitchen,
        patch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self._kitchen, self._patch, self._capsys = kitchen, patch, capsys
        patch.setenv(STORE_VARIABLE, kitchen.address)

    def said(self, home: str, words: Sequence[str], *, code: int = 0) -> str:
        self._patch.setenv("UNCAGED_WORKFLOW_HOME", str(self._kitchen.directory / home))
        found = run_words(words)
        said = self._capsys.readouterr()
        assert found == code, said.err
        return said.out + said.err
