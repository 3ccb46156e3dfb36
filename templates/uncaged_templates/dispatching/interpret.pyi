from collections.abc import Generator, Mapping
from typing import Any

DESCRIPTOR: Mapping[str, object]
QUESTIONS: int

def drive_interpret(
    input: Mapping[str, Any],
) -> Generator[dict[str, Any], Any, dict[str, object]]: ...
