"""Grammar of sentences: loading, matching, the best reading, completion."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_dispatcher.grammar.best import best_reading
from uncaged_dispatcher.grammar.choices import Captures, Choices, Optionals, Repeats
from uncaged_dispatcher.grammar.compiled import CompiledGrammar, compile_rules
from uncaged_dispatcher.grammar.completion import Completion, complete_prefix
from uncaged_dispatcher.grammar.continuations import Direction
from uncaged_dispatcher.grammar.entities import ENTITY_READERS
from uncaged_dispatcher.grammar.loading import load_rules
from uncaged_dispatcher.grammar.matching import Readings, match_all
from uncaged_dispatcher.grammar.occurrences import EntityReaders, Occurrences
from uncaged_dispatcher.grammar.problems import Problem
from uncaged_dispatcher.grammar.readings import Reading
from uncaged_dispatcher.grammar.sentences import Sentence


class Grammar:
    """Rules that read sentences.

    Attributes:
        compiled: the rules for the matchers, which JSON can keep.
        warnings: problems that do not keep the grammar from being used.
    """

    def __init__(self, compiled: CompiledGrammar, warnings: tuple[Problem, ...] = ()) -> None:
        self.compiled = compiled
        self.warnings = warnings

    def match(
        self,
        sentence: str,
        *,
        captures: Captures | str = Captures.EXHAUSTIVE,
        optionals: Optionals | str = Optionals.EXHAUSTIVE,
        repeats: Repeats | str = Repeats.EXHAUSTIVE,
    ) -> Readings:
        """Return all readings of a sentence as the language defines them.

        A phrase may end a free capture inside a word here, and entities are not checked.

        Args:
            sentence: at most 2,000 characters.
            captures: ``exhaustive``, or the ``shortest`` text of a free capture that leads to a
                reading.
            optionals: ``exhaustive``, or an optional part is only skipped (``take``) or only taken
                (``skip``) where the other leads to no reading.
            repeats: ``exhaustive``, or as many (``greedy``) or as few (``reluctant``) as lead to a
                reading.
        Returns:
            Readings in the order of the search; ``cut`` if there are more.
        Raises:
            SentenceError: the sentence cannot be read.
        """
        choices = Choices(
            captures=Captures(captures), optionals=Optionals(optionals), repeats=Repeats(repeats)
        )
        places = Occurrences(Sentence(sentence), whole_words=False)
        return match_all(self.compiled, places, choices)

    def best(self, sentence: str, *, entities: EntityReaders = ENTITY_READERS) -> Reading | None:
        """Return the best reading of a sentence, by `Rank`; None if it has none.

        Words, numbers and free text begin and end at the boundaries of words, and the text of an
        entity is a text that its reader accepts.

        Raises:
            SentenceError: the sentence cannot be read.
        """
        places = Occurrences(Sentence(sentence), whole_words=True, entities=entities)
        return best_reading(self.compiled, places, self.compiled.candidates(places.sentence))

    def complete(self, prefix: str, direction: Direction | str = Direction.FORWARD) -> Completion:
        """Return the words and captures that can follow the beginning of a sentence.

        Args:
            prefix: at most 2,000 characters.
            direction: ``forward``, or ``backward`` to offer the last word or capture again.
        Raises:
            SentenceError: the text cannot be read.
        """
        return complete_prefix(self.compiled, prefix, Direction(direction))

    def ranked(self, sentence: str, *, entities: EntityReaders = ENTITY_READERS) -> Readings:
        """Return the readings of which `best` returns the first, best first.

        Raises:
            SentenceError: the sentence cannot be read.
        """
        places = Occurrences(Sentence(sentence), whole_words=True, entities=entities)
        readings = match_all(self.compiled, places, Choices())
        readings.sort(key=lambda reading: reading.rank)
        return readings


def load(
    text: str,
    *,
    name: str = "main.agr",
    files: Mapping[str, str] | None = None,
    start_value_required: bool = True,
    value_expressions: bool = True,
) -> Grammar:
    """Return the grammar of a text.

    Args:
        text: the grammar.
        name: its name in problems.
        files: texts of the files that imports may name, by their path relative to the grammar.
        start_value_required: refuse a ``<Start>`` with an alternative that has no value.
        value_expressions: accept operators, methods and templates in values, not only literals.
    Raises:
        GrammarError: the grammar has errors; all that were found are in ``problems``.
    """
    loaded = load_rules(
        text,
        name=name,
        files=files,
        start_value_required=start_value_required,
        value_expressions=value_expressions,
    )
    return Grammar(compile_rules(loaded.rules), loaded.warnings)
