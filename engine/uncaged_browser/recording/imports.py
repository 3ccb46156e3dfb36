"""Import of recordings that other tools made."""

from __future__ import annotations

from typing import Literal

from .codegen import read_codegen
from .devtools import read_devtools
from .recording import Recording, read_recording
from .selenium import read_selenium

__all__ = ["ImportFormat", "import_recording"]

ImportFormat = Literal["recorder", "playwright", "selenium", "recording"]
READERS = {
    "recorder": read_devtools,
    "playwright": read_codegen,
    "selenium": read_selenium,
    "recording": read_recording,
}
"""recorder: JSON of the DevTools Recorder. playwright: Python of its code generator. selenium: JSON
of Selenium IDE. recording: the project's own JSON.
"""


def import_recording(text: str, format: ImportFormat) -> Recording:
    """Return the recording in a text; what could not be carried over is in its ``left_out``.

    Raises:
        RecordingError: the text is torn, too large, malformed, or goes to too many hosts.
    """
    return READERS[format](text)
