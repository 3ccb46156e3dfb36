from collections.abc import Generator, Mapping, Sequence
from typing import Any

SHOWN_CHARACTERS: int

def drive_script(
    input: Mapping[str, Any], *, name: str, script: Mapping[str, Any], arguments: Sequence[str | Mapping[str, Any]], form: str
) -> Generator[dict[str, Any], Any, dict[str, Any]]: ...
def spell(part: str | Mapping[str, Any], params: Mapping[str, Any]) -> list[str]: ...
def shorten(text: str) -> str: ...
