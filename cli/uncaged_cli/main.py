"""Top level of the command line: turns each result and each error into an exit code and a short
message, never a traceback.
"""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import click
from uncaged_bundles.clean import shorten
from uncaged_bundles.errors import NotFoundError, UncagedError, UsageError, without_thread
from uncaged_bundles.version import __version__

from .display.output import PROGRAM, Styled, note
from .entry import EXIT_INTERRUPTED
from .lazy import LazyGroup

if TYPE_CHECKING:
    from uncaged_engine.worker.client import Launching

MACHINE_ERRORS = frozenset(
    (
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EROFS,
        errno.EIO,
        errno.EACCES,
        errno.EPERM,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOTDIR,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
    )
)
"""Errors of the machine that the user can fix, such as a full disk, missing permissions, or a file
where a directory should be.
"""
MESSAGE_COLUMNS = 2_000
CLICK_TERMS = {
    "a valid float range": "a number",
    "a valid integer range": "a whole number",
    "x>=": "from ",
    "0<=x<=": "0 to ",
    ". Did you mean": "; did you mean",
}
"""Replacements for terms in the messages of click."""


def main(launching: Launching | None = None) -> NoReturn:
    """Run the command line of this process.

    launching: a worker that is already being started.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # print the code point of a character that the terminal cannot show
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:], launching)
    try:
        sys.stdout.flush()
    except OSError:  # a pipe that was closed, a full disk
        # otherwise the interpreter prints an error at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or 1
    gc.freeze()  # at its exit the interpreter would look for garbage once more: 25 ms of a list
    sys.exit(code)


def run(argv: Sequence[str], launching: Launching | None = None) -> int:
    """Execute *argv* and return the exit code."""
    return guarded(
        lambda: group.main(list(argv), prog_name=PROGRAM, standalone_mode=False, obj=launching),
        argv,
    )


def guarded(action: Callable[[], object], argv: Sequence[str]) -> int:
    """Call *action* and return the exit code; an error is printed.

    Args:
        argv: the words that a crash report has.
    """
    try:
        code = action()
    except UncagedError as problem:
        return _fail(without_thread(problem), problem.exit_code)
    except click.exceptions.NoArgsIsHelpError as problem:
        note(problem.format_message())
        return UsageError.exit_code
    except click.ClickException as problem:
        return _fail(
            _sentence(problem),
            UsageError.exit_code if isinstance(problem, click.UsageError) else problem.exit_code,
        )
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except Exception as problem:
        # the top of the command line: one of three places that catch every exception
        if isinstance(problem, OSError) and problem.errno in MACHINE_ERRORS:
            where = f" at {problem.filename}" if isinstance(problem.filename, str) else ""
            return _fail(
                f"{problem.strerror}{where}; fix that and try again", UncagedError.exit_code
            )
        if isinstance(problem, FileNotFoundError) and not _has_directory():
            return _fail(
                "the current directory was removed; change to one that exists and try again",
                UsageError.exit_code,
            )
        if (package := _lacking_package(problem)) is not None:
            return _fail(
                f"the package {package} is not installed; reinstall uncaged-workflow",
                NotFoundError.exit_code,
            )
        return _report(problem, argv)
    return code if isinstance(code, int) else 0


def _lacking_package(problem: Exception) -> str | None:
    """Return the package of this distribution that cannot be imported, if that is the problem."""
    name = problem.name if isinstance(problem, ModuleNotFoundError) else None
    return name if name is not None and name.startswith("uncaged_") and "." not in name else None


def _has_directory() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - the question is whether there is one
    except FileNotFoundError:
        return False
    return True


def _fail(message: str, code: int) -> int:
    note(Styled("error: ", "red"), message)
    return code


def _sentence(problem: click.ClickException) -> str:
    """Return a message of click in our format, with the help of the verb as next step."""
    message = shorten(" ".join(problem.format_message().split()).rstrip("."), MESSAGE_COLUMNS)
    for theirs, ours in CLICK_TERMS.items():
        message = message.replace(theirs, ours)
    message = message[:1].lower() + message[1:]
    context = getattr(problem, "ctx", None)
    return f"{message}\nsee: {context.command_path} --help" if context is not None else message


def _report(problem: Exception, argv: Sequence[str]) -> int:
    from .crash import EXIT_BUG, write_report

    where = write_report(problem, argv, os.environ)
    place = f"the report is in {where}" if where else "the report could not be written"
    return _fail(f"this is a bug in {PROGRAM} ({type(problem).__name__}); {place}", EXIT_BUG)


def _print_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        click.echo(f"{PROGRAM} {__version__}")
        context.exit()


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    subcommand_metavar="VERB ...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@click.pass_context
def group(context: click.Context) -> None:
    """Run workflows of AI agents. Each flow is one hashed file that runs in a sandbox; each step is
    recorded in a journal.

    \b
    First steps:
      uncaged-workflow demo shop              write a repository with failing tests
      uncaged-workflow run solve-issue --workspace shop --prompt - < shop/ISSUE.md

    Exit codes: 0 success, 1 the command failed, 2 wrong usage, 3 the thread ended without success,
    4 no agent or credentials, 5 not found, 6 a limit was reached, 7 no sandbox, 8 the thread is
    waiting or paused, 70 internal error, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
