"""Browser: operations on web pages, in a browser session that is a process of its own. The names
are those for programs outside of flows; their modules are loaded when a name is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .control import BrowserControl
    from .opening import OpenedBrowser, open_browser
    from .operations import read_operation
    from .recording.imports import import_recording
    from .recording.recorder import Recorder
    from .recording.recording import Recording, read_recording
    from .recording.replaying import RecordingReplay, replay

__all__ = [
    "BrowserControl",
    "OpenedBrowser",
    "Recorder",
    "Recording",
    "RecordingReplay",
    "import_recording",
    "open_browser",
    "read_operation",
    "read_recording",
    "replay",
]

_MODULES = {
    "BrowserControl": "control",
    "OpenedBrowser": "opening",
    "Recorder": "recording.recorder",
    "Recording": "recording.recording",
    "RecordingReplay": "recording.replaying",
    "import_recording": "recording.imports",
    "open_browser": "opening",
    "read_operation": "operations",
    "read_recording": "recording.recording",
    "replay": "recording.replaying",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
