"""Sums of usage over a thread's records, and limits on them. An unknown price is marked as such and
never counted as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uncaged_bundles.records import dataclass

SPENDING_LIMITS = frozenset(("maxCost", "maxTokens", "maxSeconds"))
TOKENS = ("inputTokens", "outputTokens")
"""Cached tokens are part of the input tokens, and are listed as ``cachedTokens`` too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Sum of usages. cost: US dollars of everything that has a price. unpriced: some tokens have no
    known price.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    turns: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    unpriced: bool = False

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, usage: object) -> Spent:
        """Add a usage.

        Args:
            usage: ``{"inputTokens", "outputTokens", "cachedTokens", "turns", "seconds", "cost",
                "unpriced"}``, all optional.
        """
        if not usage or not isinstance(usage, Mapping):
            return self
        counts = {name: _number(usage.get(name)) for name in (*TOKENS, "cachedTokens", "turns")}
        priced = _number(usage.get("cost"))
        used = any(counts[name] for name in TOKENS)
        return Spent(
            input_tokens=self.input_tokens + int(counts["inputTokens"] or 0),
            output_tokens=self.output_tokens + int(counts["outputTokens"] or 0),
            cached_tokens=self.cached_tokens + int(counts["cachedTokens"] or 0),
            turns=self.turns + int(counts["turns"] or 0),
            seconds=self.seconds + float(_number(usage.get("seconds")) or 0),
            cost=self.cost + float(priced or 0),
            unpriced=self.unpriced or bool(usage.get("unpriced")) or (used and priced is None),
        )

    def minus(self, other: Spent) -> Spent:
        """Subtract an earlier sum."""
        return Spent(
            input_tokens=self.input_tokens - other.input_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
            cached_tokens=self.cached_tokens - other.cached_tokens,
            turns=self.turns - other.turns,
            seconds=self.seconds - other.seconds,
            cost=self.cost - other.cost,
            unpriced=self.unpriced,
        )

    def document(self) -> dict[str, object]:
        """Convert to a usage for JSON: without zeros, except the cost of tokens that are known to
        be free.
        """
        fields = {
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "cachedTokens": self.cached_tokens,
            "turns": self.turns,
            "seconds": round(self.seconds, 3),
            "cost": round(self.cost, 6),
            "unpriced": self.unpriced,
        }
        free = "" if self.unpriced or not self.tokens else "cost"
        return {name: value for name, value in fields.items() if value or name == free}


NOTHING = Spent()


def usage_of(record: Mapping[str, object]) -> object:
    """Return the usage of a step or void; a failed step carries it in its error."""
    usage = record.get("usage")
    if usage or "error" not in record:
        return usage
    error = record["error"]
    return error.get("usage") if isinstance(error, Mapping) else None


def counted_usage(record: Mapping[str, object]) -> object:
    """Return what a record of a thread's own adds to its sum: the usage of a step, a part, a void
    or a try that failed. That of a further answer is in the step's, and that of the end is the sum.
    """
    if "end" in record or ("attempt" in record and "because" not in record):
        return None
    return usage_of(record)


def total(usages: Iterable[object]) -> Spent:
    """Add up usages."""
    spent = Spent()
    for usage in usages:
        spent = spent.plus(usage)
    return spent


def exceeded(
    limits: Mapping[str, float], spent: Spent, running_s: float
) -> dict[str, object] | None:
    """Return the first limit that is reached, as the fields of an end record."""
    for name, used, unit in (
        ("maxCost", spent.cost, "$"),
        ("maxTokens", spent.tokens, "token"),
        ("maxSeconds", running_s, "second"),
    ):
        limit = limits.get(name)
        if limit is not None and used >= limit:
            return {"limit": name, "value": limit, "message": reached(limit, unit)}
    return None


def reached(limit: float, unit: str) -> str:
    """Format the message of a reached limit: of ``$1``, of ``1 round``, of ``10 steps``."""
    amount = f"{limit:,.15g}"
    words = (
        f"${amount}" if unit == "$" else f"{amount} {unit}" if limit == 1 else f"{amount} {unit}s"
    )
    return f"the limit of {words} is reached"


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return value
    return None
