"""Capture of a role workflow: the path that a thread took, as the table of a definition that
`build` accepts.

The roles are those of the thread's bundle. A status that did not occur ends the flow without
success.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from uncaged_bundles.authoring import END, START
from uncaged_bundles.builders.definition import build_definition
from uncaged_bundles.builders.schema import statuses
from uncaged_bundles.builders.text.literal import write_constant, write_literal
from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.validation.schemas import without_claims
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Engine, RunOptions, ThreadView
from uncaged_engine.door.outcomes import Answer, Outcome
from uncaged_engine.services.registry import KNOWN
from uncaged_engine.services.trials import Decisions, TrialEffect, TrialResult

from ..candidate import MayAct
from ..other_values import OtherRun
from ..proving import TrialProof, prove
from ..values import Parameter
from ..wording import Wording, wording_of

__all__ = ["CapturedWorkflow", "captured_workflow"]

_STEP_KEYS = ("role", "content", "meta", "by")
_NO_AGENT = "person"
"""Agent of a proof's roles, which is never asked."""
_RESULT = '''
def result(ctx: View) -> dict[str, object]:
    """Return the last answer; success only if the path ends here."""
    last = ctx.steps[-1]
    status = last.meta.get("status")
    done = [last.role, status] in DONE
    message = last.meta.get("message") or last.content
    return {"success": done, "message": message, "data": {"role": last.role, "status": status}}
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedWorkflow:
    """A role workflow made of a thread. See `FlowCandidate`.

    wording: without sentence patterns, which role workflows have not. path: the role and the status
    of each of its steps, None for one without a status. fields: the descriptor of the thread's
    bundle. answers: the role steps.
    """

    wording: Wording
    prompt: str
    params: Mapping[str, Any]
    path: tuple[tuple[str, str | None], ...]
    table: Mapping[str, str | Mapping[str, str]]
    fields: Mapping[str, Any]
    answers: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(
            f"{role}: {status}" if status is not None else role for role, status in self.path
        )

    @property
    def left_out(self) -> tuple[str, ...]:
        used = {role for role, _ in self.path}
        return tuple(
            f"role {role}: it was not asked" for role in self.fields["roles"] if role not in used
        )

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return ()

    @property
    def definition(self) -> str:
        return self._written(self.wording.description)

    def source(self, remark: str = "") -> bytes:
        described = " ".join(f"{self.wording.description} {remark}".split())
        return _built(self.wording.name, self._written(described))

    def reworded(self, wording: Wording) -> CapturedWorkflow:
        return replace(self, wording=replace(wording, patterns=(), examples=()))

    def prove(self, engine: Engine, may_act: MayAct) -> TrialProof:
        """Follow the table over the recorded answers. No agent is asked, so the proof needs no
        repository and no rights, and compares no answer with a repository.
        """
        del may_act
        bundle = read_bundle(self._without_workspace().source(), KNOWN)
        roles = {role: _NO_AGENT for role, _ in self.path}
        proof = prove(
            engine,
            bundle,
            compare=self._differences,
            prompt=self.prompt,
            params=self.params,
            options=RunOptions(agents=roles),
            decisions=Decisions(known=self._known),
            trust_record=True,
        )
        reason = "the recorded answers take the same path; no agent was asked"
        return replace(proof, reason=reason) if proof.state == "proved" else proof

    def run_with(self, engine: Engine, changed: Mapping[str, object]) -> OtherRun:
        """Refuse: a captured workflow has no parameters."""
        del engine
        raise UsageError(f"a captured workflow has no parameter {next(iter(changed), '')!r}")

    def _known(self, effect: TrialEffect) -> Outcome | None:
        """Return the recorded answer of the step with this number."""
        at = effect.seq - 1
        if effect.kind != "role" or not 0 <= at < len(self.path):
            return None
        name = effect.body.get("name") if isinstance(effect.body, Mapping) else None
        return Answer(fields=self.answers[at]) if name == self.path[at][0] else None

    def _differences(self, found: TrialResult) -> list[str]:
        now = [tried.effect for tried in found.effects if tried.effect.kind == "role"]
        if len(now) == len(self.path):
            return []
        return [f"the path had {len(self.path)} steps, and has {len(now)} now"]

    def _without_workspace(self) -> CapturedWorkflow:
        roles = {
            name: {**role, "schema": without_claims(role["schema"])}
            for name, role in self.fields["roles"].items()
        }
        return replace(self, fields={**self.fields, "roles": roles, "policy": {"role": {}}})

    def _written(self, described: str) -> str:
        """Return the text of the definition."""
        roles = self.fields["roles"]
        used = dict.fromkeys(role for role, _ in self.path)
        parts = [
            f'"""The path that one thread took as a workflow: {", ".join(used)}."""',
            "from uncaged_bundles.authoring import END, START, Role, View, Workflow",
            f"ROLES = (\n{''.join(_role(name, roles[name]) for name in used)})",
            write_constant("DONE", [list(self.path[-1])]),
            f"{_RESULT.strip()}\n",
            _call(
                "workflow = Workflow",
                {
                    "name": write_literal(self.wording.name),
                    "description": write_literal(described),
                    "roles": "ROLES",
                    "moderator": _table(self.table),
                    "result": "result",
                    "policy": write_literal(self.fields["policy"], indent="    "),
                    "parameters": write_literal(self.fields["parameters"], indent="    "),
                },
            ),
        ]
        return "\n\n".join(parts) + "\n"


def captured_workflow(view: ThreadView, fields: Mapping[str, Any], name: str) -> CapturedWorkflow:
    """Return the workflow of the path that a thread took.

    Args:
        fields: the descriptor of the thread's bundle, as JSON data.
    Raises:
        NotFoundError: no role answered in the thread. RefusedError: the path is no table, or the
            thread was recorded on another machine.
    """
    thread = view.summary.thread_id
    if view.summary.imported:
        raise RefusedError(
            f"thread {thread} was imported: what its roles answered is not known here"
        )
    steps = [record for record in view.records if "role" in record and record.get("by") != "bundle"]
    if not steps or not fields.get("roles"):
        raise NotFoundError(f"no role answered in thread {thread}")
    path = tuple((str(step["role"]), _status(step)) for step in steps)
    start = view.start["parameters"]
    prompt = str(start.get("prompt", ""))
    return CapturedWorkflow(
        wording=replace(wording_of(name, prompt, ()), patterns=(), examples=()),
        prompt=prompt,
        params=start.get("params", {}),
        path=path,
        table=_table_of(path, fields["roles"], [int(step["seq"]) for step in steps]),
        fields=fields,
        answers=tuple({key: step[key] for key in _STEP_KEYS if key in step} for step in steps),
        notes=tuple(_notes(view, fields)),
    )


def _status(step: Mapping[str, Any]) -> str | None:
    meta = step.get("meta")
    status = meta.get("status") if isinstance(meta, Mapping) else None
    return status if isinstance(status, str) else None


def _table_of(
    path: Sequence[tuple[str, str | None]], roles: Mapping[str, Any], seqs: Sequence[int]
) -> dict[str, str | dict[str, str]]:
    """Return the table of a path; a status that did not occur leads to the end."""
    rows: dict[str, dict[str | None, str]] = {}
    seen: dict[tuple[str, str | None], int] = {}
    for at, (role, status) in enumerate(path):
        target = path[at + 1][0] if at + 1 < len(path) else END
        allowed = statuses(roles[role]["schema"])
        key = status if allowed is not None else None
        row = rows.setdefault(role, dict.fromkeys(allowed or (), END))
        before = seen.setdefault((role, key), at)
        if before != at and row[key] != target:
            what = f"{role} with status {key!r}" if key is not None else role
            raise RefusedError(
                f"no table leads this way: at step {seqs[before]} {what} led to {_shown(row[key])}, at step {seqs[at]} to {_shown(target)}"
            )
        row[key] = target
    table: dict[str, str | dict[str, str]] = {START: path[0][0]}
    for role, row in rows.items():
        table[role] = (
            row[None] if None in row else {str(word): target for word, target in row.items()}
        )
    return table


def _shown(role: str) -> str:
    return "the end" if role == END else role


def _notes(view: ThreadView, fields: Mapping[str, Any]) -> list[str]:
    notes = (
        []
        if "graph" in fields
        else ["the thread's flow chooses roles by a function; this one by a table"]
    )
    for record in view.records:
        intent = record.get("intent")
        body = intent.get("role") if isinstance(intent, Mapping) else None
        if isinstance(body, Mapping) and body.get("prompt"):
            notes.append(f"step {record['seq']}: the note to {body.get('name')} is not repeated")
        if isinstance(record.get("error"), Mapping) and "intent" not in record:
            notes.append(f"step {record['seq']} failed, and is no part of the path")
    return notes


def _role(name: str, fields: Mapping[str, Any]) -> str:
    arguments = {
        "name": write_literal(name),
        "description": write_literal(fields["description"], indent=" " * 8),
        "system_prompt": write_literal(fields["systemPrompt"], indent=" " * 8),
        "extract_prompt": write_literal(fields["extractPrompt"], indent=" " * 8),
        "schema": write_literal(fields["schema"], indent=" " * 8),
    }
    return "    " + _call("Role", arguments, indent=" " * 4) + ",\n"


def _table(table: Mapping[str, str | Mapping[str, str]]) -> str:
    """Return a table as Python source."""

    def word(role: str) -> str:
        return {START: "START", END: "END"}.get(role) or write_literal(role)

    rows = []
    for role, row in table.items():
        if isinstance(row, str):
            rows.append(f"        {word(role)}: {word(row)},\n")
        else:
            inner = ", ".join(f"{write_literal(key)}: {word(to)}" for key, to in row.items())
            rows.append(f"        {word(role)}: {{{inner}}},\n")
    return f"{{\n{''.join(rows)}    }}"


def _call(name: str, arguments: Mapping[str, str], indent: str = "") -> str:
    lines = "".join(f"{indent}    {key}={text},\n" for key, text in arguments.items())
    return f"{name}(\n{lines}{indent})"


def _built(name: str, text: str) -> bytes:
    """Return the bundle of a definition, as `build` makes it."""
    with TemporaryDirectory(prefix="uncaged-capture-") as directory:
        path = Path(directory) / f"{name.replace('-', '_')}_flow.py"
        path.write_text(text, "utf-8")
        return build_definition(path, KNOWN)
