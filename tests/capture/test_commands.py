"""Shell commands by what they do."""

from __future__ import annotations

import pytest
from uncaged_capture.commands import may_send, only_looks, parse, unsteady_parts


@pytest.mark.parametrize(
    "text",
    [
        "ls -la src",
        "grep -c error log.txt | tail -1",
        "wc -l < notes.txt 2>/dev/null",
        "cd src && cat a.py",
        "sed -n 3,5p a.txt",
        "awk '{print $2}' a.txt",
        "find . -name '*.py'",
        "git log --oneline -3",
        "curl -s https://api.test/items",
        "wget -qO- https://api.test/items",
        "sort a.txt 2>&1 | uniq -c",
        "echo hello",
        "xargs -n 1 wc -l < list",
    ],
)
def test_a_look_changes_nothing(text: str) -> None:
    """Known programs with arguments that let them read."""
    assert only_looks(text)


@pytest.mark.parametrize(
    "text",
    [
        "ls > files.txt",
        "sed -i s/a/b/ a.txt",
        "sed -n 's/a/b/w out' a.txt",
        "sed 's/x/date/e' a.txt",
        "sort -o a.txt a.txt",
        "sort -uo a.txt a.txt",
        "find . -name '*.pyc' -delete",
        "find . -exec rm {} ;",
        "awk '{print > \"out\"}' a.txt",
        "awk 'BEGIN {system(\"rm a\")}'",
        "git commit -m x",
        "git branch new",
        "curl -d x=1 https://api.test/items",
        "curl -sXPOST https://api.test/items",
        "curl -sX PUT https://api.test/items",
        "curl -X $METHOD https://api.test/items",
        "curl --request DELETE https://api.test/items/1",
        "curl -so page.html https://api.test/",
        "curl --json '{}' https://api.test/",
        "wget https://api.test/page",
        "uniq a.txt b.txt",
        "python3 build.py",
        "ls | tee files.txt",
        "ls | xargs rm",
        "env X=1 rm a",
        "f() { rm a; }; f",
        "eval rm a",
        "echo $(rm a)",
        "cat a.txt | ( cat > b.txt )",
        "echo 'unfinished",
        "",
        "x=1",
    ],
)
def test_a_command_that_may_change_something_is_no_look(text: str) -> None:
    """Redirections, writing options, unknown programs, what another program starts."""
    assert not only_looks(text)


def test_the_parts_of_a_line() -> None:
    """Commands of pipelines and substitutions, and files that are redirected to."""
    parsed = parse(
        "FOO=1 /usr/bin/grep -n \"a b\" x | xargs -n 1 wc > 'out 1' 2>&1 && echo $(date)"
    )
    assert [one.words for one in parsed.commands] == [
        ("/usr/bin/grep", "-n", "a b", "x"),
        ("xargs", "-n", "1", "wc"),
        ("echo", "$(date)"),
        ("date",),
    ]
    assert parsed.commands[0].program == "grep"
    assert parsed.commands[1].started == ("xargs",) or "wc" in parsed.commands[1].started
    assert [(one.operator, one.path) for one in parsed.redirections] == [(">", "out 1")]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("date +%F > a", ("the clock (date)",)),
        ("echo $RANDOM", ("randomness ($RANDOM)",)),
        ('f=$(mktemp) && uuidgen > "$f"', ("randomness (mktemp)", "randomness (uuidgen)")),
        ("head -c 8 /dev/urandom", ("randomness (/dev/urandom)",)),
        ("python3 -c 'import time; print(time.time())'", ("the clock (time.time)",)),
        ("wc -l a", ()),
    ],
)
def test_the_clock_and_randomness_are_named(text: str, wanted: tuple[str, ...]) -> None:
    """What makes a second run differ from the first."""
    assert unsteady_parts(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("curl -s https://a.test/x > x.json", False),
        ("curl -so x https://a.test/x -H 'd: F'", False),
        ("curl -sf -X GET https://a.test/x | jq .d > out", False),
        ("wget https://a.test/x", False),
        ("git log", False),
        ("echo https://a.test", False),
        ("curl -sX POST https://a.test/x", True),
        ("curl -fsSd x=1 https://a.test/x", True),
        ("curl https://a.test/x --request DELETE", True),
        ("curl -X $M https://a.test/x", True),
        ("echo x | curl -T - https://a.test/x", True),
        ("timeout 5 curl --json '{}' https://a.test", True),
        ("wget --post-data=x https://a.test/x", True),
        ("git push origin main", True),
        ("ssh host ls", True),
        ("python3 send.py https://a.test", True),
    ],
)
def test_what_may_change_something_at_a_host(text: str, wanted: bool) -> None:
    """Requests that only read do not, also if their answer is written to a file."""
    assert may_send(text) is wanted
