"""Operations of the effect that ask a model about a page: data, an element, a state, an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from uncaged_bundles import shapes

from ..operations import Filled, Frames, MaybeTarget, Operation, Timeout

__all__ = [
    "QUESTIONS",
    "CheckPageState",
    "Extract",
    "ExtractComponent",
    "PageQuestion",
    "QueryContent",
]

TIMEOUT_S = 120.0


def _schema(value: object, path: shapes.Path) -> Mapping[str, Any]:
    from uncaged_models.data import read_schema  # a store without models has a browser, too

    return read_schema(value, path)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuestion(Operation):
    """Base of the questions. model: its name in config.yaml; None is the default one. target: the
    part of the page that the question is about; None is all of it.
    """

    timeout_s: Timeout = TIMEOUT_S
    model: str | None = None
    target: MaybeTarget = None
    frame: Frames = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Extract(PageQuestion):
    """Return data of the page that fits a JSON Schema. text: what is wanted, in words."""

    do: ClassVar[str] = "extract"
    schema: Annotated[Mapping[str, Any], _schema]
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractComponent(PageQuestion):
    """Return the target of the element that a description means. again: ask the model although a
    target was kept.
    """

    do: ClassVar[str] = "extract_component"
    text: Filled
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckPageState(PageQuestion):
    """Return whether the page is in a state: ``{"matched", "explanation"}``."""

    do: ClassVar[str] = "check_page_state"
    text: Filled


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContent(PageQuestion):
    """Return the answer that the page gives to a question: ``{"answered", "text",
    "confidence"}``.
    """

    do: ClassVar[str] = "query_content"
    text: Filled


QUESTIONS: Mapping[str, type[Operation]] = {
    cls.do: cls for cls in (Extract, ExtractComponent, CheckPageState, QueryContent)
}
"""These operations by name."""
