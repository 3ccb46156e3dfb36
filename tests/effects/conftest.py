"""Fixtures of the script effect, performed under each mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from testbed.cells import MECHANISMS
from testbed.roles import EffectHarness
from testbed.scripting import Perform, harness_for
from uncaged_bundles.storage.store import Store
from uncaged_effects.script import ScriptHandler
from uncaged_engine.door.outcomes import Outcome


@pytest.fixture(params=MECHANISMS)
def mechanism(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory that every user may read, with a neighbour whose name begins alike."""
    for name, content in (("data", "inside"), ("data2", "outside")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text(content)
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.fixture
def perform(store: Store, mechanism: str, place: Path) -> Perform:
    """Perform one script effect; *params* are the thread's own."""

    def run(
        body: str,
        policy: Mapping[str, object] | None = None,
        *,
        params: Mapping[str, object] | None = None,
        harness: EffectHarness | None = None,
        directory: Path | None = None,
        **more: object,
    ) -> Outcome:
        harness = harness or harness_for(store, mechanism, policy or {}, params)
        context = harness.context(1, directory=directory or place)
        return ScriptHandler().perform(
            {
                "language": "bash",
                "body": body,
                **({"parameters": params} if params else {}),
                **more,
            },
            context,
        )

    return run
