"""Whole prompts of the shipped workflow, as its agents receive them: a change of any word shows in
the review of its change.

``python tests/roles/test_prompts.py`` writes them anew.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from uncaged_bundles.contract import RoleSpec
from uncaged_bundles.validation.validate import read_bundle
from uncaged_models.prompts.prompt import build_prompt, repair_wording
from uncaged_templates.demo import ISSUE
from uncaged_templates.solve_issue import workflow

DIRECTORY = Path(__file__).parent / "prompts"
PHASES = [
    {
        "name": "fines",
        "description": "fines.py:12 rounds down.",
        "acceptance": "test_fines passes.",
    },
    {
        "name": "pages",
        "description": "pages.py:7 is off by one.",
        "acceptance": "The suite passes.",
    },
]
STEPS: tuple[Mapping[str, object], ...] = (
    {
        "seq": 1,
        "role": "planner",
        "content": "Two lines are wrong.",
        "meta": {"status": "planned", "phases": PHASES},
    },
    {
        "seq": 2,
        "role": "coder",
        "content": "Both are mended.\n\n```python\nround(days * rate, 2)\n```",
        "meta": {
            "status": "all-done",
            "completedPhases": ["fines", "pages"],
            "filesChanged": ["fines.py"],
            "summary": "Mended.",
        },
    },
    {
        "seq": 3,
        "role": "reviewer",
        "content": "Not yet.",
        "meta": {"status": "rejected", "issues": ["pages.py is unchanged"]},
    },
)
CASES: Mapping[str, tuple[str, int]] = {
    "planner": ("planner", 0),
    "coder": ("coder", 1),
    "reviewer": ("reviewer", 2),
    "coder-again": ("coder", 3),
    "committer": ("committer", 3),
}
"""Who is asked, after how many steps."""


def roles() -> Mapping[str, RoleSpec]:
    from uncaged_bundles.builders import build_workflow

    return read_bundle(build_workflow(workflow)).descriptor.roles


def texts() -> Mapping[str, str]:
    known = roles()
    asked = {
        name: build_prompt(
            role=known[role],
            task=ISSUE,
            params={},
            steps=STEPS[:count],
            extra=None,
            note=None,
            max_history_characters=60_000,
        )
        for name, (role, count) in CASES.items()
    }
    repair = repair_wording(
        "status: 'finished' is not one of ['approved', 'rejected']", known["reviewer"]
    )
    return {**asked, "reviewer-repair": f"{repair}\n"}


@pytest.mark.parametrize("name", [*CASES, "reviewer-repair"])
def test_the_prompt_is_the_one_that_was_reviewed(name: str) -> None:
    """A prompt equals its reviewed copy; a change on purpose updates the copy, which is read
    again.
    """
    assert texts()[name] == (DIRECTORY / f"{name}.md").read_text("utf-8")


def test_each_kept_prompt_is_sent_to_a_role() -> None:
    """The directory holds the prompts of today and nothing else."""
    assert {path.stem for path in DIRECTORY.iterdir()} == set(texts())


if __name__ == "__main__":
    DIRECTORY.mkdir(exist_ok=True)
    for case, text in texts().items():
        (DIRECTORY / f"{case}.md").write_text(text, "utf-8")
        sys.stdout.write(f"{case}\n")
