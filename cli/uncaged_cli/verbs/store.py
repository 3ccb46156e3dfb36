"""The verb `store`: copies a whole store to another address, checks one, and chooses what runs its
threads.
"""

from __future__ import annotations

import shlex

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.counted import shown_progress
from ..display.output import Styled, next_step, note, result
from ..inputs.options import json_option
from ..inputs.stores import complete_addresses


@click.group("store")
def command() -> None:
    """Copy a whole store, check one, or choose what runs its threads. An address is a directory, or
    postgresql://HOST/DATABASE?schema=NAME.
    """


@command.command("copy", short_help="Copy a whole store to another address.")
@click.argument("source", metavar="FROM", shell_complete=complete_addresses)
@click.argument("target", metavar="TO", shell_complete=complete_addresses)
@click.option(
    "--replace",
    is_flag=True,
    help="Replace documents, and entries of flows, of TO that differ from those of FROM.",
)
@json_option
def copy_command(*, source: str, target: str, replace: bool, as_json: bool) -> int:
    """Copy all bundles, blobs, threads, conversations, documents, flows and grants of FROM into TO,
    which is made if it is missing.

    Each grant of FROM becomes a grant of TO: copy only stores whose owners you trust.

    A flow that TO lacks is added, and one of which it has older versions is brought up to date.
    Flows that TO alone has stay.

    A thread without an end is left to FROM: `due` and `serve` do not resume it in a directory that
    it was copied into. `resume` takes it up there.

    Run it again after an interruption, or to copy what has been added since. What TO has with other
    contents stays as it is and is listed; the exit code is 1 then. Not copied: config.yaml, keys,
    worktrees, browser profiles.

    \b
    Examples:
      uncaged-workflow store copy ~/.uncaged/workflow postgresql://db.example/team
      uncaged-workflow store copy postgresql://db.example/team ./copy
    """
    from uncaged_engine.stores.copying import copy_store
    from uncaged_engine.stores.opening import opened

    with (
        opened(source, create=False, is_visible=True) as origin,
        opened(target, create=True, is_visible=True) as place,
        shown_progress() as progress,
    ):
        report = copy_store(origin, place, replace=replace, progress=progress)
        addresses = {"from": origin.address, "to": place.address}
    if as_json:
        json_output.document({**addresses, **report.document()})
        return 1 if report.problems else 0
    for kind, found in report.counts.items():
        result(f"{kind}: {found.copied:,} copied, {found.present:,} there already")
    if report.unfinished:
        note(
            f"threads without an end: {report.unfinished:,}; `resume` in a directory continues one, or `answer` if it waits, "
            f"and nothing else does: first see that nothing drives it in {addresses['from']}"
        )
    if report.grants:
        note(
            f"grants: {report.grants:,} copied; what these bundles ask for is granted in {addresses['to']} now"
        )
    if not report.problems:
        next_step(f"uncaged-workflow store check {shlex.quote(target)}")
    return listed(report.problems)


@command.command("check", short_help="Check all hashes and chains of a store.")
@click.argument("address", shell_complete=complete_addresses)
@json_option
def check_command(*, address: str, as_json: bool) -> int:
    """Read all of a store and check it: the hash of each bundle and blob, the chain and the fields
    of each line, and whether all that is referred to is there. Nothing is changed.

    It does not run a bundle again, as verify does for one thread.
    """
    from uncaged_engine.stores.checking import check_store
    from uncaged_engine.stores.opening import opened

    with opened(address, create=False, is_visible=True) as store, shown_progress() as progress:
        report = check_store(store, progress=progress)
        where = store.address
    if as_json:
        json_output.document({"address": where, **report.document()})
        return 1 if report.problems else 0
    for kind, count in report.counts.items():
        result(f"{kind}: {count:,}")
    if not report.problems:
        result(Styled("whole", "green"))
    return listed(report.problems)


@command.command("dispatcher", short_help="Show or choose what runs a shared store's threads.")
@click.argument("address", shell_complete=complete_addresses)
@click.option(
    "--restate",
    metavar="URL",
    help="Have Restate run the threads: the URL of its admin API, as http://HOST:9070. Choose before the first thread or worker.",
)
@click.option(
    "--ingress",
    metavar="URL",
    help="The URL of Restate's ingress. Without it: port 8080 of the same host.",
)
@json_option
def dispatcher_command(
    *, address: str, restate: str | None, ingress: str | None, as_json: bool
) -> int:
    """Show what runs the threads of a shared store: DBOS, unless Restate was chosen. With
    `--restate`, the store is made if it is missing. Repeat it after Restate got another address.

    The store keeps the URLs, and only workers reach Restate.

    \b
    Examples:
      uncaged-workflow store dispatcher postgresql://db.example/team
      uncaged-workflow store dispatcher postgresql://db.example/team --restate http://restate.example:9070
    """
    from uncaged_engine.shared.dispatch import SharedStore
    from uncaged_engine.stores.opening import opened

    if ingress is not None and restate is None:
        raise UsageError("--ingress says where the ingress of --restate is")
    with opened(address, create=restate is not None, is_visible=True) as store:
        if not isinstance(store, SharedStore):
            raise UsageError(f"{store.address} is a directory, whose threads need no dispatcher")
        if restate is not None:
            store.run_with_restate(restate, ingress)
        choice, where = store.runs_with(), store.address
    if as_json:
        chosen = None if choice is None else choice.name
        more = {"admin": choice.admin, "ingress": choice.ingress} if choice and choice.admin else {}
        json_output.document({"address": where, "dispatcher": chosen, **more})
    elif choice is None:
        result("none yet: DBOS, unless you choose Restate before the first thread or worker")
    elif choice.admin:
        result(f"Restate, admin {choice.admin}, ingress {choice.ingress}")
    else:
        result("DBOS, in the database of the store")
    return 0


def listed(problems: list[str]) -> int:
    """Print problems and return the exit code."""
    for problem in problems:
        note(Styled("problem: ", "red"), problem)
    return 1 if problems else 0
