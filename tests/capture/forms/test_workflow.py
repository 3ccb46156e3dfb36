"""Workflows made of a path of roles."""

from __future__ import annotations

from typing import Any

from uncaged_bundles.validation.schemas import claims_in
from uncaged_bundles.validation.validate import read_bundle
from uncaged_capture.forms.workflow import CapturedWorkflow
from uncaged_capture.wording import Wording
from uncaged_engine.api import Engine

POLICY = {"role": {"workspace": "write"}}


def role(field: str, claim: str) -> dict[str, Any]:
    """Return a role whose answers have a status and a field that is compared with a workspace."""
    properties = {"status": {"enum": ["done"]}, field: {"type": "string", "x-claim": claim}}
    return {
        "description": "Works.",
        "systemPrompt": "Work.\n",
        "extractPrompt": "Say.\n",
        "schema": {"type": "object", "properties": properties, "required": ["status", field]},
    }


def test_the_proof_compares_no_answer_with_a_workspace(engine: Engine) -> None:
    """The table of roles with claims is proved without a repository; the flow keeps the claims."""
    roles = {"coder": role("branch", "git.branch"), "committer": role("commit", "git.commit")}
    workflow = CapturedWorkflow(
        wording=Wording(name="short", description="Works."),
        prompt="work",
        params={},
        path=(("coder", "done"), ("committer", "done")),
        table={
            "__start__": "coder",
            "coder": {"done": "committer"},
            "committer": {"done": "__end__"},
        },
        fields={"roles": roles, "policy": POLICY, "parameters": {"type": "object"}},
        answers=(
            {"role": "coder", "content": "x", "meta": {"status": "done", "branch": "b"}, "by": "a"},
            {
                "role": "committer",
                "content": "y",
                "meta": {"status": "done", "commit": "c"},
                "by": "a",
            },
        ),
        notes=(),
    )
    proof = workflow.prove(engine, lambda _effect: False)
    assert proof.state == "proved", proof
    descriptor = read_bundle(workflow.source()).descriptor
    assert [claim for _, claim in claims_in(descriptor.raw["roles"], ())] == [
        "git.branch",
        "git.commit",
    ]
    assert descriptor.raw["policy"] == POLICY
