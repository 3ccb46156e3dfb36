"""Getting data out of answers."""

from __future__ import annotations

import json
import threading
import warnings
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from testbed.roles import SCHEMA
from uncaged_engine.journal.codec import decode, encode
from uncaged_models.prompts.extract import Extracted, Unfit, checker, extract

DONE = '```json\n{"status": "done"}\n```'
STUCK = '```json\n{"status": "stuck"}\n```'
REVIEW = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"status": {"const": "approved"}},
            "required": ["status"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "status": {"const": "rejected"},
                "issues": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["status", "issues"],
        },
    ]
}


def take(text: str, schema: dict[str, Any] = SCHEMA) -> Extracted | Unfit:
    return extract(text, checker(schema))


def problem(text: str, schema: dict[str, Any] = SCHEMA) -> str:
    found = take(text, schema)
    assert isinstance(found, Unfit), found
    return found.problem


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (f"All good.\n\n{DONE}\n", "All good."),
        (f"All good.\n{DONE}\nBye.", "All good.\nBye."),
        (DONE, '{"status": "done"}'),
        ('  {"status": "done"}\n', '{"status": "done"}'),
        ('Text.\n```\n{"status": "done"}\n```', "Text."),
        ('Text.\n```json\n{"status": "done"}', "Text."),
        (f'See:\n```json\n{{"name": "pkg"}}\n```\n{DONE}', 'See:\n```json\n{"name": "pkg"}\n```'),
        (f"{DONE}\nAgain:\n{DONE}", f"{DONE}\nAgain:"),
        (f"{DONE.replace('json', 'JSON')}\n```\n{{ int x; }}\n```", "```\n{ int x; }\n```"),
    ],
)
def test_the_block_is_taken_out_of_the_answer(text: str, content: str) -> None:
    """The last json block, else an untagged object, else the answer as a whole; what is left is the
    content, never empty.
    """
    assert take(text) == Extracted(meta={"status": "done"}, content=content)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I am done.", "there is no fenced json block"),
        ("", "there is no fenced json block"),
        (
            "```json\n{\n```",
            "the block is not JSON: Expecting property name enclosed in double quotes, line 2, column 1",
        ),
        ("```json\n[1]\n```", "must hold a JSON object, not list"),
        ('```json\n{"status": "done", "status": "stuck"}\n```', "the key 'status' stands twice"),
        ('```json\n{"status": NaN}\n```', "NaN is not a JSON number"),
        ('```json\n{"status": 1e999}\n```', "not JSON"),
        ('```json\n{"status": "\\ud800"}\n```', "half of a surrogate pair"),
        ("```json\n" + '{"a":' * 100_000 + "\n```", "nested too deeply"),
        ("```json\n" + '{"a":' * 40 + "1" + "}" * 40 + "\n```", "nested deeper than 32"),
        ('```json\n{"status": ' + "9" * 5000 + "}\n```", "not JSON"),
        (f"```text\n{DONE}", "there is no fenced json block"),
    ],
)
def test_an_unusable_answer_has_a_problem_in_words(text: str, words: str) -> None:
    """An agent gets to read this: what is wrong, and where."""
    assert words in problem(text)


def test_the_last_block_counts_even_when_an_earlier_one_fits() -> None:
    """A quoted file may hold a block that fits; taking it in place of the agent's own would be
    guessing.
    """
    assert (
        problem(f'{DONE}\n```json\n{{"status": "finished"}}\n```')
        == "status: 'finished' is not one of ['done', 'stuck']"
    )


def test_two_different_blocks_that_fit_are_no_answer() -> None:
    """Of two different blocks neither can be preferred."""
    assert (
        problem(f"{DONE}\n{STUCK}")
        == "2 fenced json blocks fit and differ; give exactly one, at the end"
    )


@pytest.mark.parametrize(
    "hidden",
    [
        f"<!--\n{STUCK}\n-->",
        STUCK.replace("```", "~~~"),
        STUCK.replace("```json", "   ```` JSON hidden").replace("\n```", "\n````"),
        STUCK.replace("\n", "\r\n"),
        f"<details><summary>all</summary>\n\n{STUCK}\n\n</details>",
    ],
    ids=["comment", "tildes", "indented", "returns", "folded"],
)
def test_a_second_block_cannot_hide(hidden: str) -> None:
    """Before or after the visible one, a block that fits and differs makes the answer unusable."""
    for text in (f"{hidden}\n{DONE}", f"{DONE}\n{hidden}"):
        assert problem(text) == "2 fenced json blocks fit and differ; give exactly one, at the end"


@pytest.mark.parametrize(
    "quoted",
    [
        f"````markdown\n{STUCK}\n````",
        STUCK.replace("json", "text"),
        "".join(f"    {line}\n" for line in STUCK.splitlines()),
    ],
    ids=["inside another", "another tag", "indented as code"],
)
def test_what_is_no_block_of_its_own_is_no_answer(quoted: str) -> None:
    """A quoted block is shown as a part of the text, and counts as one."""
    assert take(f"{DONE}\n{quoted}") == Extracted(
        meta={"status": "done"}, content=quoted.rstrip("\n").strip()
    )


def test_nothing_is_filled_in() -> None:
    """A missing field is an error, a default in the schema notwithstanding."""
    schema = {**SCHEMA, "properties": {"status": {"type": "string", "default": "done"}}}
    assert problem("```json\n{}\n```", schema) == "the object: 'status' is a required property"


def test_errors_have_dotted_paths_and_an_end() -> None:
    """All errors come at once in the order of the data, but no more than a person or an agent can
    read.
    """
    schema = {"properties": {"phases": {"items": {"properties": {"name": {"type": "string"}}}}}}
    phases = [{"name": number} for number in range(11)]
    lines = problem(json.dumps({"phases": phases}), schema).splitlines()
    assert lines[0] == "phases[0].name: 0 is not of type 'string'"
    assert lines[-1] == "and 3 more"
    assert len(lines) == 9
    assert len(problem(json.dumps({"status": "x" * 100_000}))) < 300


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"status": "rejected"}, "the object: 'issues' is a required property"),
        ({"status": "rejected", "issues": [1]}, "issues[0]: 1 is not of type 'string'"),
        ({"status": "maybe"}, "status: must be one of 'approved', 'rejected'"),
    ],
)
def test_of_several_forms_the_one_that_was_meant_is_explained(data: object, words: str) -> None:
    """ "Is not valid under any of the given schemas" is of no use."""
    assert problem(json.dumps(data), REVIEW) == words


def test_a_schema_cannot_make_the_engine_fetch_anything() -> None:
    """A reference to a URL is an error, not a request to a server of the bundle's choice."""
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/x"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = problem(DONE, {"$ref": url})
        server.shutdown()
        serving.join()
    assert f"refers to {url!r}" in said
    assert asked == []


def test_a_schema_that_is_none_fails_in_words() -> None:
    """Bundles are checked when they are added; a bad one that got in all the same must not end the
    worker.
    """
    assert "schema cannot be used" in problem(DONE, {"properties": {"status": {"pattern": "("}}})


@pytest.mark.parametrize(
    "text",
    [
        '{"status": "done", "files": ["ü", "\\u0000", "\\ud83d\\ude00"]}',
        '{"status":"done","files":[]}',
    ],
)
def test_what_is_taken_fits_into_a_journal(text: str) -> None:
    """The journal's codec accepts every value that passes here."""
    found = take(text)
    assert isinstance(found, Extracted)
    assert decode(encode(found.meta).encode()) == found.meta
