"""The verb `record`: makes a flow of what a person does in a browser, or of another tool's
recording, after a proof run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from uncaged_browser.addresses import address_of
from uncaged_browser.session.address import DEFAULT_SESSION
from uncaged_bundles.errors import UncagedError, UsageError
from uncaged_bundles.names import new_flow_name

from ..inputs.options import accept_option, json_option
from ..inputs.recording_answers import chosen_parameters, may_save
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from ..recording import BrowserChoice

FORMATS = ("devtools", "codegen", "selenium", "recording")


@click.command()
@click.argument("name")
@click.option("--url", metavar="ADDRESS", help="Open this address and record what is done there.")
@click.option(
    "--import",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Use a recording of another tool instead.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the imported file: devtools (JSON of the Chrome DevTools Recorder), codegen (Python of"
    " Playwright's code generator), selenium (JSON of Selenium IDE) or recording. Without it, it is recognised.",
)
@click.option("--headless", is_flag=True, help="Record a browser without a window.")
@click.option("--external", is_flag=True, help="Record your own browser, through its extension.")
@click.option(
    "--session",
    default=DEFAULT_SESSION,
    metavar="NAME",
    help="The browser session; each has a browser with a profile of its own.",
)
@click.option(
    "--param",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Make a recorded value a parameter. May be repeated. Without it, typed values are proposed.",
)
@click.option(
    "--allow-host",
    "allowed",
    multiple=True,
    metavar="HOST",
    help="A further host that the pages may load from. May be repeated.",
)
@click.option("--resend", is_flag=True, help="Let the proof run send data again, without asking.")
@click.option("--unproved", is_flag=True, help="Save the flow even if the proof run fails.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write the recording to FILE.",
)
@accept_option
@shared_option
@json_option
def command(
    *,
    name: str,
    url: str | None,
    file: Path | None,
    form: str | None,
    headless: bool,
    external: bool,
    session: str,
    pairs: tuple[str, ...],
    allowed: tuple[str, ...],
    resend: bool,
    unproved: bool,
    output: Path | None,
    accept: bool,
    as_json: bool,
) -> None:
    """Record a task in a browser, and add it as the flow NAME.

    Opens ADDRESS and notes what you do until you press Enter or Ctrl-C, or close the tab. Passwords
    are not noted; the flow types secrets instead. Then the steps are performed once more in a fresh
    context. That proof run sends no data without a yes: a flow that would is saved as unproved from
    that step on.

    \b
    Examples:
      uncaged-workflow record order --url shop.example.org
      uncaged-workflow record order --import recording.json
    """
    from ..recorded_flow import KeptRecording, RecordedFlow, write_recording
    from ..recording import imported, recorded, with_hosts

    if (url is None) is (file is None):
        raise UsageError("name either an address (--url) or a file (--import)")
    if (form is not None and file is None) or (headless and external):
        raise UsageError("--format is for --import; --headless and --external exclude each other")
    new_flow_name(name)
    engine = open_engine()
    if file is not None:
        recording = imported(file, name, form)
    else:
        address = address_of(url or "")
        kind: BrowserChoice = "external" if external else "headless" if headless else "shown"
        recording = recorded(engine.store, session, address, name, kind)
    recording = with_hosts(recording, allowed)
    if output is not None:
        write_recording(recording, output)
    recording.check_length()
    kept = KeptRecording(recording, output or file)
    try:
        parameters = chosen_parameters(recording, pairs)
        flow = RecordedFlow(engine, recording, parameters, recording.to_recipe(name, parameters))
        flow.show(quiet=as_json)
        proof = flow.prove(session, accept=accept, resend=resend)
        if proof.state == "failed":
            may_save(proof, save=unproved, keep=kept.keep)
        added = flow.add(proof)
    except (UncagedError, click.Abort, KeyboardInterrupt):
        kept.keep()  # what a person did is not lost
        raise
    flow.report(added, proof, as_json=as_json)
