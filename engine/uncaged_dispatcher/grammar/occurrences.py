"""Places of a sentence where a phrase, a number or the end of a text capture can be."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from uncaged_dispatcher.grammar.patterns import NumberSlot, Phrase, TextSlot
from uncaged_dispatcher.grammar.readings import Closed
from uncaged_dispatcher.grammar.sentences import SPACE, Sentence, SentenceError
from uncaged_dispatcher.grammar.syntax import UNDEFINED, Spacing

EntityReaders = Mapping[str, Callable[[str], object]]
"""Readers of entities by their type: they return the value of a text, or `UNDEFINED`."""
NO_ENTITIES: Final[EntityReaders] = {}
ENTITY_STEPS: Final = 20
"""Work of reading an entity, in steps."""
ENTITY_CHARACTERS: Final = 10
"""Characters of an entity's text that its reader reads in a step."""
TEXT_END_STEPS: Final = 2
"""Work of one place where a text capture can end."""
ALTERNATIVE_STEPS: Final = 2
"""Work of entering one alternative of a rule in a search for all ways."""
MAX_STEPS: Final = 150_000
"""Most steps of a search, less than a second of CPU."""


class Occurrences:
    """A sentence under search: places of parts, each computed once, and the work done so far.

    A text capture of a type in ``entities`` is a text that its reader accepts.
    ``whole_words`` asks for the boundary of a word before each part, too. Without it a phrase may
    end a text capture inside a word, as in the original language.
    """

    __slots__ = ("entities", "places", "sentence", "steps", "values", "whole_words")

    def __init__(
        self, sentence: Sentence, *, whole_words: bool, entities: EntityReaders = NO_ENTITIES
    ) -> None:
        self.sentence = sentence
        self.entities = entities
        self.values: dict[tuple[str, str], object] = {}
        self.whole_words = whole_words
        self.steps = 0
        self.places: dict[tuple[int, Spacing, Spacing], tuple[list[int], list[int]]] = {}

    def work(self, steps: int = 1) -> None:
        """Count work.

        Raises:
            SentenceError: the search took too many steps.
        """
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise SentenceError(
                f"the sentence has too many possible readings: gave up after {MAX_STEPS} steps;"
                " a shorter sentence or a grammar with fewer free captures takes less"
            )

    def next(
        self, part: Phrase | NumberSlot, place: int, lead: Spacing, spacing: Spacing
    ) -> tuple[int, int] | None:
        """Return start and end of a phrase or number that follows *place* directly.

        Args:
            lead: spacing between *place* and the part.
            spacing: spacing inside the part and after it.
        """
        sentence = self.sentence
        for start in sentence.starts(place, lead):
            end = self.end(part, start, spacing)
            if end is None:
                continue
            if self.whole_words and not sentence.boundary_before(start, lead):
                return None
            return (start, end) if sentence.boundary_after(end, spacing) else None
        return None

    def end(self, part: Phrase | NumberSlot, start: int, spacing: Spacing) -> int | None:
        """Return the end of a part that begins at *start*."""
        if isinstance(part, NumberSlot):
            return self.sentence.number_at(start)
        if not self.sentence.folded.startswith(part.words[0], start):
            return None
        ends = self.word_ends(part, start, Spacing.NONE, spacing)
        return ends[-1] if len(ends) == len(part.words) else None

    def word_ends(self, part: Phrase, place: int, lead: Spacing, spacing: Spacing) -> list[int]:
        """Return the end of each word of a phrase after *place*, up to the first that is not there.

        Args:
            lead: spacing between *place* and the phrase.
            spacing: spacing inside the phrase and after it.
        """
        sentence = self.sentence
        folded = sentence.folded
        ends: list[int] = []
        for word in part.words:
            for start in sentence.starts(place, spacing if ends else lead):
                if folded.startswith(word, start):
                    break
            else:
                break
            place = start + len(word)
            if not sentence.boundary_after(place, spacing):
                break
            if self.whole_words and not ends and not sentence.boundary_before(start, lead):
                break
            ends.append(place)
        self.work(1 + len(ends))
        return ends

    def begun_phrase(
        self, part: Phrase, opened: int, lead: Spacing, spacing: Spacing
    ) -> tuple[int, int, bool]:
        """Return how a phrase that ends the open text begins at the end of the sentence.

        Returns:
            The number of its whole words there, the place after them, and whether the sentence ends
            with the beginning of the next word. Without any of that, 0, 0 and False.
        """
        sentence = self.sentence
        best = (0, 0, False)
        for start in self.candidates(part):
            if start <= sentence.solid[opened] or not sentence.boundary_before(start, lead):
                continue
            ends = self.word_ends(part, start, Spacing.NONE, spacing)
            if best[0] < len(ends) < len(part.words):
                after = sentence.starts(ends[-1], spacing)[-1]
                rest = sentence.folded[after:]
                if not rest or sentence.solid[after] >= sentence.size:
                    best = (len(ends), ends[-1], False)
                elif part.words[len(ends)].startswith(rest):
                    best = (len(ends), ends[-1], True)
        if best[0]:
            return best
        word = part.words[0]
        first = max(sentence.size - len(word) + 1, sentence.solid[opened] + 1)
        for start in range(first, sentence.size):
            if word.startswith(sentence.folded[start:]) and sentence.boundary_before(start, lead):
                return 0, sentence.trimmed[start], True
        return best

    def after_text(
        self, part: Phrase | NumberSlot, opened: int, lead: Spacing, spacing: Spacing
    ) -> Iterator[tuple[int, int]]:
        """Yield start and end of a phrase or number at every place that can end the text capture
        that was opened at *opened*, nearest first.
        """
        key = (id(part), lead, spacing)
        if key not in self.places:
            self.places[key] = self.all_places(part, lead, spacing)
        starts, ends = self.places[key]
        first = bisect_right(starts, self.sentence.solid[opened])
        self.work(TEXT_END_STEPS * (len(starts) - first))
        return zip(starts[first:], ends[first:], strict=True)

    def all_places(
        self, part: Phrase | NumberSlot, lead: Spacing, spacing: Spacing
    ) -> tuple[list[int], list[int]]:
        """Return starts and ends of a part anywhere in the sentence. Of those that differ only in
        the separators before them, the first counts.
        """
        sentence = self.sentence
        starts: list[int] = []
        ends: list[int] = []
        last = -1
        for start in self.candidates(part):
            end = self.end(part, start, spacing)
            if end is None or not sentence.boundary_after(end, spacing):
                continue
            if self.whole_words and not sentence.boundary_before(start, lead):
                continue
            if sentence.trimmed[start] != last:
                last = sentence.trimmed[start]
                starts.append(start)
                ends.append(end)
        return starts, ends

    def candidates(self, part: Phrase | NumberSlot) -> Iterator[int]:
        """Yield the places where the first word of a phrase or a whole number is."""
        if isinstance(part, NumberSlot):
            yield from self.sentence.number_places()
            return
        word = part.words[0]
        place = self.sentence.folded.find(word)
        while place >= 0:
            self.work()
            yield place
            place = self.sentence.folded.find(word, place + 1)

    def text_start(self, place: int, lead: Spacing) -> int | None:
        """Return where a text capture after *place* begins; None if it cannot."""
        start = place if lead is Spacing.NONE else self.sentence.solid[place]
        if self.sentence.solid[start] >= self.sentence.size:
            return None
        if self.whole_words and not self.sentence.boundary_before(start, lead):
            return None
        return start

    def divisions(self, opened: int) -> Iterator[int]:
        """Yield the places where the open text capture can end because another begins. Without
        whole words there are none, as in the original language.
        """
        if not self.whole_words:
            return
        sentence = self.sentence
        for place in range(sentence.solid[opened] + 1, sentence.size):
            self.work()
            if sentence.text[place - 1] in SPACE and sentence.solid[place] == place:
                yield place

    def close(self, slot: TextSlot, opened: int, end: int) -> Closed | None:
        """Return the end of a text capture; None if its text is no entity of the slot's type."""
        reader = self.entities.get(slot.entity)
        if reader is None:
            return Closed(end)
        sentence = self.sentence
        text = sentence.text[sentence.solid[opened] : sentence.trimmed[end]]
        key = (slot.entity, text)
        if key not in self.values:
            self.work(ENTITY_STEPS + len(text) // ENTITY_CHARACTERS)
            self.values[key] = reader(text)
        value = self.values[key]
        return None if value is UNDEFINED else Closed(end, value)
