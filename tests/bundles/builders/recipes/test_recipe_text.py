"""Recipes that are written again from built flows."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
from uncaged_bundles.builders.recipes.recipe import parse_recipe, read_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow, flow_of
from uncaged_bundles.builders.recipes.recipe_text import recipe_source, write_recipe
from uncaged_bundles.errors import BundleError
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.effect_kinds import KNOWN

SAMPLES = sorted(
    (
        one
        for one in files("uncaged_templates").joinpath("samples").iterdir()
        if one.name.endswith(".recipe.json")
    ),
    key=lambda one: one.name,
)


def built(recipe: object) -> Bundle:
    return read_bundle(build_flow(parse_recipe(recipe), KNOWN).source, KNOWN)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: one.name.partition(".")[0])
def test_a_flow_is_built_again_from_its_written_recipe(sample: Any) -> None:
    """The bundle is the same, byte for byte: script, task, web and block flows."""
    source = build_flow(read_recipe(sample.read_bytes(), sample.name), KNOWN).source
    bundle = read_bundle(source, KNOWN)
    flow = flow_of(bundle)
    assert flow is not None
    assert recipe_source(write_recipe(flow), bundle.descriptor.name, KNOWN) == source


def test_all_limits_of_a_script_are_in_its_recipe() -> None:
    """Those too that `sandbox` cannot say, and what happens after a failure."""
    limits = {"executables": ["wc"], "processes": 3, "memoryBytes": 1 << 20, "timeout_s": 5.0}
    recipe = {
        "actionName": "count",
        "description": "Count.",
        "script": {"language": "bash", "body": "wc", "repeat": True},
        "policy": {"script": limits},
        "onFailure": "fix",
    }
    bundle = built(recipe)
    flow = flow_of(bundle)
    assert flow is not None
    written = write_recipe(flow)
    assert written["policy"] == {"script": limits}
    assert written["onFailure"] == "fix"
    assert recipe_source(written, "count", KNOWN) == bundle.source
    with pytest.raises(BundleError, match="not of 'other'"):
        recipe_source(written, "other", KNOWN)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"policy": {"script": {}}, "sandbox": {}}, "says the same"),
        ({"policy": {"http": {}}}, "http"),
        ({"policy": {"script": {"executable": ["wc"]}}}, "executable"),
        ({"onFailure": "retry"}, "onFailure"),
    ],
)
def test_a_wrong_policy_of_a_script_is_refused(more: dict[str, object], problem: str) -> None:
    """The key is named."""
    recipe = {"actionName": "x", "description": "x", "script": {"language": "bash", "body": "wc"}}
    with pytest.raises(BundleError, match=problem):
        built({**recipe, **more})
