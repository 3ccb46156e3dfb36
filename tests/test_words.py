"""Plain terms of the field in the text of code, tests and docs, and one meaning for each public
class name.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOPS = ("bundles", "engine", "roles", "templates", "cli")
"""The outer folders that hold the product's code."""
READ_BY_PEOPLE = (*TOPS, "benchmarks")
"""The outer folders whose texts are checked."""
WORDS = re.compile(
    r"\b(?:whoever|(?:no|some|any|every)body|(?:is|are|was|were|be|been|being)\s+told|mend(?:s|ed|ing)?|(?:came|comes?)\s+to"
    r"|stands?(?! (?:in )?for\b)|stood)\b",
    re.IGNORECASE,
)
"""Words outside the field's terms: name the component or the caller; log, print, send or raise;
fix; is.
"""
CLASS = re.compile(r"^ *class ([A-Za-z]\w*)[(:\[]", re.MULTILINE)
"""A public class; its name is the group. A tree of each module would take ten seconds."""
SUBJECT = re.compile(r"(?:\A|[.:;]\s+)What\s+(?:is|are|was|were)\b")
"""A clause as the subject of a sentence: name the thing."""
NAMES = re.compile(r"(?:said|given|heard|taken)\Z", re.IGNORECASE)
"""Participles that name nothing."""

PINNED: dict[str, set[str]] = {
    "bundles/uncaged_bundles/carried/block.py": {"came to", "given", "said", "somebody", "stands"},
    "bundles/uncaged_bundles/carried/expression.py": {"came to", "comes to", "given"},
    "bundles/uncaged_bundles/carried/script.py": {"said", "stand", "stands"},
    "bundles/uncaged_bundles/carried/task.py": {
        "came to",
        "given",
        "heard",
        "mend",
        "said",
        "stand",
    },
    "bundles/uncaged_bundles/carried/template.py": {"stand", "stands"},
    "bundles/uncaged_bundles/carried/workflow.py": {"stand"},
    "engine/uncaged_agents/model.py": {"nobody", "stand", "stands", "are told"},
    "engine/uncaged_agents/tools/files.py": {"stands"},
    "engine/uncaged_agents/tools/toolbox.py": {"stands"},
    "engine/uncaged_tools/mcp/threads.py": {"stands", "what is"},
    "engine/uncaged_models/extractor.py": {"somebody"},
    "engine/uncaged_models/prompts/extract.py": {"stands"},
    "engine/uncaged_models/prompts/history.py": {"stands"},
    "roles/uncaged_roles/coder.py": {"mend", "mended", "what was"},
    "roles/uncaged_roles/planner.py": {"anybody", "mends", "somebody"},
    "roles/uncaged_roles/reviewer.py": {"came to", "mend"},
    "templates/uncaged_templates/demo_files.py": {"somebody"},
}
"""Words in texts whose bytes may not change, by the module's path. `carried` is the code that built
bundles contain, and the roles are the prompts of `solve-issue`: other bytes would be other hashes.
The demo's issue is part of the reviewed prompts (tests/roles/prompts).
"""


def modules(tops: tuple[str, ...] = TOPS) -> dict[str, str]:
    """Return the source text of each module below *tops*, by its path from the root."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for top in tops
        for path in sorted((ROOT / top).rglob("*.py"))
        if "__pycache__" not in path.parts
    }


def pages() -> dict[str, str]:
    """Return the text of each page for people by its path: the docs without the decisions, and of
    the changelog what is not released.
    """
    paths = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "CHANGELOG.md")]
    paths += [
        path for path in sorted((ROOT / "docs").rglob("*.md")) if path.parent.name != "decisions"
    ]
    found = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}
    changelog = found["CHANGELOG.md"].split("\n## ")
    return {**found, "CHANGELOG.md": "\n## ".join(changelog[:2])}


@lru_cache(maxsize=1)
def parsed(source: str) -> ast.Module:
    """Return a module's tree, which several of the functions below read in turn."""
    return ast.parse(source)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment, docstring and message of a module with its line."""
    yield from comments(source)
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def remarks(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment and docstring of a module with its line, and no string that is data."""
    yield from comments(source)
    for node in ast.walk(parsed(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text
            case _:
                pass


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield each comment of a module with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def names(source: str) -> Iterator[tuple[int, str]]:
    """Yield each name that a module defines with its line."""
    for node in ast.walk(parsed(source)):
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
            ):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield node.lineno, name
            case _:
                pass


def violations(source: str, pinned: set[str]) -> list[str]:
    """Return `line: word` for each word outside the house's terms that a module has."""
    found = search(texts(source))
    found += [(line, name) for line, name in names(source) if NAMES.match(name)]
    return [f"{line}: {word}" for line, word in sorted(found) if word.lower() not in pinned]


def remark_violations(source: str) -> list[str]:
    """Return `line: word` for each word outside the house's terms in a test's comments and
    docstrings.
    """
    return [f"{line}: {word}" for line, word in sorted(search(remarks(source)))]


def page_violations(text: str) -> list[str]:
    """Return `line: word` for each word outside the house's terms that a page has."""
    return [f"{line}: {word}" for line, word in sorted(search([(1, text)]))]


def search(found: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return each word outside the house's terms with its line, also one across the end of a
    line.

    Args:
        found: texts, each with the number of its first line.
    """
    return [
        (line + text.count("\n", 0, match.start()), " ".join(match.group().strip(".:;").split()))
        for line, text in found
        for pattern in (WORDS, SUBJECT)
        for match in pattern.finditer(text)
    ]


def test_each_module_uses_the_words_of_the_field() -> None:
    """Comments, docstrings, messages and names have none of the words on the list."""
    wrong = {
        path: found
        for path, source in modules(READ_BY_PEOPLE).items()
        if (found := violations(source, PINNED.get(path, set())))
    }
    assert wrong == {}


def test_comments_and_docstrings_of_tests_use_the_words_of_the_field() -> None:
    """Comments and docstrings of the tests have none of the words on the list; texts that a test
    checks may quote any.
    """
    wrong = {
        path: found
        for path, source in modules(("tests",)).items()
        if (found := remark_violations(source))
    }
    assert wrong == {}


def test_a_page_uses_the_words_of_the_field() -> None:
    """README, docs, CONTRIBUTING, AGENTS and the changelog's new entries have none of the words on
    the list.
    """
    wrong = {path: found for path, text in pages().items() if (found := page_violations(text))}
    assert wrong == {}


def test_a_pinned_word_is_in_its_module() -> None:
    """A word that is pinned for a module occurs in that module's text."""
    sources = modules()
    for path, words in PINNED.items():
        found = {entry.partition(": ")[2].lower() for entry in violations(sources[path], set())}
        assert words <= found, path


def test_a_public_class_name_exists_once() -> None:
    """Each public class name belongs to one class of the product; carried code runs in a bundle's
    process, and has names of its own.
    """
    count: dict[str, int] = {}
    for path, source in modules().items():
        if "/carried/" in path:
            continue
        for name in CLASS.findall(source):
            count[name] = count.get(name, 0) + 1
    assert [name for name, number in count.items() if number > 1] == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""Whoever asks."""', ["1: Whoever"]),
        ("# one\n# mend it", ["2: mend"]),
        ('raise ValueError(f"{1} was told")', ["1: was told"]),
        ('"""One.\n\nTwo stands here."""', ["3: stands"]),
        ('"""The worker is\n    told."""', ["1: is told"]),
        ('"""The mark that stands for a value."""', []),
        ('"""What is lent."""', ["1: What is"]),
        ("def f(given: int) -> None: ...", ["1: given"]),
        ("heard = 1\nx.heard = heard", ["1: heard"]),
        ("class Said: ...", ["1: Said"]),
        ("recommend = amended = 1", []),
    ],
)
def test_each_kind_of_text_is_searched(source: str, expected: list[str]) -> None:
    """A word is found in a docstring, a comment, a message and a name, with its line."""
    assert violations(source, set()) == expected


def test_data_of_a_test_is_not_searched() -> None:
    """A word is found in a test's docstring or comment, also inside a function, and not in a string
    of its data.
    """
    source = 'def test() -> None:\n    """Nobody."""\n    said = "It stands."  # mend\n'
    assert remark_violations(source) == ["2: Nobody", "3: mend"]


def test_each_line_of_a_page_is_searched() -> None:
    """A word is found on a page with its line, also where it goes over the end of one."""
    page = "# What is said\n\nThe worker is\ntold. What is\nlent stands there."
    assert page_violations(page) == ["3: is told", "4: What is", "5: stands"]


def test_only_new_entries_of_the_changelog_are_searched() -> None:
    """The history of releases keeps its words."""
    assert "## Unreleased" in pages()["CHANGELOG.md"]
    assert "## 0.1.0" not in pages()["CHANGELOG.md"]
