"""Parser of grammar files: imports, rules, alternatives and their parts."""

from __future__ import annotations

import re

from uncaged_dispatcher.grammar.expressions import ExpressionParser
from uncaged_dispatcher.grammar.limits import MAX_CHARACTERS
from uncaged_dispatcher.grammar.scanning import SPACES, Scanner
from uncaged_dispatcher.grammar.syntax import (
    Alternative,
    Capture,
    File,
    Group,
    ImportStatement,
    Literal,
    Name,
    Part,
    Repeat,
    Rule,
    RuleCapture,
    RuleRef,
    SourceText,
    Spacing,
)

_RUN = re.compile(rf"[^|()<>$\-;{{}}\[\]\\/{SPACES}]++")
"""Characters of a word that mean nothing else; '/' is looked at alone, for comments."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(text: str, *, name: str = "main.agr") -> list[str]:
    """Return the names of the rules of a grammar in the order of their definitions.

    Only the syntax is checked: rules and files that are not there are no errors here.

    Raises:
        GrammarError: the text is no grammar; ``problems`` has the place.
    """
    names = (rule.name for rule in parse_file(SourceText(name, text)).rules)
    return list(dict.fromkeys(names))


def parse_file(source: SourceText, *, value_expressions: bool = True) -> File:
    """Return the tree of a file."""
    return _FileParser(source, value_expressions).file()


class _FileParser:
    def __init__(self, source: SourceText, value_expressions: bool) -> None:
        self._scanner = Scanner(source)
        self._values = ExpressionParser(self._scanner, operators=value_expressions)

    def file(self) -> File:
        scanner = self._scanner
        self._refuse_text()
        imports: list[ImportStatement] = []
        rules: list[Rule] = []
        scanner.skip_space()
        while not scanner.ended:
            if scanner.sees("<") or scanner.peek_name() == "export":
                rules.append(self._rule())
            elif scanner.peek_name() == "import":
                imports.append(self._import())
            else:
                scanner.fail_expecting("a rule or an import is expected")
        return File(scanner.source, tuple(imports), tuple(rules))

    def _refuse_text(self) -> None:
        scanner = self._scanner
        if len(scanner.text) > MAX_CHARACTERS:
            scanner.fail(
                f"the grammar has {len(scanner.text):,} characters; at most {MAX_CHARACTERS:,} are allowed"
            )
        if (nul := scanner.text.find("\0")) >= 0:
            scanner.fail("a NUL character is not allowed; write \\0", nul)
        if half := _SURROGATE.search(scanner.text):
            scanner.fail("half of a surrogate pair is no character", half.start())

    def _import(self) -> ImportStatement:
        scanner = self._scanner
        scanner.name("")
        at = scanner.at
        names: tuple[Name, ...] | None = None
        if not scanner.take("*"):
            scanner.expect("{", "after 'import', or '*'")
            names = self._imported_names()
        if names is not None and scanner.take(";"):
            return ImportStatement(names, None, at, at)
        if scanner.peek_name() != "from":
            scanner.fail_expecting("'from' is expected after the imported names")
        scanner.name("")
        source_at = scanner.at
        if not scanner.sees('"') and not scanner.sees("'"):
            scanner.fail_expecting("the name of a file in quotes is expected after 'from'")
        path = scanner.quoted()
        scanner.skip_space()
        scanner.expect(";", "at the end of an import")
        return ImportStatement(names, path, at, source_at)

    def _imported_names(self) -> tuple[Name, ...]:
        scanner = self._scanner
        names: list[Name] = []
        while not names or not scanner.sees("}"):
            at = scanner.at
            names.append(Name(scanner.name("a name to import is expected"), at))
            if not scanner.take(",") and not scanner.sees("}"):
                scanner.fail_expecting("',' or '}' is expected after an imported name")
        scanner.take("}")
        return tuple(names)

    def _rule(self) -> Rule:
        scanner = self._scanner
        exported = not scanner.sees("<")
        if exported:
            scanner.name("")
        at = scanner.at
        name = self._rule_name()
        spacing = self._spacing() if scanner.sees("[") else None
        types = self._types() if scanner.take(":") else ()
        scanner.expect("=", "after the name of a rule")
        alternatives = self._alternatives()
        scanner.expect(";", "at the end of a rule")
        return Rule(name, alternatives, spacing, types, exported, at)

    def _rule_name(self) -> str:
        scanner = self._scanner
        scanner.expect("<", "before the name of a rule")
        name = scanner.name("the name of a rule is expected")
        scanner.expect(">", "after the name of a rule")
        return name

    def _types(self) -> tuple[Name, ...]:
        scanner = self._scanner
        types: list[Name] = []
        while not types or scanner.take("|"):
            at = scanner.at
            types.append(Name(scanner.name("the name of a type is expected"), at))
        return tuple(types)

    def _spacing(self) -> Spacing:
        scanner = self._scanner
        scanner.take("[")
        if scanner.peek_name() != "spacing":
            scanner.fail_expecting("'spacing' is expected after '['")
        scanner.name("")
        scanner.expect("=", "after 'spacing'")
        word = scanner.peek_name()
        scanner.name("a spacing mode is expected")
        if word not in set(Spacing):
            scanner.fail(f"{word!r} is no spacing mode; there are: {', '.join(Spacing)}")
        scanner.expect("]", "after a spacing mode")
        return Spacing(word)

    def _alternatives(self) -> tuple[Alternative, ...]:
        alternatives = [self._alternative()]
        while self._scanner.take("|"):
            alternatives.append(self._alternative())
        return tuple(alternatives)

    def _alternative(self) -> Alternative:
        scanner = self._scanner
        at = scanner.at
        spacing = self._spacing() if scanner.sees("[") else None
        parts: list[Part] = []
        while part := self._part():
            parts.append(part)
        if not parts:
            scanner.fail("an alternative needs at least one word, capture, group or rule")
        value = self._values.parse() if scanner.take("->") else None
        return Alternative(tuple(parts), spacing, value, at)

    def _part(self) -> Part | None:
        """Parse the part that is next; nothing at the end of an alternative."""
        scanner = self._scanner
        at = scanner.at
        if scanner.take("$("):
            return self._capture()
        if scanner.take("("):
            scanner.enter("groups")
            alternatives = self._alternatives()
            if not scanner.sees(")"):
                scanner.fail_expecting("')' is expected at the end of a group")
            scanner.leave()
            return Group(alternatives, self._repeat(), at)
        if scanner.sees("<"):
            return RuleRef(self._rule_name(), at)
        if words := self._words():
            return Literal(words, at)
        if scanner.ended or scanner.text[scanner.at] in "|;)" or scanner.sees("->"):
            return None
        mark = scanner.text[scanner.at]
        return scanner.fail(f"{mark!r} has a meaning of its own; as text it is written \\{mark}")

    def _repeat(self) -> Repeat:
        """Parse the bracket that closes a group or a capture, with its mark."""
        scanner = self._scanner
        mark = scanner.text[scanner.at + 1 : scanner.at + 2]
        repeat = Repeat(mark) if mark in ("?", "*", "+") else Repeat.ONCE
        scanner.take(")" + repeat)
        return repeat

    def _capture(self) -> Capture | RuleCapture:
        scanner = self._scanner
        variable_at = scanner.at
        variable = scanner.name("the name of a variable is expected")
        typed = scanner.take(":")
        type_at = scanner.at
        rule = type_name = ""
        if typed and scanner.sees("<"):
            rule = self._rule_name()
        elif typed:
            type_name = scanner.name("a type or a rule is expected after ':'")
        if not scanner.sees(")"):
            scanner.fail_expecting("')' is expected at the end of a capture")
        optional = scanner.sees(")?")
        scanner.take(")?" if optional else ")")
        if rule:
            return RuleCapture(variable, rule, optional, variable_at, type_at)
        return Capture(variable, type_name or "string", optional, variable_at, type_at)

    def _words(self) -> tuple[str, ...]:
        """Parse the words of a sentence; a word ends at space, a comment or another part."""
        scanner = self._scanner
        words: list[str] = []
        word: list[str] = []
        while not scanner.ended:
            if run := _RUN.match(scanner.text, scanner.at):
                word.append(run.group())
                scanner.at = run.end()
            elif scanner.sees("\\"):
                word.append(scanner.escape())
            elif scanner.sees("/") and not scanner.sees("//") and not scanner.sees("/*"):
                word.append("/")
                scanner.at += 1
            else:
                words.append("".join(word))
                word = []
                if not scanner.skip_space():
                    break
        words.append("".join(word))
        return tuple(filter(None, words))
