"""Fenced blocks in what agents write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_models.prompts.fences import blocks_of, fenced


def found(text: str) -> list[tuple[str, str]]:
    return [(block.tag, block.content) for block in blocks_of(text)]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("no block", []),
        ("```json\n{}\n```", [("json", "{}\n")]),
        ("text\n```JSON title=x\n{}\n```\nmore", [("json", "{}\n")]),
        ("~~~\na\n~~~", [("", "a\n")]),
        ("```json\n{}", [("json", "{}")]),
        ("````md\n```json\n{}\n```\n````", [("md", "```json\n{}\n```\n")]),
        ("```a\n~~~\n```\n", [("a", "~~~\n")]),
        ("```a\nx\n````\n", [("a", "x\n")]),
        ("```a\nx\n``` b\n```\n", [("a", "x\n``` b\n")]),
        ("```json\r\n{}\r\n```\r\n", [("json", "{}\r\n")]),
        ("    ```json\n{}\n", []),
        ("``` a`b\n", []),
        ("a\u2028```json\nx\n", []),
        ("inline ```json {} ``` only", []),
    ],
)
def test_blocks_are_found_as_markdown_has_them(text: str, blocks: list[tuple[str, str]]) -> None:
    """Longer fences hold shorter ones, the other character does not close, the last one may be
    open, lines end at LF alone.
    """
    assert found(text) == blocks


def test_a_block_knows_its_place() -> None:
    """Cutting from start to end takes the fences along and nothing else."""
    text = "before\n```json\n{}\n```\nafter"
    block = blocks_of(text)[0]
    assert text[: block.start] + text[block.end :] == "before\nafter"


@given(st.text(alphabet="`~ ab\n", max_size=60))
def test_nothing_inside_a_fenced_text_ends_its_fence(text: str) -> None:
    """Whatever an agent wrote, quoted in a prompt it stays one block."""
    blocks = blocks_of(f"before\n{fenced(text)}\nafter\n```json\n{{}}\n```\n")
    assert [block.tag for block in blocks] == ["text", "json"]
    assert blocks[0].content.rstrip("\n") == text.rstrip()
