"""Names of each file of a grammar: its own rules, imported ones, phrase sets, and types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from uncaged_dispatcher.grammar.files import imports_types, target_of
from uncaged_dispatcher.grammar.limits import MAX_IMPORTED, MAX_RULES
from uncaged_dispatcher.grammar.phrases import PHRASES, phrase_alternatives
from uncaged_dispatcher.grammar.problems import GrammarError, Problem
from uncaged_dispatcher.grammar.syntax import (
    Alternative,
    Capture,
    File,
    ImportStatement,
    Rule,
    RuleCapture,
    RuleRef,
    SourceText,
)
from uncaged_dispatcher.grammar.walking import all_parts


@dataclass
class Definition:
    """All definitions of one rule name in one file; a phrase set has alternatives of its own."""

    name: str
    scope: FileNames
    rules: list[Rule] = field(default_factory=list)
    phrases: tuple[Alternative, ...] = ()

    @property
    def exported(self) -> bool:
        """Return whether other files may import the rule."""
        return any(rule.exported for rule in self.rules)


@dataclass
class FileNames:
    """The names that mean something in one file.

    ``targets`` maps rule names to places in the list of all definitions; ``types`` maps imported
    types and entities to the offset of their import. With ``any_type`` the file imports all types
    of a schema, whose names are not known.
    """

    source: SourceText
    own: dict[str, int] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)
    imported: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    any_type: bool = False


class Names:
    """All definitions of a grammar with the scopes of its files; collects problems of imports."""

    def __init__(self, files: Mapping[str, File]) -> None:
        self.definitions: list[Definition] = []
        self.scopes = {path: FileNames(file.source) for path, file in files.items()}
        self.problems: list[Problem] = []
        self._imported = 0
        for path, file in files.items():
            self._define(self.scopes[path], file)
        for path, file in files.items():
            for statement in file.imports:
                self._import(path, statement)
        self._add_phrase_sets()

    def _define(self, scope: FileNames, file: File) -> None:
        for rule in file.rules:
            place = scope.own.setdefault(rule.name, len(self.definitions))
            if place == len(self.definitions):
                self.definitions.append(Definition(rule.name, scope))
            self.definitions[place].rules.append(rule)
        if len(self.definitions) > MAX_RULES:
            message = f"a grammar has at most {MAX_RULES:,} rules"
            raise GrammarError([Problem.at(scope.source, 0, message)])
        scope.targets.update(scope.own)

    def _import(self, path: str, statement: ImportStatement) -> None:
        scope = self.scopes[path]
        if statement.source is None or imports_types(statement):
            scope.any_type |= statement.names is None
            for name in statement.names or ():
                if name.text in scope.types:
                    self._refuse(scope, statement, f"the type '{name.text}' is imported twice")
                scope.types.setdefault(name.text, statement.at)
            return
        exporting = self.scopes[target_of(path, statement)]
        for rule_name in self._imported_names(exporting, statement):
            self._imported += 1
            if self._imported > MAX_IMPORTED:
                message = f"the files of a grammar import more than {MAX_IMPORTED:,} rules"
                raise GrammarError([Problem.at(scope.source, statement.at, message)])
            place = exporting.own.get(rule_name)
            if place is None or not self.definitions[place].exported:
                reason = "is not in" if place is None else "is not exported by"
                self._refuse(
                    scope, statement, f"the rule <{rule_name}> {reason} {statement.source!r}"
                )
            elif rule_name in scope.targets:
                kind = (
                    "imported twice" if rule_name in scope.imported else "imported and defined here"
                )
                self._refuse(scope, statement, f"the rule <{rule_name}> is {kind}")
            else:
                scope.targets[rule_name] = place
                scope.imported[rule_name] = statement.at

    def _imported_names(self, exporting: FileNames, statement: ImportStatement) -> Iterator[str]:
        if statement.names is not None:
            yield from (name.text for name in statement.names)
            return
        for name, place in exporting.own.items():
            if self.definitions[place].exported:
                yield name

    def _refuse(self, scope: FileNames, statement: ImportStatement, message: str) -> None:
        self.problems.append(Problem.at(scope.source, statement.at, message))

    def _add_phrase_sets(self) -> None:
        """Define the phrase sets that a file refers to without a rule of that name."""
        built_in = FileNames(SourceText("built-in phrases", ""))
        for definition in tuple(self.definitions):
            targets = definition.scope.targets
            for name, _ in references(definition):
                if name in PHRASES and name not in targets:
                    if name not in built_in.own:
                        built_in.own[name] = len(self.definitions)
                        phrases = phrase_alternatives(name)
                        self.definitions.append(Definition(name, built_in, phrases=phrases))
                    targets[name] = built_in.own[name]


def references(definition: Definition) -> Iterator[tuple[str, int]]:
    """Yield the rule names in a definition with their offsets, in the order of the text."""
    for rule in definition.rules:
        for part in all_parts(rule.alternatives):
            if isinstance(part, RuleRef):
                yield part.rule, part.at
            elif isinstance(part, RuleCapture):
                yield part.rule, part.rule_at


def types_of(definition: Definition) -> Iterator[str]:
    """Yield the types that a definition names."""
    for rule in definition.rules:
        yield from (name.text for name in rule.types)
        for part in all_parts(rule.alternatives):
            if isinstance(part, Capture):
                yield part.type
