"""Selection of calls: what is kept, what is dropped and why."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from testbed.traced_calls import edited, ran, traced, wrote
from uncaged_capture.calls import Command
from uncaged_capture.commands import only_looks
from uncaged_capture.selecting import Selection, occurs, select, values_in

PROMPT = "How many errors are in log.txt? Write the number to out.txt"


def chosen(*calls: tuple[str, object, str], answer: str = "done") -> Selection:
    return select(traced(*calls), answer=answer, prompt=PROMPT)


def numbers(selection: Selection) -> list[int]:
    return [call.number for call in selection.kept]


def reasons(selection: Selection) -> dict[int, str]:
    return {one.call.number: one.reason for one in selection.dropped}


def test_detours_are_dropped_with_a_reason() -> None:
    """A failed call, a look that nothing used, a repeated look."""
    selection = chosen(
        ran("ls", "log.txt\n"),
        ran("cat lgo.txt", "", 1),
        ran("grep -c ERROR log.txt", "4213\n"),
        ran("grep -c ERROR log.txt", "4213\n"),
        wrote("out.txt", "4213\n"),
        answer="There are 4213 errors.",
    )
    assert numbers(selection) == [3, 5]
    assert reasons(selection) == {
        1: "nothing used its result",
        2: "it failed: exit code 1",
        4: "it repeats call 3",
    }
    assert [(use.number, use.text, use.where) for use in selection.uses] == [
        (3, "4213", 5),
        (3, "4213", None),
    ]
    assert selection.is_in_answer(selection.kept[0])
    assert not selection.is_in_answer(selection.kept[1])


def test_a_look_after_a_change_is_no_repetition() -> None:
    """The second look shows another file."""
    selection = chosen(
        ran("cat v", "old-1\n"),
        ran("sh build.sh"),
        ran("cat v", "old-1\n"),
        answer="it is old-1",
    )
    assert numbers(selection) == [1, 2, 3]


def test_a_file_that_is_written_anew_is_written_once() -> None:
    """Only if nothing could use it in between."""
    again = chosen(wrote("a", "1"), ran("sh", "", 1), wrote("a", "2"))
    assert reasons(again)[1] == "call 3 wrote the same file anew"
    between = chosen(wrote("a", "1"), ran("sh a"), wrote("a", "2"))
    assert numbers(between) == [1, 2, 3]
    assert numbers(chosen(wrote("a", "1"), edited("a", "1", "2"), wrote("b", "2"))) == [1, 2, 3]


def test_a_text_of_the_prompt_proves_no_use() -> None:
    """The agent knew it before; the whole result counts in any case."""
    assert numbers(chosen(ran("ls", "log.txt\nb\n"), answer="log.txt is empty")) == []
    assert numbers(chosen(ran("cat name", "log.txt\n"), answer="It is log.txt")) == [1]


def test_a_part_of_a_word_is_no_use() -> None:
    """12 is not in 4120."""
    assert numbers(chosen(ran("wc -l b", "12 b\n"), answer="4120")) == []
    assert occurs("12", "a 12.") and not occurs("12", "12.5")


CALLS = st.lists(
    st.one_of(
        st.builds(
            ran,
            st.sampled_from(["ls", "cat a", "sh x", "wc -l a", "date"]),
            st.sampled_from(["", "12 a\n", "name: Ada\n", "x/y.py\n"]),
            st.sampled_from([0, 0, 1]),
        ),
        st.builds(wrote, st.sampled_from(["a", "b"]), st.sampled_from(["12", "Ada", "z"])),
        st.builds(edited, st.sampled_from(["a", "b"]), st.just("12"), st.just("13")),
    ),
    max_size=8,
)


@given(calls=CALLS, answer=st.sampled_from(["", "12", "Ada lives in x/y.py"]))
def test_every_call_is_kept_or_listed(calls: list[tuple[str, object, str]], answer: str) -> None:
    """In order, never a failed one, and a kept look is used."""
    found = traced(*calls)
    selection = select(found, answer=answer, prompt=PROMPT)
    listed = [one.call for one in selection.dropped]
    assert sorted([*selection.kept, *listed], key=lambda call: call.number) == list(found)
    assert numbers(selection) == sorted(numbers(selection))
    assert all(one.reason for one in selection.dropped)
    assert not any(call.failure for call in selection.kept)
    used = {use.number for use in selection.uses}
    for call in selection.kept:
        if isinstance(call.action, Command) and only_looks(call.action.text):
            assert call.number in used
    kept = {call.number for call in selection.kept}
    assert all(
        use.number in kept and (use.where is None or use.where in kept) for use in selection.uses
    )


@given(output=st.text(max_size=60))
def test_values_of_an_output_stand_in_it(output: str) -> None:
    """And the longest come first."""
    values = values_in(output)
    assert all(value in output for value in values)
    assert [len(value) for value in values] == sorted(map(len, values), reverse=True)
