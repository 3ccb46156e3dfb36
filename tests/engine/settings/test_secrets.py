"""Where a secret's value comes from, and that it does not come out again."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.settings.config import Config, SecretSource
from uncaged_engine.settings.secrets import known_secrets, redact, resolve


def config(tmp_path: Path) -> Config:
    return Config(secrets={"A": SecretSource(env="VAR_A"), "B": SecretSource(file=tmp_path / "b")})


def test_secrets_are_put_in_wherever_they_stand(tmp_path: Path) -> None:
    """Texts that are exactly ``secret:NAME`` are replaced, at any depth; the rest is as it was."""
    (tmp_path / "b").write_text("from-a-file\n", "utf-8")
    settings = {
        "env": {"X": "secret:A"},
        "list": ["secret:B", "plain", 3],
        "text": "not secret:A here",
    }
    value, used = resolve(settings, config(tmp_path), {"VAR_A": "value-a"})
    assert value == {
        "env": {"X": "value-a"},
        "list": ["from-a-file", "plain", 3],
        "text": "not secret:A here",
    }
    assert used == {"value-a": "A", "from-a-file": "B"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("A", "the variable VAR_A, which is not set"),
        ("B", "cannot be read"),
        ("C", "secret:C is not known"),
    ],
)
def test_an_unset_secret_is_named(tmp_path: Path, name: str, words: str) -> None:
    """The message names the secret and its source; the thread can be resumed once it is set."""
    with pytest.raises(EnvironmentLacks, match=words) as caught:
        resolve(f"secret:{name}", config(tmp_path), {"VAR_A": ""})
    assert f"secret:{name}" in str(caught.value)


def test_an_empty_file_is_no_secret(tmp_path: Path) -> None:
    """An empty value would be sent as an empty credential."""
    (tmp_path / "b").write_text("\n", "utf-8")
    with pytest.raises(EnvironmentLacks, match="is empty"):
        resolve("secret:B", config(tmp_path), {})


def test_values_become_names_again() -> None:
    """Every text, keys and nested ones included; the longer of two secrets first; very short values
    are left alone.
    """
    known = {"hunter22": "A", "hunter22-long": "B", "abc": "C"}
    value = {"x hunter22": ["hunter22-long!", {"deep": "abc hunter22"}], "n": 1}
    assert redact(value, known) == {"x secret:A": ["secret:B!", {"deep": "abc secret:A"}], "n": 1}


def test_known_secrets_are_those_that_can_be_read(tmp_path: Path) -> None:
    """Unset variables and missing files are left out, and the keyring is not asked."""
    file = tmp_path / "token"
    file.write_text("from-a-file\n")
    sources = {
        "A": SecretSource(env="TOKEN_A"),
        "B": SecretSource(env="TOKEN_B"),
        "C": SecretSource(file=file),
        "D": SecretSource(file=tmp_path / "gone"),
        "E": SecretSource(keyring=("service", "name")),
    }
    found = known_secrets(Config(secrets=sources), {"TOKEN_A": "from-a-variable"})
    assert found == {"from-a-variable": "A", "from-a-file": "C"}
