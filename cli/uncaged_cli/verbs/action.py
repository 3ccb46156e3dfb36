"""The verb `action`: runs a call of a flow as a request of a conversation, without a sentence."""

from __future__ import annotations

from pathlib import Path

import click

from ..inputs.options import (
    conversation_option,
    detach_option,
    flow_argument,
    json_option,
    parameter_options,
    verbose_option,
)
from ..inputs.parameters import gather
from ..inputs.stores import shared_option
from ..request_run import submit_request
from ..runtime import open_engine


@click.command()
@flow_argument
@parameter_options
@click.option("--yes", is_flag=True, help="Run a marked flow without asking.")
@conversation_option
@verbose_option
@detach_option
@shared_option
@json_option
def command(
    *,
    flow: str,
    pairs: tuple[str, ...],
    params_file: Path | None,
    yes: bool,
    conversation: str | None,
    verbose: bool,
    detach: bool,
    as_json: bool,
) -> int:
    """Run FLOW with parameters as a request of the current conversation, and follow the thread.

    Unlike `run`, the request waits for those before it, is in the conversation's log, and what its
    result names can be named by later sentences. A marked flow runs after a yes.

    \b
    Examples:
      uncaged-workflow action list-files --param path=/etc --param "filter=*.conf"
    """
    from uncaged_dispatcher.calls import Call

    engine = open_engine()
    schema = engine.bundle(flow).descriptor.parameters
    call = Call(flow=flow, params=gather(params_file, pairs, schema))
    outcome = submit_request(
        engine,
        conversation,
        detach=detach,
        as_json=as_json,
        verbose=verbose,
        call=call,
        agreed=yes,
    )
    return outcome.exit_code
