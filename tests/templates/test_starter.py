"""The starter files of `init`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from uncaged_bundles.builders.definition import build_definition
from uncaged_bundles.errors import UsageError
from uncaged_bundles.validation.validate import read_bundle
from uncaged_templates.starter import write_starter


def test_it_builds_and_needs_no_files_of_the_person(tmp_path: Path) -> None:
    """The definition is a valid flow named like its file, which asks for its roles alone."""
    paths = write_starter(tmp_path / "new" / "flow")
    assert [path.name for path in paths] == ["proofread.py", "test_proofread.py", "answers.yaml"]
    descriptor = read_bundle(build_definition(paths[0])).descriptor
    assert descriptor.name == paths[0].stem
    assert descriptor.raw["policy"] == {"role": {}}


@pytest.mark.slow
def test_its_tests_pass(tmp_path: Path) -> None:
    """A person who runs them first thing sees them green, from wherever they are."""
    directory = tmp_path / "flow"
    write_starter(directory)
    environment = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(directory)]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_scripted_answers_carry_it_to_its_end(tmp_path: Path) -> None:
    """The answers fit the roles' schemas, in the order in which the flow asks."""
    definition, _, answers = write_starter(tmp_path)
    source = build_definition(definition)
    roles = read_bundle(source).descriptor.roles
    namespace: dict[str, object] = {}
    exec(compile(source, "bundle.py", "exec"), namespace)  # noqa: S102 - the bundle is the subject of the test
    run = namespace["run"]
    assert callable(run)
    generator = run({"prompt": "", "params": {}, "steps": []}, {"threadId": "t"})
    effect = next(generator)
    with pytest.raises(StopIteration) as stop:
        for entry in yaml.safe_load(answers.read_text()):
            assert effect == {"role": {"name": entry["role"]}}
            assert (
                list(Draft202012Validator(roles[entry["role"]].schema).iter_errors(entry["meta"]))
                == []
            )
            effect = generator.send(
                {
                    "role": entry["role"],
                    "content": entry["answer"],
                    "meta": entry["meta"],
                    "timestamp": 0,
                }
            )
    assert stop.value.value == {"success": True, "message": "Lunch at noon.", "data": {"drafts": 2}}


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """If one of the files is there, none is written."""
    (tmp_path / "answers.yaml").write_text("mine")
    with pytest.raises(UsageError, match=r"answers\.yaml' exists already"):
        write_starter(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["answers.yaml"]
    with pytest.raises(UsageError, match="is a file; name a directory"):
        write_starter(tmp_path / "answers.yaml")
