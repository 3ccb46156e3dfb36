from collections.abc import Generator, Mapping
from typing import Any

DESCRIPTOR: Mapping[str, object]

def drive_calls(
    input: Mapping[str, Any],
) -> Generator[dict[str, object], Any, dict[str, object]]: ...
def ended(success: bool, message: str, done: list[dict[str, Any]]) -> dict[str, object]: ...
