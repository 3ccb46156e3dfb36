"""Inference of a task script's parameters from its reads of `params`."""

from __future__ import annotations

import pytest
from uncaged_bundles.builders.inference.guess import Guess
from uncaged_bundles.builders.inference.task import parameters
from uncaged_bundles.builders.recipes.recipe_flow import build_flow, read_script_file
from uncaged_bundles.validation.validate import read_bundle

HEAD = "async def execute(api, params):\n    "


@pytest.mark.parametrize(
    ("body", "guesses"),
    [
        ("return 1", []),
        ("return params.url", [Guess(name="url", required=True)]),
        ("return params['a key']", [Guess(name="a key", required=True)]),
        ("return params.get('place', 'Bern')", [Guess(name="place", default="Bern")]),
        ("return params.get('days', 3)", [Guess(name="days", kind="number", default=3)]),
        ("return params.get('deep', False)", [Guess(name="deep", kind="boolean", default=False)]),
        ("return [1, 2][: params.few]", [Guess(name="few", kind="integer", required=True)]),
        (
            "return [n for n in range(params.times)]",
            [Guess(name="times", kind="integer", required=True)],
        ),
        (
            "return params.share * 2 if params.share > 0.5 else 0",
            [Guess(name="share", kind="number", required=True)],
        ),
        ("return params.log_file", [Guess(name="log_file", kind="path", required=True)]),
        (
            "return f'{params.b}', params.a, params.b * 2",
            [Guess(name="b", kind="number", required=True), Guess(name="a", required=True)],
        ),
        ("return list(params.keys()), other.name", []),
    ],
    ids=range(12),
)
def test_each_name_that_is_read_is_a_parameter(body: str, guesses: list[Guess]) -> None:
    """In the order of the text; what is read without a default is required, what must be a number
    by its place is one.
    """
    assert list(parameters(HEAD + body + "\n")) == guesses


def test_a_task_from_a_file_can_be_run_with_what_it_reads() -> None:
    """The schema of the task has the parameters that its script reads, and a note lists them."""
    built = build_flow(
        read_script_file("sum", ".py", HEAD + "return (await api.web_fetch(params.url)).text\n")
    )
    assert built.notes[0] == "parameters, by its text: url"
    schema = read_bundle(built.source).descriptor.parameters
    assert (schema["properties"], schema["required"]) == ({"url": {"type": "string"}}, ["url"])
