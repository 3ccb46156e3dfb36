import re
from collections.abc import Collection, Sequence
from typing import Any

REFERENCE: re.Pattern[str]
PATH_PART: re.Pattern[str]

class BadReference(Exception): ...

def resolve(
    value: object,
    results: Sequence[object],
    entities: Sequence[object],
    mode: str = "throw",
    *,
    as_data: Collection[str] = (),
    kinds: Collection[str] = (),
) -> Any: ...
def data_of(
    value: object, results: Sequence[object], entities: Sequence[object], mode: str
) -> object: ...
def look_up(
    match: re.Match[str],
    text: str,
    results: Sequence[object],
    entities: Sequence[object],
    mode: str,
) -> object: ...
def name_of(thing: object) -> object: ...
def as_text(value: object) -> str: ...
