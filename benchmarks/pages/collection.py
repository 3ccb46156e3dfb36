"""The 200 pages: each template in several designs."""

from __future__ import annotations

from pathlib import Path

from . import forms, overlays, pickers, places, pointer, routes, rows
from .case import PageCase, Template
from .draw import Draw

__all__ = ["COUNT", "page_case", "template_of"]

TEMPLATES: tuple[Template, ...] = tuple(
    template
    for module in (forms, pickers, overlays, rows, pointer, places, routes)
    for template in module.TEMPLATES
)
COUNT = 200
DIRECTORY = Path("/nowhere")


def template_of(number: int) -> str:
    """Return the name of a page's template."""
    return TEMPLATES[number % len(TEMPLATES)].__name__


def page_case(number: int, seed: int, directory: Path = DIRECTORY) -> PageCase:
    """Return a page, counted from 0, on one seed of data. directory: has the files to upload."""
    variant, index = divmod(number, len(TEMPLATES))
    return TEMPLATES[index](Draw(number, variant, seed, directory))
