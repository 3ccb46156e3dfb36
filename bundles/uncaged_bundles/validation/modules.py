"""Allowlist of modules that a bundle may import, and advice about the effect to use instead of any
other.

The list has modules that only compute: same input, same output, nothing outside the process.
hashlib and hmac are on it (digests are pure); ast, io, inspect, pathlib and zoneinfo are not (they
compile, open files or inspect the interpreter).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

_PURE = """
    __future__ abc array base64 binascii bisect calendar cmath collections collections.abc colorsys contextlib copy csv dataclasses datetime
    decimal difflib enum fnmatch fractions functools graphlib hashlib heapq hmac html html.entities html.parser ipaddress itertools json
    json.decoder json.encoder keyword math numbers operator pprint quopri random re reprlib shlex statistics string struct textwrap tomllib
    types typing unicodedata urllib.parse uuid xml.etree.ElementTree zlib
"""
ALLOWED_MODULES = frozenset(_PURE.split())

_HTTP = "yield an 'http' effect instead"
_SCRIPT = "yield a 'script' effect instead"
_FILES = "files are out of a bundle's reach: yield a 'script' effect, or a 'role' effect with a workspace"
_TIME = "take the time from options[\"startedAt\"], or yield a 'now' or 'sleep' effect instead"
_RANDOM = 'use random.Random(options["seed"]) instead'
_ALL = "yield an 'all' effect to do several things at once instead"
_MODEL = "yield an 'llm' or a 'role' effect instead"
_WEB = "yield a 'fetch' effect instead"
_CODE = "a bundle is one file with all its code in it: carry what you need inside it"
_OUTPUT = "yield an 'output' effect with the text instead"
BUILD_FIRST = (
    "this is a definition, not a bundle: build it first with 'uncaged-workflow build FILE'"
)


def _for_each(advice: str, modules: str) -> dict[str, str]:
    return dict.fromkeys(modules.split(), advice)


EFFECT_FOR_MODULE: Mapping[str, str] = {
    **_for_each(
        _HTTP,
        "requests httpx httpx2 aiohttp urllib urllib3 http socket ssl ftplib smtplib imaplib poplib xmlrpc websockets",
    ),
    **_for_each(_SCRIPT, "subprocess pty ctypes cffi signal resource sqlite3 os posix nt platform"),
    **_for_each(
        _FILES,
        "pathlib shutil glob tempfile io fileinput posixpath ntpath zipfile tarfile codecs mmap fcntl",
    ),
    **_for_each(_TIME, "time sched zoneinfo timeit"),
    **_for_each(_RANDOM, "secrets"),
    **_for_each(_ALL, "threading multiprocessing concurrent asyncio queue _thread"),
    **_for_each(_MODEL, "openai anthropic google litellm langchain mcp"),
    **_for_each(_WEB, "bs4 lxml playwright selenium scrapy webbrowser"),
    **_for_each(
        _CODE,
        "importlib imp pkgutil runpy zipimport builtins ast code codeop inspect marshal pickle shelve gc weakref",
    ),
    **_for_each(_OUTPUT, "sys logging warnings traceback"),
    **_for_each("yield an 'ask' effect instead", "getpass readline cmd curses tkinter"),
    **_for_each(
        BUILD_FIRST, "uncaged_bundles uncaged_engine uncaged_roles uncaged_templates uncaged_cli"
    ),
}

MEMBER_REFUSALS: Mapping[str, str] = {
    "uuid.uuid1": _RANDOM,
    "uuid.uuid4": 'build it from a seeded generator: uuid.UUID(int=random.Random(options["seed"]).getrandbits(128), version=4)',
    "uuid.getnode": "a bundle knows no machine",
    **dict.fromkeys(
        (
            "datetime.datetime.now",
            "datetime.datetime.utcnow",
            "datetime.datetime.today",
            "datetime.date.today",
        ),
        _TIME,
    ),
    **dict.fromkeys(("types.CodeType", "types.FunctionType", "types.LambdaType"), _CODE),
    **dict.fromkeys(("typing.get_type_hints", "typing.ForwardRef"), "it evaluates text as code"),
}
"""Members of allowed modules that a bundle may not use, with what to use instead. ``random`` has a
rule of its own.
"""

LEAKED_MODULES = frozenset({"sys", "os", "builtins", "importlib", "inspect", "io"})
"""Modules that are attributes of allowed ones (``dataclasses.sys``); refused there, too."""


def advice(module: str) -> str:
    """Return what to use instead of importing *module*."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if found := EFFECT_FOR_MODULE.get(".".join(parts[:length])):
            return found
    if parts[0] in sys.stdlib_module_names:
        return "it is not in the pure part of the standard library: carry what you need inside the bundle, or yield a 'script' effect"
    return "it is not part of Python: carry what you need inside the bundle, or yield a 'script' effect that runs it"
