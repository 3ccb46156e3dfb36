"""Random values, journals and flows for property tests."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from hypothesis import strategies as st
from uncaged_engine.journal import lines

from .journals import Script
from .looping import EffectError, Run

texts = st.text(st.characters(codec="utf-8"), max_size=12)
numbers = st.one_of(
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
effects = st.one_of(
    st.fixed_dictionaries({"null": st.fixed_dictionaries({"value": values})}),
    st.just({"null": {"fail": "no"}}),
    st.fixed_dictionaries(
        {
            "output": st.fixed_dictionaries(
                {
                    "role": texts,
                    "content": texts,
                    "meta": st.dictionaries(texts, values, max_size=2),
                }
            )
        }
    ),
    st.just({"output": {"role": 5}}),
)
plans = st.lists(effects, max_size=6)


def flow(plan: list[Mapping[str, Any]]) -> Run:
    """A bundle that yields a plan and whose later effects depend on its outcomes."""

    def run() -> Generator[Any, Any, Any]:
        total = 0
        for effect in plan:
            try:
                answer = yield effect
            except EffectError as exc:
                answer = exc.error
            total += len(str(answer.get("content") if isinstance(answer, dict) else answer))
            if total % 3 == 0:
                yield {"null": {"value": total}}
        return {"success": True, "message": str(total)}

    return run


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """A journal as the engine may leave one: finished steps with anything between them, and any
    open end.
    """
    script = Script.begun()
    for seq in range(1, draw(st.integers(0, 6)) + 1):
        _step(draw, script, seq)
    seq = (
        sum(
            lines.shape_of(line)[0] == "step" and not lines.is_sub_step(line)
            for line in script.sealed[1:]
        )
        + 1
    )
    match draw(
        st.sampled_from(
            ["nothing", "open", "voided", "paused", "waiting", "unknown", "ended", "resumed"]
        )
    ):
        case "open":
            script.intent(seq, {"null": {"value": draw(values)}})
        case "voided":
            script.intent(seq).void(
                seq, draw(st.sampled_from(["killed", "environment"])), draw(texts)
            )
        case "paused":
            script.control("pause")
        case "waiting":
            script.intent(seq).control("wait", question=draw(texts))
        case "unknown":
            script.intent(seq).control("unknown", seq=seq)
        case "ended":
            script.end(draw(st.sampled_from(["completed", "killed"])), result=draw(values))
        case "resumed":
            script.end("limit", limit="maxRounds", value=1).control(
                "resume", maxRounds=draw(st.integers(2, 9))
            )
        case _:
            pass
    return script


def _step(draw: st.DrawFn, script: Script, seq: int) -> None:
    if draw(st.integers(0, 3)) == 0:
        script.control("note", notified="interrupted")
    if draw(st.booleans()):
        script.output(seq, draw(texts), draw(texts), **{draw(st.sampled_from("abc")): draw(values)})
        return
    if draw(st.integers(0, 3)) == 0:
        script.intent(seq).void(seq).control("resume", note=draw(texts))
    script.intent(seq, {"null": {"value": draw(values)}})
    for sub in range(draw(st.integers(0, 2))):
        script.step(seq, sub=sub, outcome=draw(values))
    if draw(st.booleans()):
        script.attempt(seq, 2, because="interrupted")
    outcome = draw(values)
    script.step(
        seq,
        **(
            {"outcome": outcome}
            if draw(st.booleans())
            else {"error": {"kind": "k", "message": draw(texts)}}
        ),
    )
