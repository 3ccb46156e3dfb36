"""The index of pages: what it finds, when it changes, and files that are none."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from uncaged_browser.knowledge.index import AGAIN_MS, KnowledgeIndex
from uncaged_browser.knowledge.pages import KnownPage, bare_address
from uncaged_browser.knowledge.passages import PASSAGE_CHARACTERS, passages_of
from uncaged_bundles.errors import DamagedError, UncagedError

WRITER = """
import sys
from pathlib import Path
from uncaged_browser.knowledge.index import KnowledgeIndex
from uncaged_browser.knowledge.pages import KnownPage

index, who = KnowledgeIndex(Path(sys.argv[1])), sys.argv[2]
for number in range(20):
    url = f"https://{who}.example.org/{number}"
    index.add(KnownPage(url=url, title=f"Page {number} of {who}", time_ms=1, text=f"word{who}x{number}"))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "knowledge.sqlite3"


def page(url: str = "https://zoo.example.org/otters", text: str = "", **more: object) -> KnownPage:
    fields = {"title": "Otters", "time_ms": 1_000, "headings": ("Diet", "Sleep"), **more}
    return KnownPage(url=url, text=text, **fields)  # type: ignore[arg-type]


def test_the_nearest_passage_comes_first_with_its_page(path: Path) -> None:
    """A question finds the passage that shares most telling words with it, also after a restart; a
    question without such a word finds none.
    """
    filler = "They are seen along the whole coast, and on some lakes.\n" * 40
    text = f"Otters eat urchins and crabs.\n{filler}At night they sleep in kelp, hand in hand."
    assert KnowledgeIndex(path).find("kelp", 3) == []
    KnowledgeIndex(path).add(page(text=text))
    KnowledgeIndex(path).add(page("https://zoo.example.org/seals", "Seals sleep on rocks."))
    found = KnowledgeIndex(path).find("where do they sleep, in kelp?", 3)
    assert found[0].url == "https://zoo.example.org/otters"
    assert "hand in hand" in found[0].text and "urchins" not in found[0].text
    assert found[1].url == "https://zoo.example.org/seals"
    assert KnowledgeIndex(path).find("volcano", 3) == []
    assert KnowledgeIndex(path).find('"?! (*', 3) == []


def test_words_of_unspaced_scripts_are_found(path: Path) -> None:
    """A Japanese text is found by a part of a sentence."""
    KnowledgeIndex(path).add(page(text="ラッコは海藻の中で眠る。"))
    assert KnowledgeIndex(path).find("海藻", 1)[0].text.startswith("ラッコ")


def test_a_page_is_not_indexed_twice_within_ten_minutes(path: Path) -> None:
    """The same address again changes nothing unless asked; after ten minutes it replaces the former
    text.
    """
    index = KnowledgeIndex(path)
    assert index.add(page(text="first words"))
    assert not index.add(page(text="second words", time_ms=1_000 + AGAIN_MS - 1))
    assert index.add(page(text="third words", time_ms=2_000), again=True)
    assert index.find("second", 1) == []
    assert index.add(page(text="fourth words", time_ms=2_000 + AGAIN_MS))
    assert [one.text for one in index.find("words", 9)] == ["fourth words"]


def test_a_visit_never_replaces_a_text(path: Path) -> None:
    """An address that is visited or imported keeps the text that was indexed; a text replaces a
    visit.
    """
    index = KnowledgeIndex(path)
    index.add(page(title="Visited"), "visit")
    assert index.find("Visited", 1)[0].text == "Visited"
    index.add(page(text="Otters sleep in kelp."))
    index.add(page(title="Again", time_ms=9_000_000), "visit")
    index.add_all([(page(title="Mark", time_ms=9_000_001), "bookmark")])
    [only] = index.pages()
    assert (only.title, only.source, only.passages) == ("Otters", "page", 1)


def test_a_name_is_found_in_titles_and_addresses_alone(path: Path) -> None:
    """All words of a name are in title or address; words of the text do not count."""
    index = KnowledgeIndex(path)
    index.add(page("https://library.example.org/", "otters", title="City library"), "page")
    index.add(page("https://library.example.org/hours", title="Hours of the library"), "visit")
    assert index.address_named("the city LIBRARY") is None
    assert index.address_named("city library") == "https://library.example.org/"
    assert index.address_named("library hours") == "https://library.example.org/hours"
    assert index.address_named("otters") is None


def test_what_is_forgotten_is_not_in_the_file(path: Path) -> None:
    """Pages of a host and of names below it leave the index and the file; others stay."""
    index = KnowledgeIndex(path)
    for host in ("zoo.example.org", "www.zoo.example.org", "evilzoo.example.org"):
        index.add(page(f"https://{host}/", f"secretword of {host.replace('.', '-')}", title=host))
    assert b"secretword of www-zoo" in path.read_bytes()
    assert index.forget("zoo.example.org") == 2
    assert b"secretword of www-zoo" not in path.read_bytes()
    assert [one.host for one in index.pages()] == ["evilzoo.example.org"]
    assert index.forget(None) == 1
    assert b"secretword" not in path.read_bytes()
    assert index.forget(None) == 0
    assert path.stat().st_mode & 0o777 == 0o600


def test_processes_write_at_once(path: Path) -> None:
    """Each page of several processes that write at the same time is found afterwards."""
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, who]) for who in ("ada", "bob", "eve")]
    assert [writer.wait(timeout=100) for writer in writers] == [0, 0, 0]
    index = KnowledgeIndex(path)
    assert len(index.pages()) == 60
    assert all(index.find(f"word{who}x19", 1) for who in ("ada", "bob", "eve"))


def test_a_torn_file_is_refused_at_every_length(path: Path) -> None:
    """A file that was cut is refused for reading and for writing, and left as it is."""
    KnowledgeIndex(path).add(page(text="Otters sleep in kelp."))
    whole = path.read_bytes()
    for length in range(1, len(whole), 499):
        path.write_bytes(whole[:length])
        for use in (lambda: KnowledgeIndex(path).pages(), lambda: KnowledgeIndex(path).add(page())):
            with pytest.raises(DamagedError, match="left as it is"):
                use()
        assert path.read_bytes() == whole[:length]


def test_a_page_of_the_file_that_is_overwritten_is_refused(path: Path) -> None:
    """Garbage inside the file is an error of the command, never a wrong answer of another kind."""
    KnowledgeIndex(path).add(page(text="Otters sleep in kelp. " * 2_000))
    whole = path.read_bytes()
    refused = 0
    for start in range(4_096, len(whole), 4_096):
        path.write_bytes(whole[:start] + b"\xff" * 4_096 + whole[start + 4_096 :])
        try:
            KnowledgeIndex(path).find("kelp", 3)
        except UncagedError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("content", [b"x", b"hello" * 999, b"SQLite format 3\0" + b"\1" * 200])
def test_a_foreign_file_is_refused(path: Path, content: bytes) -> None:
    """A file that is no database is never replaced."""
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="no index of pages"):
        KnowledgeIndex(path).add(page())
    assert path.read_bytes() == content


def test_another_database_is_refused(path: Path) -> None:
    """A database of another application, or of a newer layout, is named and left alone."""
    with sqlite3.connect(path) as other:
        other.execute("create table pages(id)")
    other.close()
    with pytest.raises(DamagedError, match="another application"):
        KnowledgeIndex(path).add(page())
    path.unlink()
    KnowledgeIndex(path).add(page())
    with sqlite3.connect(path) as newer:
        newer.execute("pragma user_version = 99")
    newer.close()
    with pytest.raises(DamagedError, match="its layout is 99"):
        KnowledgeIndex(path).pages()


def test_an_empty_file_is_an_empty_index(path: Path) -> None:
    """A process that was killed before its first write leaves a file that can be used."""
    path.touch()
    assert KnowledgeIndex(path).pages() == []
    assert KnowledgeIndex(path).add(page(text="words"))


def test_an_address_is_kept_without_user_and_fragment() -> None:
    """Credentials and fragments are no part of an indexed address; other schemes have none."""
    assert bare_address("https://ada:pw@Example.org/a?b=1#c") == "https://example.org/a?b=1"
    assert bare_address("file:///etc/passwd") == bare_address("https://[x") == ""


def test_passages_are_short_and_lose_no_word() -> None:
    """Each passage has a bounded length, and together they have every word of the text."""
    text = "One sentence here. " * 200 + "\n\n" + "x" * 3_000 + "\nlast line"
    found = passages_of(text)
    assert max(map(len, found)) <= PASSAGE_CHARACTERS + 1
    assert "".join("".join(found).split()) == "".join(text.split())
