"""Files of a grammar: the main one and those that imports name, parsed once each."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from posixpath import dirname, join, normpath

from uncaged_dispatcher.grammar.limits import MAX_CHARACTERS, MAX_FILES
from uncaged_dispatcher.grammar.parsing import parse_file
from uncaged_dispatcher.grammar.problems import GrammarError, Problem
from uncaged_dispatcher.grammar.syntax import File, ImportStatement, SourceText


def imports_types(statement: ImportStatement) -> bool:
    """Return whether an import is of a schema's types: its file is no grammar."""
    return statement.source is not None and not statement.source.endswith(".agr")


def target_of(importer: str, statement: ImportStatement) -> str:
    """Return the path of the file that an import of the file *importer* names."""
    return normpath(join(dirname(importer), statement.source or ""))


def imported_files(text: str, *, name: str = "main.agr") -> list[str]:
    """Return the paths of the grammar files that a grammar imports, as `load` looks them up.

    Raises:
        GrammarError: the text is no grammar.
    """
    statements = parse_file(SourceText(name, text)).imports
    return [
        target_of(name, found) for found in statements if found.source and not imports_types(found)
    ]


def read_files(
    text: str, name: str, files: Mapping[str, str], *, value_expressions: bool
) -> dict[str, File]:
    """Return the parsed files by their paths, the main one first.

    Raises:
        GrammarError: a file has an error of syntax, is missing, or there is too much text.
    """
    texts = {normpath(path): content for path, content in files.items()} | {normpath(name): text}
    found: dict[str, File] = {}
    problems: list[Problem] = []
    waiting = deque([normpath(name)])
    size = 0
    while waiting:
        path = waiting.popleft()
        if path in found:
            continue
        source = SourceText(name if path == normpath(name) else path, texts[path])
        size += len(source.text)
        if size > MAX_CHARACTERS:
            message = (
                f"the files of a grammar have more than {MAX_CHARACTERS:,} characters together"
            )
            raise GrammarError([*problems, Problem.at(source, 0, message)])
        if len(found) >= MAX_FILES:
            message = f"a grammar has more than {MAX_FILES:,} files"
            raise GrammarError([*problems, Problem.at(source, 0, message)])
        try:
            file = parse_file(source, value_expressions=value_expressions)
        except GrammarError as error:
            problems.extend(error.problems)
            file = File(source, (), ())
        found[path] = file
        for statement in file.imports:
            if statement.source is None or imports_types(statement):
                continue
            target = target_of(path, statement)
            if target in texts:
                waiting.append(target)
            else:
                message = f"there is no file {statement.source!r} to import from"
                problems.append(Problem.at(source, statement.at, message))
    if problems:
        raise GrammarError(problems)
    return found
