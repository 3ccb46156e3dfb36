"""Parsing of Python text."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator

import pytest
from uncaged_bundles.syntax import parse_expression, parse_module

TEXT = "x = [" + ",".join(f"f({number}, {{'a': [1, (2, 3)]}})" for number in range(100)) + "]\n"


class Cycle:
    """Object that the garbage collector frees, with code that runs then."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        for _ in range(20):
            pass


@pytest.fixture
def busy() -> Iterator[None]:
    """Threads that change place, and garbage that is freed, all the time."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    yield
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("busy")
def test_two_threads_parse_at_the_same_time() -> None:
    """Each gets its tree; the depth of the other's tree is no error."""
    problems: list[BaseException] = []

    def parse() -> None:
        try:
            for _ in range(50):
                Cycle()
                parse_module(TEXT)
        except SystemError as exc:
            problems.append(exc)

    threads = [threading.Thread(target=parse) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_a_text_that_only_warns_is_parsed() -> None:
    """An invalid escape is no error, although the tests make errors of warnings."""
    [statement] = parse_module(r"a = '\d'").body
    assert statement.lineno == 1
    assert parse_expression("1 + 1").body.col_offset == 0
