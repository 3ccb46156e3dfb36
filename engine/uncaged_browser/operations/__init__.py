"""Operations of a browser: their names, what each may change, and their parameters."""

from .acting import (
    CallAction,
    Click,
    Drag,
    Fill,
    Hover,
    Press,
    Scroll,
    Select,
    SetChecked,
    Type,
    Upload,
    WaitFor,
    Zoom,
)  # fmt: skip
from .operation import (
    MAX_TIMEOUT_S,
    Effect,
    Filled,
    Frames,
    MaybeTarget,
    Navigation,
    Operation,
    Timeout,
)
from .person import OpenSettings, ShowStatus, Speak, StopSpeaking
from .reading import ReadActions, ReadElements, ReadForms, ReadHtml, ReadText, ReadView, Screenshot
from .table import OPERATIONS, read_operation, write_operation
from .tabs import Address, Back, Close, Follow, Forward, Navigate, Open, Reload, Switch, Tabs

__all__ = [
    "MAX_TIMEOUT_S", "OPERATIONS", "Address", "Back", "CallAction", "Click", "Close", "Drag", "Effect", "Fill", "Filled",
    "Follow", "Forward", "Frames", "Hover", "MaybeTarget", "Navigate", "Navigation", "Open", "OpenSettings", "Operation", "Press",
    "ReadActions", "ReadElements", "ReadForms", "ReadHtml", "ReadText", "ReadView", "Reload", "Screenshot", "Scroll",
    "Select", "SetChecked", "ShowStatus", "Speak", "StopSpeaking", "Switch", "Tabs", "Timeout", "Type", "Upload", "WaitFor", "Zoom",
    "read_operation", "write_operation",
]  # fmt: skip
