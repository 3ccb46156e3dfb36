"""The verb `grammar`: checks grammars of sentences, and shows what they read and offer."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..display import json_output
from ..display.output import Styled, note, result
from ..inputs.options import json_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uncaged_dispatcher.grammar import Grammar, Problem

EXIT_HAS_ERRORS = 1
EXIT_HAS_NO_READING = 1


@click.group("grammar")
def command() -> None:
    """Check and try the grammars of sentences; docs/grammar.md has the language."""


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


@command.command("match", short_help="Show how a grammar reads a sentence.")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("sentence")
@click.option("--best", is_flag=True, help="Only the best reading, as the dispatcher reads.")
@json_option
def match(file: Path, sentence: str, best: bool, as_json: bool) -> int:
    """Print the value of each reading of SENTENCE by the grammar in FILE."""
    from uncaged_dispatcher.grammar import Readings

    grammar = _load(file)
    if best:
        found = grammar.best(sentence)
        readings = Readings(() if found is None else (found,))
    else:
        readings = grammar.match(sentence)
    if as_json:
        listed = [reading.document() for reading in readings]
        json_output.document({"readings": listed, "cut": readings.cut})
    else:
        for reading in readings:
            result(json.dumps(reading.document()["value"], ensure_ascii=False))
        if readings.cut:
            note(f"there are more than these {len(readings):,} readings")
        if not readings:
            note("the sentence has no reading")
    return 0 if readings else EXIT_HAS_NO_READING


@command.command("complete", short_help="Show what can follow the beginning of a sentence.")
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("prefix")
@click.option("--backward", is_flag=True, help="Offer the last word or capture again.")
@json_option
def complete(file: Path, prefix: str, backward: bool, as_json: bool) -> None:
    """Print the words and captures of the grammar in FILE that can follow PREFIX."""
    completion = _load(file).complete(prefix, "backward" if backward else "forward")
    if as_json:
        json_output.document(completion.document())
        return
    note("after ", repr(prefix[: completion.matched_prefix_length]), ":")
    for group in completion.groups:
        for word in group.completions:
            result(word)
    for capture in completion.properties:
        result("$(", ", ".join(capture.names), ")")


def _load(file: Path) -> Grammar:
    """Return the grammar in a file."""
    from uncaged_dispatcher.grammar import load

    from ..inputs.grammars import read_grammar

    text, files = read_grammar(file)
    return load(text, name=str(file), files=files)


def _print(problems: Sequence[Problem], word: Styled) -> None:
    for problem in problems:
        result(f"{problem.file}({problem.line},{problem.column}): ", word, f": {problem.message}")
