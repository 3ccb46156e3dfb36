import re
from collections.abc import Generator, Mapping
from typing import Any

ADDRESS: re.Pattern[str]
OWN: re.Pattern[str]
NO_ADDRESS: str
NO_GOAL: str

def drive_goal(input: Mapping[str, Any]) -> Generator[dict[str, Any], Any, dict[str, Any]]: ...
def address_in(text: str) -> str | None: ...
def host_of(url: str) -> str: ...
