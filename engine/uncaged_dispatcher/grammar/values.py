"""Values of readings: evaluation of value expressions, with strict types and no coercion."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_dispatcher.grammar.syntax import Expression


class EvaluationError(Exception):
    """An operand of a type that its operator does not take; ``at`` is the place in the file."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def evaluate(
    expression: Expression,
    variables: Mapping[str, object],
    parts: Mapping[int, object] | None = None,
) -> object:
    """Return the value of an expression of a linked alternative.

    Args:
        expression: the ``value`` of the alternative.
        variables: the value of each capture; one that was not taken is missing. Texts are `str`,
            numbers `int` where they are whole and `float` otherwise.
        parts: the value of the alternative's part at an index, for `PartValue`.
    Returns:
        A value of JSON's types, or `UNDEFINED`. A property without a value is left out.
    Raises:
        EvaluationError: an operator, a method or a spread got a value of another type.
    """
    raise NotImplementedError
