"""Sentences as people write them, read without a model: `sentences.jsonl` was written before the
patterns of the shipped flows, and no pattern may change it.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from uncaged_bundles.storage.store import Store
from uncaged_dispatcher.calls import Call, Interpretation, Question
from uncaged_dispatcher.readings.context import SentenceContext
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_engine.api import Engine

from .bench import Bench, Figure
from .table import Row

SENTENCES = Path(__file__).with_name("sentences.jsonl")
FOLDERS = ("documents", "downloads", "photos", "project", "src")
FILES = (
    *("a.txt", "app.log", "b.txt", "backup.zip", "data.csv", "main.py", "notes.txt", "old.csv"),
    *("report.docx", "report.pdf", "todo.txt"),
)
MOST_MISSED = 60
Outcome = Literal["right", "wrong", "question", "miss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paraphrase:
    """A sentence with the call that it means; None if no shipped flow may run."""

    sentence: str
    call: Call | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a sentence was read. asked: the flow is marked, so that a person is asked first."""

    paraphrase: Paraphrase
    outcome: Outcome
    asked: bool
    found: str


def paraphrases() -> list[Paraphrase]:
    """Return the sentences of the file."""
    found = []
    for line in SENTENCES.read_text("utf-8").splitlines():
        fields = json.loads(line)
        name = f"@{fields['verb']}" if "verb" in fields else fields["flow"]
        call = None if name is None else Call(flow=name, params=fields["params"])
        found.append(Paraphrase(sentence=fields["sentence"], call=call))
    return found


def read_all(directory: Path) -> Iterator[Reading]:
    """Yield the readings of all sentences on a fresh store, beside the files that they name."""
    place = directory / "place"
    for name in FOLDERS:
        (place / name).mkdir(parents=True)
    for name in FILES:
        (place / name).write_text("text\n")
    engine = Engine.open(Store.open(directory / "store").root)
    context = SentenceContext(environment={"HOME": str(place)}, directory=place)
    interpreter = Interpreter(engine)
    try:
        for paraphrase in paraphrases():
            yield _read(engine, interpreter, paraphrase, context)
    finally:
        interpreter.close()


def _read(
    engine: Engine, interpreter: Interpreter, paraphrase: Paraphrase, context: SentenceContext
) -> Reading:
    found = interpreter.interpret(paraphrase.sentence, context=context)
    outcome: Outcome = "miss"
    if isinstance(found, Question):
        outcome = "question"
    elif isinstance(found, Interpretation):
        expected = paraphrase.call
        same = expected is not None and [_settled(engine, call) for call in found.calls] == [
            _settled(engine, expected)
        ]
        outcome = "right" if same else "wrong"
    return Reading(
        paraphrase=paraphrase,
        outcome=outcome,
        asked=isinstance(found, Interpretation) and bool(found.confirm),
        found=json.dumps(found.document(), ensure_ascii=False),
    )


def _settled(engine: Engine, call: Call) -> Call:
    """Return a call without the parameters that equal the flow's defaults."""
    if call.flow.startswith("@"):
        return call
    properties = engine.bundle(call.flow).descriptor.parameters.get("properties", {})
    defaults = {
        name: part["default"]
        for name, part in cast("Mapping[str, Mapping[str, object]]", properties).items()
        if "default" in part
    }
    params = {
        name: value
        for name, value in call.params.items()
        if name not in defaults or defaults[name] != value
    }
    return Call(flow=call.flow, params=params)


def measure(bench: Bench) -> Sequence[Row]:
    """Count the sentences that are read as meant, and those whose wrong flow would run at once."""
    with tempfile.TemporaryDirectory(dir=bench.memory) as directory:
        readings = list(read_all(Path(directory)))
    meant = Counter(one.outcome for one in readings if one.paraphrase.call is not None)
    wrong = [one for one in readings if one.outcome == "wrong" and not one.asked]
    return (
        Row(
            figure="paraphrases",
            title=f"of {meant.total()} sentences, not read as meant without a model",
            values=(meant.total() - meant["right"],),
            unit="",
            baseline=f"{meant['question']} asked, {meant['miss']} not read",
            reach=MOST_MISSED,
        ),
        Row(
            figure="paraphrases",
            title=f"a wrong flow runs without a question, of all {len(readings)}",
            values=(len(wrong),),
            unit="",
            baseline="none",
            reach=0,
        ),
    )


FIGURES = (Figure(name="paraphrases", measure=measure),)
