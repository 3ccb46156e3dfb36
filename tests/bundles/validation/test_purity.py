from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest
from uncaged_bundles.validation.modules import (
    ALLOWED_MODULES,
    EFFECT_FOR_MODULE,
    MEMBER_REFUSALS,
    advice,
)
from uncaged_bundles.validation.purity import forbidden_import, imported_names


@pytest.mark.parametrize(
    "source",
    [
        "import json, re as r\nfrom dataclasses import dataclass",
        "from __future__ import annotations",
        "import urllib.parse",
        "from urllib import parse",
        "from urllib.parse import quote",
        "import xml.etree.ElementTree as ET",
        "from xml.etree import ElementTree",
        "from collections import abc, OrderedDict",
        "from random import Random",
        "from datetime import datetime, timezone",
        "from uuid import UUID, uuid5",
        "def f():\n    import math",
    ],
)
def test_what_only_computes_may_be_imported(source: str) -> None:
    """The list holds modules by name; a submodule counts by its own name, however it is
    imported.
    """
    assert forbidden_import(ast.parse(source)) is None


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("import json\nimport os", 2, "import of 'os': yield a 'script' effect"),
        ("import os.path", 1, "import of 'os.path': yield a 'script' effect"),
        ("import requests", 1, "import of 'requests': yield an 'http' effect"),
        (
            "from urllib.request import urlopen",
            1,
            "import from 'urllib.request': yield an 'http' effect",
        ),
        ("import urllib", 1, "import of 'urllib': yield an 'http' effect"),
        ("from urllib import request", 1, "import from 'urllib': yield an 'http' effect"),
        ("import subprocess", 1, "yield a 'script' effect"),
        ("import time", 1, 'options["startedAt"]'),
        ("from secrets import token_hex", 1, 'random.Random(options["seed"])'),
        ("import asyncio", 1, "yield an 'all' effect"),
        ("import openai", 1, "yield an 'llm' or a 'role' effect"),
        ("import pathlib", 1, "files are out of a bundle's reach"),
        ("import importlib", 1, "a bundle is one file"),
        ("import sys", 1, "yield an 'output' effect"),
        ("import getpass", 1, "yield an 'ask' effect"),
        ("import wave", 1, "not in the pure part of the standard library"),
        ("import numpy", 1, "not part of Python"),
        (
            "from uncaged_bundles.authoring import Workflow",
            1,
            "build it first with 'uncaged-workflow build FILE'",
        ),
        ("from . import helper", 1, "relative import"),
        ("from .. import helper", 1, "relative import"),
        ("from json import *", 1, "import of everything from 'json'"),
        ("from random import random", 1, "'random.random' is refused"),
        ("from random import Random, SystemRandom", 1, "'random.SystemRandom' is refused"),
        ("from uuid import uuid4", 1, "'uuid.uuid4' is refused"),
        ("from dataclasses import sys", 1, "'dataclasses.sys' is refused: it is no public part"),
        ("from random import _inst", 1, "'random._inst' is refused"),
        ("from collections import _sys as s", 1, "no public part of 'collections'"),
        ("from types import CodeType", 1, "'types.CodeType' is refused"),
        ("def f():\n    if x:\n        import os", 3, "import of 'os'"),
        ("try:\n    import json\nexcept E:\n    import os", 4, "import of 'os'"),
        ("match x:\n    case 1:\n        import os", 3, "import of 'os'"),
        ("class A:\n    with x:\n        from os import path", 3, "import from 'os'"),
        ("while x:\n    pass\nelse:\n    import os", 4, "import of 'os'"),
        ("try:\n    pass\nfinally:\n    import os", 4, "import of 'os'"),
    ],
)
def test_a_forbidden_import_names_module_and_effect(source: str, line: int, message: str) -> None:
    """A forbidden import is found at any depth, with its line and the effect that does the same
    work.
    """
    finding = forbidden_import(ast.parse(source))
    assert finding is not None
    assert finding.line == line
    assert message in finding.message


def test_the_first_import_in_the_file_is_told() -> None:
    """Position decides, not the order in which a tree is walked."""
    finding = forbidden_import(ast.parse("def f():\n    import os\nimport sys; import socket"))
    assert finding is not None
    assert "'os'" in finding.message


def test_names_are_known_by_what_they_stand_for() -> None:
    """``import a.b`` binds ``a``; ``as`` binds the whole."""
    tree = ast.parse(
        "import urllib.parse\nimport xml.etree.ElementTree as ET\nfrom datetime import datetime as dt"
    )
    assert imported_names(tree) == {
        "urllib": "urllib",
        "ET": "xml.etree.ElementTree",
        "dt": "datetime.datetime",
    }


@pytest.mark.slow
def test_every_allowed_module_exists() -> None:
    """A word on the list that no Python knows would be a slip of the pen."""
    names = " ".join(sorted(ALLOWED_MODULES - {"__future__"}))
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", f"import {names.replace(' ', ', ')}"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_refused_member_exists() -> None:
    """A refusal of something that is not there would guard nothing."""
    for full in MEMBER_REFUSALS:
        module, _, name = full.partition(".")
        value: object = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)


def test_no_module_is_both_allowed_and_answered_with_an_effect() -> None:
    """The two lists would contradict each other."""
    assert not ALLOWED_MODULES & EFFECT_FOR_MODULE.keys()


def test_a_submodule_gets_the_advice_of_its_package() -> None:
    """The nearest name that has advice of its own counts."""
    assert advice("os.path") == EFFECT_FOR_MODULE["os"]
    assert advice("concurrent.futures.thread") == EFFECT_FOR_MODULE["concurrent"]
