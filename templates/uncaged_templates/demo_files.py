"""Files of the demo repository, without the bugs that ``demo`` adds."""

LOANS = '''\
"""Loans: when a book is due, whether it is late, and whether it may be renewed."""

from dataclasses import dataclass, replace
from datetime import date, timedelta

LOAN_DAYS = 21
MAX_RENEWALS = 2


@dataclass(frozen=True)
class Loan:
    title: str
    reader: str
    lent_on: date
    renewals: int = 0
    reserved: bool = False

    @property
    def due_on(self) -> date:
        return self.lent_on + timedelta(days=LOAN_DAYS * (self.renewals + 1))


def days_late(loan: Loan, today: date) -> int:
    """Whole days since the book was due; 0 if it is not late."""
    return max((today - loan.due_on).days, 0)


def may_renew(loan: Loan) -> bool:
    """A loan may be renewed twice, unless somebody else has reserved the book."""
    return loan.renewals < MAX_RENEWALS and not loan.reserved


def renew(loan: Loan) -> Loan:
    if not may_renew(loan):
        raise ValueError(f"{loan.title!r} cannot be renewed")
    return replace(loan, renewals=loan.renewals + 1)
'''

FINES = '''\
"""Fines: what a late book costs."""

from datetime import date

from lending.loans import Loan, days_late

GRACE_DAYS = 2
CENTS_PER_DAY = 20
MOST_CENTS = 1000


def fine_cents(loan: Loan, today: date) -> int:
    """The first two late days are free; after that every late day counts, up to ten euros."""
    late = days_late(loan, today)
    if late <= GRACE_DAYS:
        return 0
    return min(late * CENTS_PER_DAY, MOST_CENTS)


def total_cents(loans: list[Loan], reader: str, today: date) -> int:
    """What one reader owes for all loans."""
    return sum(fine_cents(loan, today) for loan in loans if loan.reader == reader)


def in_euros(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d} EUR"
'''

CATALOGUE = '''\
"""Catalogue: finding books, and showing them page by page."""

PAGE_SIZE = 10


def search(titles: list[str], words: str) -> list[str]:
    """The titles that contain every one of the words, in alphabetical order."""
    wanted = words.lower().split()
    return sorted(title for title in titles if all(word in title.lower() for word in wanted))


def page(titles: list[str], number: int, size: int = PAGE_SIZE) -> list[str]:
    """One page of a list; the first page is number 1."""
    if number < 1:
        raise ValueError(f"there is no page {number}")
    start = (number - 1) * size
    return titles[start : start + size]


def page_count(titles: list[str], size: int = PAGE_SIZE) -> int:
    return (len(titles) + size - 1) // size
'''

TEST_LOANS = """\
from datetime import date

import pytest
from lending.loans import Loan, days_late, may_renew, renew

LENT = date(2024, 3, 1)  # due on 22 March


def loan(renewals: int = 0, reserved: bool = False) -> Loan:
    return Loan("Emma", "Ada", LENT, renewals, reserved)


def test_a_loan_is_due_after_three_weeks() -> None:
    assert loan().due_on == date(2024, 3, 22)


def test_every_renewal_gives_three_more_weeks() -> None:
    assert loan(renewals=1).due_on == date(2024, 4, 12)


def test_a_book_is_not_late_on_the_day_it_is_due() -> None:
    assert days_late(loan(), date(2024, 3, 22)) == 0


def test_late_days_are_counted_from_the_due_day() -> None:
    assert days_late(loan(), date(2024, 3, 27)) == 5


def test_a_new_loan_may_be_renewed() -> None:
    assert may_renew(loan())


def test_nothing_is_renewed_three_times() -> None:
    assert not may_renew(loan(renewals=2))


def test_a_reserved_book_may_not_be_renewed() -> None:
    assert not may_renew(loan(reserved=True))


def test_renewing_moves_the_due_day() -> None:
    assert renew(loan()).due_on == date(2024, 4, 12)


def test_renewing_a_reserved_book_is_refused() -> None:
    with pytest.raises(ValueError, match="Emma"):
        renew(loan(renewals=2, reserved=True))
"""

TEST_FINES = """\
from datetime import date, timedelta

import pytest
from lending.fines import fine_cents, in_euros, total_cents
from lending.loans import Loan

LENT = date(2024, 3, 1)
EMMA = Loan("Emma", "Ada", LENT)


@pytest.mark.parametrize(
    ("late", "cents"),
    [(0, 0), (1, 0), (2, 0), (3, 60), (10, 200), (50, 1000), (400, 1000)],
)
def test_a_fine_grows_with_the_days(late: int, cents: int) -> None:
    assert fine_cents(EMMA, EMMA.due_on + timedelta(days=late)) == cents


def test_a_book_that_is_back_in_time_costs_nothing() -> None:
    assert fine_cents(EMMA, LENT) == 0


def test_a_reader_pays_for_all_late_books_and_nobody_else() -> None:
    loans = [EMMA, Loan("Dracula", "Ada", LENT), Loan("Ulysses", "Bob", LENT)]
    assert total_cents(loans, "Ada", EMMA.due_on + timedelta(days=5)) == 200


def test_euros_have_two_digits() -> None:
    assert in_euros(1005) == "10.05 EUR"
"""

TEST_CATALOGUE = """\
import pytest
from lending.catalogue import page, page_count, search

TITLES = ["Emma", "Dracula", "The Time Machine", "The Invisible Man"]
NUMBERS = [f"Volume {number}" for number in range(1, 26)]


def test_search_ignores_case_and_sorts() -> None:
    assert search(TITLES, "the") == ["The Invisible Man", "The Time Machine"]


def test_search_wants_every_word() -> None:
    assert search(TITLES, "the man") == ["The Invisible Man"]


def test_search_without_a_match_is_empty() -> None:
    assert search(TITLES, "poems") == []


def test_the_first_page_starts_at_the_beginning() -> None:
    assert page(NUMBERS, 1, 3) == ["Volume 1", "Volume 2", "Volume 3"]


def test_the_last_page_holds_what_is_left() -> None:
    assert page(NUMBERS, 3) == [f"Volume {number}" for number in range(21, 26)]


def test_pages_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="0"):
        page(NUMBERS, 0)


@pytest.mark.parametrize(("count", "pages"), [(0, 0), (1, 1), (10, 1), (11, 2), (25, 3)])
def test_a_started_page_counts(count: int, pages: int) -> None:
    assert page_count(NUMBERS[:count]) == pages
"""

README = """\
# lending

What the desk of a small library needs: loans, fines and a catalogue.

    python -m pytest
"""

ISSUE = """\
# Three complaints from the desk

1. A reader who brought a book back two days late was charged 40 cents. The first two late days are free.
2. The first page of a catalogue list starts in the middle: `page(titles, 1)` shows the eleventh title first.
3. A reader could renew a book that somebody else has reserved. Reserved books may not be renewed.

The tests say the same: run `python -m pytest`.
"""

PYPROJECT = """\
[project]
name = "lending"
version = "1.0"
requires-python = ">=3.9"

[tool.pytest.ini_options]
pythonpath = ["."]
testpaths = ["tests"]
"""

FILES = {
    ".gitignore": "__pycache__/\n.pytest_cache/\n.venv/\n",
    "ISSUE.md": ISSUE,
    "README.md": README,
    "lending/__init__.py": "",
    "lending/catalogue.py": CATALOGUE,
    "lending/fines.py": FINES,
    "lending/loans.py": LOANS,
    "pyproject.toml": PYPROJECT,
    "tests/test_catalogue.py": TEST_CATALOGUE,
    "tests/test_fines.py": TEST_FINES,
    "tests/test_loans.py": TEST_LOANS,
}
