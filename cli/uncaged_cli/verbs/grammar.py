"""The verb `grammar`: checks grammars of sentences."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..display import json_output
from ..display.output import Styled, result
from ..inputs.options import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uncaged_dispatcher.grammar import Problem

EXIT_HAS_ERRORS = 1


@click.group("grammar")
def command() -> None:
    """Check the grammars of sentences; docs/grammar.md has the language."""


@command.command("check", short_help="Check a grammar file.")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def check(file: Path, as_json: bool) -> int:
    """Check the grammar in FILE and in the files that it imports; print each error and warning
    with its line and column.
    """
    from uncaged_dispatcher.grammar import GrammarError, load, parse

    from ..inputs.grammars import read_grammar

    text, files = read_grammar(file)
    errors: Sequence[Problem] = ()
    warnings: Sequence[Problem] = ()
    rules: list[str] = []
    try:
        rules = parse(text, name=str(file))
        warnings = load(text, name=str(file), files=files).warnings
    except GrammarError as error:
        errors = error.problems
    if as_json:
        document = {"ok": not errors, "rules": rules}
        lists = {"errors": errors, "warnings": warnings}
        json_output.document(
            document
            | {name: [asdict(problem) for problem in found] for name, found in lists.items()}
        )
    else:
        _print(errors, Styled("error", "red"))
        _print(warnings, Styled("warning", "yellow"))
        if not errors:
            result(f"{file}: ", Styled("no errors", "green"), f", {len(rules)} rules")
    return EXIT_HAS_ERRORS if errors else 0


def _print(problems: Sequence[Problem], word: Styled) -> None:
    for problem in problems:
        result(f"{problem.file}({problem.line},{problem.column}): ", word, f": {problem.message}")
