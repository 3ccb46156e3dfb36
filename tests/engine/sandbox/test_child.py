"""A bundle's process from inside: the pure standard library as it is, but no clock, no chance and
no fresh ids.
"""

from __future__ import annotations

import pytest
from testbed.cells import MECHANISMS, begin, cell_for, error_of, value_of
from uncaged_bundles.validation.modules import ALLOWED_MODULES
from uncaged_engine.sandbox.child import mark, summary

REFUSED = [
    ("import time", "time.time()", "startedAt"),
    ("import time", "time.time_ns()", "startedAt"),
    ("import time", "time.monotonic()", "startedAt"),
    ("import time", "time.perf_counter()", "startedAt"),
    ("import time", "time.process_time()", "startedAt"),
    ("import time", "time.clock_gettime(0)", "startedAt"),
    ("import time", "time.localtime()", "startedAt"),
    ("import time", "time.gmtime(None)", "startedAt"),
    ("import time", "time.strftime('%Y')", "startedAt"),
    ("import time", "time.sleep(1)", "sleep"),
    ("import datetime", "datetime.datetime.now()", "startedAt"),
    ("from datetime import datetime, timezone", "datetime.now(timezone.utc)", "startedAt"),
    ("import datetime", "datetime.datetime.utcnow()", "startedAt"),
    ("import datetime", "datetime.datetime.today()", "startedAt"),
    ("from datetime import date", "date.today()", "startedAt"),
    ("import uuid", "str(uuid.uuid4())", "threadId"),
    ("from uuid import uuid1", "str(uuid1())", "threadId"),
    ("import os", "os.urandom(4)", "seed"),
    ("import os", "os.getrandom(4)", "seed"),
    ("import posix", "posix.urandom(4)", "seed"),
    ("import secrets", "secrets.token_hex()", "seed"),
    ("import secrets", "secrets.choice([1, 2])", "seed"),
    ("import random", "random.random()", "seed"),
    ("from random import randint", "randint(1, 6)", "seed"),
    ("import random", "random.choice([1, 2])", "seed"),
    ("import random", "random.shuffle([1, 2])", "seed"),
    ("import random", "random.seed(1)", "seed"),
    ("import random", "random.Random()", "seed"),
    ("import random", "random.Random(None)", "seed"),
    ("import random", "random.Random(1).seed()", "seed"),
    ("import random", "random.SystemRandom().random()", "seed"),
]
ALLOWED = [
    ("import random", "random.Random(options['seed']).random()", 0.32383276483316237),
    ("import random", "random.Random('x').randint(1, 10**9)", 677303157),
    ("import time", "time.strftime('%Y-%m-%d', time.gmtime(0))", "1970-01-01"),
    ("import time", "time.localtime(0).tm_hour", 0),
    (
        "import datetime",
        "datetime.datetime.fromtimestamp(0, datetime.timezone.utc).isoformat()",
        "1970-01-01T00:00:00+00:00",
    ),
    (
        "from datetime import datetime, timedelta",
        "str(datetime(2024, 1, 31) + timedelta(days=1))",
        "2024-02-01 00:00:00",
    ),
    (
        "from datetime import datetime",
        "repr(datetime.strptime('2024-05-17', '%Y-%m-%d'))",
        "datetime.datetime(2024, 5, 17, 0, 0)",
    ),
    ("from datetime import datetime, date", "isinstance(datetime(2024, 1, 1), date)", True),
    ("from datetime import datetime, date", "isinstance(datetime(2024, 1, 1).date(), date)", True),
    ("from datetime import datetime, date", "isinstance(date(2024, 1, 1), datetime)", False),
    ("from datetime import datetime, date", "issubclass(datetime, date)", True),
    (
        "from datetime import datetime",
        "datetime(2024, 1, 1) < datetime(2024, 1, 2) and datetime.min.year",
        1,
    ),
    (
        "import datetime, copy, pickle",
        "pickle.loads(pickle.dumps(datetime.datetime(2024, 1, 2))).day",
        2,
    ),
    (
        "import uuid",
        "str(uuid.uuid5(uuid.NAMESPACE_DNS, 'example.org'))",
        "aad03681-8b63-5304-89e0-8ca8f49461b5",
    ),
    (
        "import dataclasses",
        "dataclasses.asdict(dataclasses.make_dataclass('D', ['x'])(1))",
        {"x": 1},
    ),
    ("import hashlib", "hashlib.sha256(b'').hexdigest()[:8]", "e3b0c442"),
    ("import decimal", "str(decimal.Decimal('0.1') + decimal.Decimal('0.2'))", "0.3"),
]


@pytest.mark.parametrize(
    ("before", "expression", "instead"), REFUSED, ids=[item[1] for item in REFUSED]
)
def test_what_differs_from_run_to_run_raises(before: str, expression: str, instead: str) -> None:
    """The error names the function and what to use in its place."""
    with cell_for(
        f"{before}\ndef run(input, options):\n    yield {{'null': {expression}}}\n"
    ) as cell:
        error = error_of(begin(cell))
    assert error["type"] == "RuntimeError"
    assert instead in error["message"]


@pytest.mark.parametrize(
    ("before", "expression", "expected"), ALLOWED, ids=[item[1] for item in ALLOWED]
)
def test_what_is_the_same_in_every_run_works(
    before: str, expression: str, expected: object
) -> None:
    """Seeded chance and given times are as in any Python."""
    assert value_of(expression, before=before) == expected


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_allowed_module_can_be_imported(mechanism: str) -> None:
    """The list of the validator and the walls of the sandbox agree."""
    names = sorted(ALLOWED_MODULES)
    imports = "\n".join(f"import {name}" for name in names if name != "__future__")
    assert value_of("True", mechanism, before=imports) is True


def test_an_error_names_its_lines() -> None:
    """The trace has the bundle's own lines, innermost last, and nothing of the engine's."""
    source = (
        "def inner():\n    return 1 / 0\ndef run(input, options):\n    yield {'null': inner()}\n"
    )
    with cell_for(source) as cell:
        lines = error_of(begin(cell))["trace"].splitlines()
    assert [line.partition(":")[2] for line in lines] == [
        "4 in run: yield {'null': inner()}",
        "2 in inner: return 1 / 0",
    ]


def test_a_deep_trace_is_cut_in_the_middle() -> None:
    """A trace of a thousand frames has thirty of them in the error."""
    source = "def f(n):\n    return f(n + 1)\ndef run(input, options):\n    yield {'null': f(0)}\n"
    with cell_for(source) as cell:
        error = error_of(begin(cell))
    assert error["type"] == "RecursionError"
    assert len(error["trace"].splitlines()) == 31
    assert "more" in error["trace"]


@pytest.mark.parametrize(
    ("exception", "shown"),
    [
        ("type('E', (Exception,), {'__str__': lambda self: 1 / 0})()", "cannot be shown"),
        ("Exception('\\ud800 half')", "half"),
        ("Exception('x' * 10**6)", "xxx"),
        ("KeyboardInterrupt()", ""),
        ("GeneratorExit('gone')", "gone"),
    ],
)
def test_any_exception_can_be_told(exception: str, shown: str) -> None:
    """However an exception misbehaves, the answer is short JSON."""
    with cell_for(f"def run(input, options):\n    raise {exception}\n    yield\n") as cell:
        reply = begin(cell)
    assert shown in error_of(reply)["message"]
    assert len(reply.body) < 10_000


def test_a_mark_is_the_effect_or_its_hash() -> None:
    """Only what is too large for a journal line is hashed."""
    assert mark(b'{"null":1}', 10) == b'{"null":1}'
    assert mark(b'{"null":12}', 10).startswith(b"blob:")
    assert len(mark(b'{"null":12}', 10)) == 5 + 32


def test_a_summary_trusts_no_repr() -> None:
    """A value is named by its type, whatever it says of itself."""

    class Lying(list[int]):
        def __repr__(self) -> str:
            raise AssertionError("it must not be asked")

    assert summary(Lying()) == "a Lying"
    assert summary([1, 2]) == "a list of 2"
    assert summary(None) == "None"
