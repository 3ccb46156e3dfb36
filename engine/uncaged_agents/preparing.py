"""Preparation of a thread for roles: the agent for each role, and the workspace that they share."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from uncaged_bundles.errors import RefusedError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.rights import Rights
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.preparing import NewThread, Preparation
from uncaged_engine.services.journal import COMMIT, PACK_KEY


class RolePreparation(Preparation):
    """Start record fields ``agents``, ``workspace`` and ``attended``; for an imported thread also
    ``snapshot``.
    """

    def prepare(self, thread: NewThread) -> Mapping[str, Any]:
        agents, workspace = bind_agents(thread), _inspect_workspace(thread)
        return {
            "agents": agents,
            **({} if workspace is None else {"workspace": workspace}),
            **({"attended": True} if thread.options.attended else {}),
        }

    def prepare_fork(self, thread: NewThread, source: Mapping[str, Any]) -> Mapping[str, Any]:
        fields: dict[str, Any] = {}
        if thread.options.agents or lacks_agent(source.get("agents"), thread.bundle):
            fields["agents"] = bind_agents(thread)
        elif thread.options.agent_settings:
            fields["agents"] = add_settings(thread, source["agents"])
        if thread.options.attended or "attended" in source:
            fields["attended"] = thread.options.attended
        if "workspace" in source:
            from .workspace import forked

            fields["workspace"] = forked(
                source["workspace"], thread_id=thread.thread_id, flow=thread.flow
            )
        return fields

    def prepare_import(
        self, thread: NewThread, steps: Sequence[Mapping[str, object]]
    ) -> Mapping[str, Any]:
        fields = dict(self.prepare(thread))
        workspace = fields.get("workspace")
        if workspace is None:
            return fields
        from .workspace import last_snapshot
        from .workspace.checkout import branch_exists, has_commit

        repository, environment = Path(str(workspace["repository"])), thread.options.environment
        if branch_exists(repository, str(workspace["branch"]), environment):
            raise RefusedError(
                f"{repository} has a branch {workspace['branch']} already; rename or delete it, then try again"
            )
        claimed = last_snapshot(steps)
        if (
            claimed is not None
            and COMMIT.fullmatch(claimed)
            and has_commit(repository, claimed, environment)
        ):
            fields["snapshot"] = claimed
        return fields

    def describe(self, fields: Mapping[str, Any]) -> Iterator[str]:
        agents = fields["agents"]
        bound = {"all roles": agents.get("default"), **agents.get("roles", {})}
        for role, agent in bound.items():
            if agent:
                argv = agent["settings"].get("argv")
                program = f" ({shlex.join(map(str, argv))})" if isinstance(argv, list) else ""
                yield f"agent for {role}: {agent['name']}{program}: {agent['reason']}"
        if "workspace" in fields:
            yield from _workspace_sentences(fields)

    def secure(
        self, thread: NewThread, fields: Mapping[str, Any], steps: Sequence[Mapping[str, object]]
    ) -> None:
        """Keep git from collecting the commit that the thread's worktree will be made from. One
        whose files are carried has them in its blobs.
        """
        if "workspace" not in fields:
            return
        from .workspace import Workspace, last_snapshot

        if PACK_KEY in fields["workspace"]:
            return

        workspace = Workspace.of(
            fields, thread.store, thread.thread_id, environment=thread.options.environment
        )
        if workspace is not None:
            workspace.pin(str(fields.get("snapshot") or last_snapshot(steps) or workspace.base))

    def release(
        self,
        store: Store,
        thread: ThreadId,
        start: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> None:
        """Remove a worktree and a branch that hold nothing."""
        if "workspace" not in start:
            return
        from .workspace import Workspace, remove_unused

        workspace = Workspace.of(start, store, thread, environment=environment)
        if workspace is not None:
            remove_unused(workspace)

    def forget(
        self,
        store: Store,
        thread: ThreadId,
        start: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> None:
        """Remove the worktree, its refs and an empty branch."""
        if "workspace" not in start:
            return
        from .workspace import Workspace

        workspace = Workspace.of(start, store, thread, environment=environment)
        if workspace is not None:
            workspace.remove()


def bind_agents(thread: NewThread) -> dict[str, object]:
    """Return the agent of each role, with the reason; nothing for a bundle that may ask no agent.

    Raises:
        RefusedError: an agent was given for a role that the bundle plays itself. Else as
            `choose_agents`.
    """
    descriptor, options, name = thread.bundle.descriptor, thread.options, thread.flow
    if not descriptor.asked_roles and not any(options.agents):
        if options.agent_settings:
            raise UsageError(f"--agent-option: {name!r} asks no agent")
        return {}
    own = next(
        (
            role
            for role in (*options.agents, *options.agent_settings)
            if role in descriptor.roles and role not in descriptor.asked_roles
        ),
        None,
    )
    if own is not None:
        raise RefusedError(
            f'{name!r} asks no agent for {own!r}: its policy has no "role", so that the bundle itself makes these steps'
        )
    from .choose import choose_agents

    return choose_agents(
        thread.config,
        flow=name,
        roles=descriptor.asked_roles,
        asked=options.agents,
        options=options.agent_settings,
        environment=options.environment,
        directory=options.directory,
        rights=Rights.of(descriptor.policy.limits.get("role", {})),
    )


def add_settings(thread: NewThread, recorded: Mapping[str, Any]) -> dict[str, object]:
    """Return the agents that the source of a fork recorded, with the settings for this thread.

    Raises:
        NotFoundError: the flow has no such role. UsageError: the agent has no such setting.
    """
    from .choice import Choice, with_options
    from .choose import DEFAULT, expect_roles
    from .kinds import factory_of

    options = thread.options
    roles = dict(recorded.get("roles", {}))
    default = recorded.get("default")
    expect_roles(thread.flow, thread.bundle.descriptor.asked_roles, options.agent_settings)

    def added(agent: Mapping[str, Any] | None, settings: Mapping[str, object]) -> dict[str, object]:
        if agent is None:
            raise UsageError(
                "--agent-option KEY=VALUE is for the agent of all roles, and each role has one of its own; use ROLE.KEY=VALUE"
            )
        limits = {"limits": agent["limits"]} if "limits" in agent else {}
        known = {key: value for key, value in agent.items() if key != "limits"}
        choice = with_options(Choice(**known), settings, options.directory)
        factory_of(choice.use)(choice.settings)
        return {**choice.recorded(), **limits}

    if DEFAULT in options.agent_settings:
        default = added(default, options.agent_settings[DEFAULT])
    for role, settings in options.agent_settings.items():
        if role != DEFAULT:
            roles[role] = added(roles.get(role, default), settings)
    return {**({"default": default} if default else {}), "roles": roles}


def lacks_agent(agents: object, bundle: Bundle) -> bool:
    """Return whether *bundle* may ask for a role that the source's record names no agent for."""
    known = agents if isinstance(agents, Mapping) else {}
    return not known.get("default") and not set(bundle.descriptor.asked_roles) <= set(
        known.get("roles", {})
    )


def _inspect_workspace(thread: NewThread) -> Mapping[str, Any] | None:
    """Return the repository that the thread will work in, if its roles may use one."""
    if "workspace" not in thread.bundle.descriptor.policy.limits.get("role", {}):
        return None
    from .workspace import inspect

    options = thread.options
    if options.parent_workspace is not None:
        from .workspace import forked

        return forked(options.parent_workspace, flow=thread.flow, thread_id=thread.thread_id)
    found = inspect(
        options.workspace or options.directory,
        flow=thread.flow,
        thread_id=thread.thread_id,
        include_changes=options.include_changes,
        links=options.links,
        environment=options.environment,
        now_ms=thread.now_ms,
    )
    if not thread.store.is_shared:
        return found
    from uncaged_engine.services.packs import pack_blobs

    from .workspace import carry

    return carry(
        found,
        pack_blobs(thread.store),
        links=options.links,
        environment=options.environment,
    )


def _workspace_sentences(fields: Mapping[str, Any]) -> Iterator[str]:
    workspace = fields["workspace"]
    yield f"workspace: {workspace['repository']}, on the branch {workspace['branch']}"
    if "snapshot" in fields:
        yield f"its files: the commit {fields['snapshot']}, which the last step names and the repository has"
    else:
        yield f"its files: the commit {workspace['base']} of the repository; what the steps left elsewhere is not in it"
    if workspace["links"]:
        yield f"linked into it: {', '.join(workspace['links'])}"
    yield (
        f"tests are run with: {fields['testCommand']}"
        if "testCommand" in fields
        else "tests are run as the repository suggests"
    )
