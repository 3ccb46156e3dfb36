"""Evidence for and against one edit, from the text around it and the errors of the failing run."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache

from uncaged_bundles.syntax import parse_expression

from .edit import SourceEdit
from .edit_site import EditSite
from .facts import ValueFacts
from .module_index import TOKEN, ModuleIndex
from .scopes import Function, NameScope
from .spans import SourceFile

WORD = re.compile(r"[^\W\d]\w*")
NONE_TEST = re.compile(r"\bis (not )?None\b")
LITERAL = re.compile(r"'([^'\\]+)'|\"([^\"\\]+)\"|-?(\d\d[\d.]*)")
MISSING_NAME = re.compile(r"\bname '([^\W\d]\w*)' is not defined")
NEAR_LINES = 4
ALIKE = 0.7
KINDS_OF_ERROR = {
    "NameError": ("unknown name", "import added", "variable"),
    "UnboundLocalError": ("unknown name", "assignment added", "indentation"),
    "AttributeError": ("attribute", "parameter stored", "sibling call", "condition extended"),
    "KeyError": ("string", "sibling call", "condition extended"),
    "IndexError": ("number", "off by one", "comparison", "slice", "index", "condition extended"),
    "RecursionError": ("number", "off by one", "comparison", "variable", "jump", "guard"),
    "TypeError": ("argument swap", "argument added", "argument dropped", "conversion", "await"),
    "ZeroDivisionError": ("number", "condition extended", "comparison", "guard"),
}
"""Kinds of edits that an error of the failing test makes likelier."""


class Evidence:
    """Evidence on the edits of one file. What several edits share is computed once."""

    def __init__(self, source: SourceFile, index: ModuleIndex, facts: ValueFacts) -> None:
        self._source, self._index, self._errors = source, index, facts.errors
        self._none_used = any("NoneType" in message for _, message in facts.errors)
        self._likely_kinds = {
            likely for kind, _ in facts.errors for likely in KINDS_OF_ERROR.get(kind, ())
        }
        self._words = cache(WORD.findall)
        self._missing = _missing_names(source, index, facts)
        self._tokens = cache(TOKEN.findall)
        self._are_alike = cache(_are_alike)
        self._distance = cache(_distance)
        self._tokens_before = cache(self._find_tokens_before)
        self._tokens_after = cache(self._find_tokens_after)

    def traits_of(self, site: EditSite, edit: SourceEdit) -> Iterator[str]:
        """Yield the traits of *edit*, whose factors are in `odds`."""
        before, after = self._words(edit.before), self._words(edit.after)
        added = [word for word in dict.fromkeys(after) if word not in before and not is_known(word)]
        if added:
            yield self._nearness(site, edit, added)
        if len(before) == 1 == len(after) and before != after:
            yield "similar name" if self._are_alike(before[0], after[0]) else "different name"
        yield self._familiarity(edit)
        if self._errors:
            yield from self._of_failure(edit, added)
        if added and _is_new_dependency(site, edit, added):
            yield "new dependency"
        shown = any(low <= edit.start and edit.end <= high for low, high in site.messages)
        if shown and edit.after in site.index.variables and edit.after not in site.scope.stored:
            yield "constant in a message"
        if _runs_on_import(site, edit):
            yield "runs on import"
        if edit.nature == "hide":
            yield "hides the failure"
        if before:
            yield from _losses(site, edit, [word for word in before if word not in after])

    def keeps_missing_name(self, edit: SourceEdit) -> bool:
        """Return whether the failing run could not find a name of this file, and *edit* neither
        removes nor defines it: then it can only hide the failing line.
        """
        return bool(self._missing) and self._missing.isdisjoint(
            (*self._words(edit.before), *self._words(edit.after))
        )

    def _nearness(self, site: EditSite, edit: SourceEdit, added: Sequence[str]) -> str:
        """Return where the least known of the *added* words is used."""
        far = max(self._distance(site.index, site.scope, edit.line, word) for word in added)
        return ("used nearby", "used in the function", "used in the file", "used nowhere")[far]

    def _familiarity(self, edit: SourceEdit) -> str:
        """Return how many of the sequences of three tokens that the edit makes are in the file."""
        tokens = [
            *self._tokens_before(edit.start),
            *self._tokens(edit.after),
            *self._tokens_after(edit.end),
        ]
        made = [*zip(tokens, tokens[1:], tokens[2:], strict=False)]
        if not made:
            return "no sequence"
        share = sum(map(self._index.sequences.__contains__, made)) / len(made)
        if share >= 1:
            return "all sequences known"
        return (
            "most sequences known" if share >= 0.5 else "some sequences known" if share else "new"
        )

    def _find_tokens_before(self, start: int) -> list[str]:
        """Return the last two tokens of the line before *start*."""
        low = self._source.data.rfind(b"\n", 0, start) + 1
        return TOKEN.findall(self._source.text(low, start))[-2:]

    def _find_tokens_after(self, end: int) -> list[str]:
        """Return the first two tokens of the line after *end*."""
        high = self._source.data.find(b"\n", end)
        rest = self._source.text(end, len(self._source.data) if high < 0 else high)
        return TOKEN.findall(rest)[:2]

    def _of_failure(self, edit: SourceEdit, added: Sequence[str]) -> Iterator[str]:
        tested = (
            self._none_used
            and NONE_TEST.search(edit.after) is not None
            and "None" not in edit.before
        )
        if tested or edit.kind in self._likely_kinds:
            yield "fits the error"
        literal = LITERAL.fullmatch(edit.after)
        words = [word for word in added if len(word) > 2]
        if literal is not None:
            words.append(next(text for text in literal.groups() if text))
        if words and any(word in message for word in words for _, message in self._errors):
            yield "named by the error"


def _missing_names(source: SourceFile, index: ModuleIndex, facts: ValueFacts) -> frozenset[str]:
    """Return the names that the failing run could not find, and that the file uses and does not
    define.
    """
    errors = (message for kind, message in facts.errors if kind == "NameError")
    names = {name for message in errors for name in MISSING_NAME.findall(message)}
    if not names:
        return frozenset()
    used = set(WORD.findall(source.text(0, len(source.data))))
    return frozenset((names & used) - index.objects - index.module.stored.keys())


def is_known(word: str) -> bool:
    """Return whether *word* is of the language and not of the program."""
    return keyword.iskeyword(word) or word in ("self", "cls")


def _are_alike(before: str, after: str) -> bool:
    near = SequenceMatcher(None, before, after, autojunk=False)
    return near.quick_ratio() >= ALIKE and near.ratio() >= ALIKE


def _distance(index: ModuleIndex, scope: NameScope, line: int, word: str) -> int:
    """Return how far from *line* a *word* is used: 0 for a few lines, 1 in the function, 2 in the
    file, 3 nowhere.
    """
    uses = [*scope.loaded.get(word, ()), *scope.stored.get(word, ())]
    if any(abs(node.lineno - line) <= NEAR_LINES for node in uses):
        return 0
    if uses or word in scope.parameters or word in scope.attributes:
        return 1
    return 2 if word in index.tokens else 3


def _runs_on_import(site: EditSite, edit: SourceEdit) -> bool:
    """Return whether only a fresh import shows what the edit does: its code is in no function's
    body, and it is no literal default, which is changed in place.
    """
    if site.function is not None:
        return False
    statement = site.statement
    if not isinstance(statement, Function) or statement.decorator_list:
        return True
    try:
        ast.literal_eval(parse_expression(edit.after.lstrip(" =")))
    except (ValueError, SyntaxError):
        return True
    return False


def _is_new_dependency(site: EditSite, edit: SourceEdit, added: Sequence[str]) -> bool:
    """Return whether *edit* makes a condition depend on a variable that it did not use."""
    return any(
        any(word in site.names and word not in names for word in added)
        for low, high, names in site.conditions
        if low <= edit.start and edit.end <= high
    )


def _losses(site: EditSite, edit: SourceEdit, removed: Sequence[str]) -> Iterator[str]:
    """Yield what the edit takes from the function: the last use of a variable, the last
    recursion.
    """
    scope, source = site.scope, site.source
    if site.function is None:
        return
    for word in dict.fromkeys(removed):
        uses = scope.loaded.get(word, ())
        own = word in scope.stored or word in scope.parameters
        if own and uses and all(_inside(source.span(node), edit) for node in uses):
            yield "leaves a variable unused"
            break
    name = site.function.name
    calls = scope.calls.get(name, ())
    if name in removed and calls and all(_inside(source.span(node), edit) for node in calls):
        yield "ends the recursion"


def _inside(span: tuple[int, int], edit: SourceEdit) -> bool:
    return edit.start <= span[0] and span[1] <= edit.end
