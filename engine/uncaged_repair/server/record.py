"""Interception of the calls of chosen functions while tests run. Of nested calls only the outermost
is passed on.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from types import CodeType, FrameType, FunctionType
    from typing import Any

GENERATOR = 0x20 | 0x200
"""Flags of the code of generator functions; their frames start more than once."""
STAR, STARS = 0x04, 0x08


class RecordedCall:
    """Call that is about to run. arguments: by name, in the order of the parameters. function: its
    function object, once that is known.
    """

    def __init__(self, frame: FrameType) -> None:
        self.code = frame.f_code
        code, values = self.code, frame.f_locals
        self.positional = code.co_varnames[: code.co_argcount]
        count = code.co_argcount + code.co_kwonlyargcount
        self.keywords = code.co_varnames[code.co_argcount : count]
        self.star = code.co_varnames[count] if code.co_flags & STAR else None
        count += bool(self.star)
        self.stars = code.co_varnames[count] if code.co_flags & STARS else None
        names = [*self.positional, *self.keywords]
        names += [name for name in (self.star, self.stars) if name is not None]
        self.arguments = {name: values[name] for name in names}
        self.cells = {name: values[name] for name in code.co_freevars if name in values}
        self.function: FunctionType | None = None

    def run(self, arguments: dict[str, Any]) -> Any:
        """Call the function as this call would, but with *arguments*."""
        positional = [arguments[name] for name in self.positional]
        keywords = {name: arguments[name] for name in self.keywords}
        if self.star is not None:
            positional += arguments[self.star]
        if self.stars is not None:
            keywords.update(arguments[self.stars])
        if self.function is None:
            raise TypeError("the call has no function")
        return self.function(*positional, **keywords)


class CallRecorder:
    """Recorder of calls in this thread. receive: gets each outermost call of one of *codes*; it
    returns False to end the recording.
    """

    def __init__(self, codes: Container[CodeType], receive: Callable[[RecordedCall], bool]) -> None:
        self._codes, self._receive = codes, receive
        self._inside = 0

    def start(self) -> None:
        self._inside = 0
        sys.settrace(self._called)

    def stop(self) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG002 - the shape of a trace function
        code = frame.f_code
        if code not in self._codes:
            return None
        if code.co_flags & GENERATOR:
            if not self._inside and frame.f_lineno == code.co_firstlineno:
                self._pass_on(frame)
            return None
        if not self._inside:
            self._pass_on(frame)
        self._inside += 1
        frame.f_trace_lines = False
        return self._returned

    def _returned(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ARG002 - the same
        if event == "return":
            self._inside -= 1
        return self._returned

    def _pass_on(self, frame: FrameType) -> None:
        try:
            more = self._receive(RecordedCall(frame))
        except Exception:  # a call that cannot be recorded: the test goes on without
            more = False
        if not more:
            self.stop()
