"""Evidence for and against one edit, from the text around it and the errors of the failing run."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from .edit import SourceEdit
from .edit_site import EditSite
from .module_index import TOKEN

WORD = re.compile(r"[^\W\d]\w*")
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


def traits_of(site: EditSite, edit: SourceEdit) -> Iterator[str]:
    """Yield the traits of *edit*, whose factors are in `odds`."""
    before, after = WORD.findall(edit.before), WORD.findall(edit.after)
    added = [word for word in dict.fromkeys(after) if word not in before and not is_known(word)]
    if added:
        yield _nearness(site, edit, added)
    if len(before) == 1 == len(after) and before != after:
        alike = SequenceMatcher(None, before[0], after[0], autojunk=False).ratio() >= ALIKE
        yield "similar name" if alike else "different name"
    yield _familiarity(site, edit)
    yield from _of_failure(site, edit, added)
    if added and _is_new_dependency(site, edit, added):
        yield "new dependency"
    shown = any(low <= edit.start and edit.end <= high for low, high in site.messages)
    if shown and edit.after in site.index.variables and edit.after not in site.scope.stored:
        yield "constant in a message"
    if edit.nature == "hide":
        yield "hides the failure"
    if before:
        yield from _losses(site, edit, [word for word in before if word not in after])


def is_known(word: str) -> bool:
    """Return whether *word* is of the language and not of the program."""
    return keyword.iskeyword(word) or word in ("self", "cls")


def _nearness(site: EditSite, edit: SourceEdit, added: Sequence[str]) -> str:
    """Return where the least known of the *added* words is used."""
    line, scope = edit.line, site.scope
    far = 0
    for word in added:
        uses = [*scope.loaded.get(word, ()), *scope.stored.get(word, ())]
        if any(abs(node.lineno - line) <= NEAR_LINES for node in uses):
            continue
        if uses or word in scope.parameters or word in scope.attributes:
            far = max(far, 1)
        elif word in site.index.tokens:
            far = max(far, 2)
        else:
            far = 3
    return ("used nearby", "used in the function", "used in the file", "used nowhere")[far]


def _familiarity(site: EditSite, edit: SourceEdit) -> str:
    """Return how many of the sequences of three tokens that the edit makes are in the file."""
    source = site.source
    low = source.data.rfind(b"\n", 0, edit.start) + 1
    high = source.data.find(b"\n", edit.end)
    high = len(source.data) if high < 0 else high
    head = TOKEN.findall(source.text(low, edit.start))[-2:]
    tail = TOKEN.findall(source.text(edit.end, high))[:2]
    tokens = [*head, *TOKEN.findall(edit.after), *tail]
    made = [tuple(tokens[at : at + 3]) for at in range(len(tokens) - 2)]
    if not made:
        return "no sequence"
    share = sum(sequence in site.index.sequences for sequence in made) / len(made)
    if share >= 1:
        return "all sequences known"
    return "most sequences known" if share >= 0.5 else "some sequences known" if share else "new"


def _of_failure(site: EditSite, edit: SourceEdit, added: Sequence[str]) -> Iterator[str]:
    errors = site.facts.errors
    missing = any("NoneType" in message for _, message in errors)
    tested = re.search(r"\bis (not )?None\b", edit.after) and "None" not in edit.before
    if (missing and tested) or any(edit.kind in KINDS_OF_ERROR.get(kind, ()) for kind, _ in errors):
        yield "fits the error"
    literal = re.fullmatch(r"'([^'\\]+)'|\"([^\"\\]+)\"|-?(\d\d[\d.]*)", edit.after)
    words = [word for word in added if len(word) > 2]
    if literal is not None:
        words.append(next(text for text in literal.groups() if text))
    if words and any(word in message for word in words for _, message in errors):
        yield "named by the error"


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
