"""How a compiled expression is computed is defined here once, and the builder copies it word for word into each bundle.

An expression arrives as nested lists, ``[what, …]``; no text is ever run as code. It reads variables and gives a value, and that is all
that it can do. Types for checkers are in ``expression.pyi``.
"""

import json

MOST_WORK = 200_000
LONGEST = 1_000_000
MOST_DIGITS = 300


class BadExpression(Exception):
    """An expression came to nothing; the message says why."""


def compute(tree, variables):
    """Return what an expression comes to.

    Raises:
        BadExpression: a name that is not there, an operation that makes no sense, or too much work.
    """
    try:
        return checked(Computation(dict(variables)).value(tree))
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError, AttributeError) as exception:
        raise BadExpression(f"{type(exception).__name__}: {exception}") from None


def checked(value):
    """Return a value as JSON holds it."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as exception:
        raise BadExpression(f"what it gives is no JSON value: {exception}") from None


class Computation:
    """One run of one expression; it stops after a fixed amount of work."""

    def __init__(self, variables):
        self.variables = variables
        self.work = 0

    def value(self, tree):  # noqa: PLR0912 - one branch for each thing that can be said
        self.spend(1)
        what, *parts = tree
        match what:
            case "const":
                return parts[0]
            case "name":
                if parts[0] not in self.variables:
                    raise BadExpression(f"there is no variable {parts[0]!r}; there are: {', '.join(self.variables) or 'none'}")
                return self.variables[parts[0]]
            case "key":
                return self.key(self.value(parts[0]), parts[1])
            case "item":
                return self.value(parts[0])[self.value(parts[1])]
            case "slice":
                return self.value(parts[0])[slice(*[self.value(part) for part in parts[1:]])]
            case "and" | "or":
                return self.either(what, parts[0])
            case "not":
                return not self.value(parts[0])
            case "minus":
                return -self.value(parts[0])
            case "op":
                return self.operation(parts[0], self.value(parts[1]), self.value(parts[2]))
            case "compare":
                return self.comparison(self.value(parts[0]), parts[1])
            case "if":
                return self.value(parts[1] if self.value(parts[0]) else parts[2])
            case "list":
                return [self.value(part) for part in parts[0]]
            case "dict":
                return {str(self.value(key)): self.value(part) for key, part in parts[0]}
            case "text":
                return "".join(spelled(self.value(part)) for part in parts[0])
            case "each":
                return self.each(*parts)
            case "call":
                return self.call(parts[0], [self.value(part) for part in parts[1]])
            case "method":
                return self.method(self.value(parts[0]), parts[1], [self.value(part) for part in parts[2]])
        raise BadExpression(f"{what!r} is not known here")

    def spend(self, amount):
        self.work += amount
        if self.work > MOST_WORK:
            raise BadExpression("it takes too much work")

    def key(self, value, name):
        if isinstance(value, dict) and name in value:
            return value[name]
        raise BadExpression(f"there is no {name!r} in {spelled(value)[:80]}")

    def either(self, what, parts):
        value = None
        for part in parts:
            value = self.value(part)
            if bool(value) == (what == "or"):
                return value
        return value

    def operation(self, sign, left, right):
        if sign == "*" and (isinstance(left, str | list) or isinstance(right, str | list)):
            times, whole = (left, right) if isinstance(left, int) else (right, left)
            if isinstance(times, int) and times * len(whole) > LONGEST:
                raise BadExpression(f"a result longer than {LONGEST} is too long")
        if isinstance(left, str | list) and isinstance(right, str | list):
            self.spend((len(left) + len(right)) // 1000)
        match sign:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
            case "//":
                return left // right
        if isinstance(left, str):
            raise BadExpression("'%' is for numbers; write a text as f'{value}'")
        return left % right

    def comparison(self, left, links):
        for sign, tree in links:
            right = self.value(tree)
            if not self.holds(sign, left, right):
                return False
            left = right
        return True

    def holds(self, sign, left, right):
        if sign in ("in", "not in"):
            self.spend(len(right) // 100)
        match sign:
            case "==":
                return left == right
            case "!=":
                return left != right
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case ">=":
                return left >= right
            case "in":
                return left in right
            case "not in":
                return left not in right
            case "is":
                return left is right
        return left is not right

    def each(self, element, name, items, conditions):
        """A list comprehension; its name is gone afterwards."""
        kept = {name: self.variables[name]} if name in self.variables else {}
        found = []
        for item in list(self.value(items)):
            self.variables[name] = item
            if all(self.value(condition) for condition in conditions):
                found.append(self.value(element))
        self.variables.pop(name, None)
        self.variables.update(kept)
        return found

    def call(self, name, given):
        self.spend(sum(len(value) for value in given if isinstance(value, str | list | dict)) // 100)
        match name:
            case "round" if len(given) > 1 and not -MOST_DIGITS <= given[1] <= MOST_DIGITS:
                raise BadExpression(f"numbers are rounded to at most {MOST_DIGITS} digits")
            case "reversed":
                return list(reversed(*given))
            case "unique":
                self.spend(len(given[0]) ** 2 // 100)
                return [value for at, value in enumerate(given[0]) if value not in given[0][:at]]
        return CALLS[name](*given)

    def method(self, value, name, given):
        if isinstance(value, str):
            self.spend(len(value) // 100)
            return text_method(value, name, given)
        if not isinstance(value, dict):
            raise BadExpression(f"{spelled(value)[:80]} has no {name!r}")
        match name:
            case "get":
                return value.get(*given)
            case "keys":
                return list(value)
            case "values":
                return list(value.values())
            case "items":
                return [[key, part] for key, part in value.items()]
        raise BadExpression(f"a mapping has no {name!r}")


def text_method(value, name, given):
    match name:
        case "lower":
            return value.lower()
        case "upper":
            return value.upper()
        case "strip":
            return value.strip(*given)
        case "split":
            return value.split(*given)
        case "splitlines":
            return value.splitlines()
        case "startswith":
            return value.startswith(*given)
        case "endswith":
            return value.endswith(*given)
        case "join":
            return value.join(given[0])
        case "replace":
            if value.count(given[0]) * len(given[1]) > LONGEST:
                raise BadExpression(f"a result longer than {LONGEST} is too long")
            return value.replace(*given)
    raise BadExpression(f"a text has no {name!r}")


def read_value(text):
    """Return what a JSON text stands for."""
    return json.loads(text)


def spelled(value):
    """Return a value as text: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


CALLS = {
    **{"len": len, "text": spelled, "json": read_value, "int": int, "float": float, "bool": bool, "abs": abs, "round": round},
    **{"min": min, "max": max, "sum": sum, "sorted": sorted, "any": any, "all": all},
}
