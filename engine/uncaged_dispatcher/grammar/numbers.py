"""Numbers of values: whole ones as `int`, arithmetic and texts as in JavaScript."""

from __future__ import annotations

import math
from typing import TypeGuard

MAX_WHOLE = 2**53
"""The greatest number up to which every whole number has a value of its own."""


def whole(value: float) -> int | float:
    """Return a number as `int` where it is whole and exact, else as `float`."""
    if -MAX_WHOLE <= value <= MAX_WHOLE:
        return int(value) if value == int(value) else value
    return float(value)


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number; in Python a truth value is one, too."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def calculate(operator: str, left: float, right: float) -> int | float:
    """Return the result of an arithmetic operator; division by zero gives an infinity or NaN."""
    match operator:
        case "+":
            return whole(left + right)
        case "-":
            return whole(left - right)
        case "*":
            return whole(left * right)
        case "/":
            if right:
                return whole(left / right)
            return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)
        case _:
            return whole(math.fmod(left, right)) if right and math.isfinite(left) else math.nan


def number_text(value: float) -> str:
    """Return a number as text: without an exponent from 1e-6 to 1e21."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    value = whole(value)
    if isinstance(value, int):
        return str(value)
    if 1e-6 <= abs(value) < 1e21:
        from decimal import Decimal  # 1 ms of each sentence's start

        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+d}"


def fixed_text(value: float, digits: int) -> str:
    """Return a number as text with *digits* places after the point, halves rounded up."""
    if not math.isfinite(value) or abs(value) >= 1e21:
        return number_text(value)
    from decimal import ROUND_HALF_UP, Decimal

    rounded = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:f}"
