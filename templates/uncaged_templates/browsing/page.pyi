from collections.abc import Generator, Mapping
from typing import Any

LOCAL: tuple[str, ...]
SHOWN_CHARACTERS: int

def drive_page(
    input: Mapping[str, Any], operation: Mapping[str, Any]
) -> Generator[dict[str, Any], Any, dict[str, Any]]: ...
def address_of(site: str) -> str: ...
def words_of(answer: Any) -> str: ...
