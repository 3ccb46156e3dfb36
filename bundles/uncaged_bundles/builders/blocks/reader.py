"""Reader for the blocks of a block flow: required and optional keys, values and nesting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles import hosts, shapes
from uncaged_bundles.shapes import Path, ShapeError

from .expression import compile_expression
from .nesting import INNER

BLOCKS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "start": (frozenset(), frozenset({"variables"})),
    "apiCall": (
        frozenset({"url"}),
        frozenset(
            {
                "method",
                "headers",
                "bodyType",
                "body",
                "formData",
                "responseVariable",
                "retry",
                "timeout_s",
            }
        ),
    ),
    "llmInstruction": (
        frozenset({"instruction"}),
        frozenset({"model", "tools", "resultVariable", "retry", "timeout_s"}),
    ),
    "webScraping": (
        frozenset({"url"}),
        frozenset(
            {
                "captureAs",
                "querySelector",
                "enableSummarization",
                "resultVariable",
                "retry",
                "timeout_s",
            }
        ),
    ),
    "condition": (frozenset({"expression", "then"}), frozenset({"else", "resultVariable"})),
    "forEach": (
        frozenset({"list", "steps"}),
        frozenset({"itemVariable", "indexVariable", "limit", "resultVariable"}),
    ),
    "code": (frozenset({"expression"}), frozenset({"resultVariable"})),
    "flow": (frozenset({"flow"}), frozenset({"prompt", "params", "resultVariable"})),
}
"""Required and optional keys, by the type of block."""
COMMON_KEYS = frozenset({"directOutput", "description", "name"})
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
BODY_TYPES = ("json", "form", "text")
CAPTURES = ("text", "html", "querySelector")
MAX_BLOCKS = 1000
MAX_ITEMS = 1000
MAX_NESTING = 8


class BlockReader:
    """Reads blocks, nested ones included.

    expressions: all compiled expressions, by their text. notes: unknown keys.
    """

    def __init__(self) -> None:
        self.expressions: dict[str, object] = {}
        self.notes: list[str] = []
        self._count = 0

    def steps(self, raw: object, path: Path, before: str, depth: int = 0) -> list[Any]:
        if not isinstance(raw, list):
            raise ShapeError(path, f"must be a list of blocks, not {shapes.shown(raw)}")
        if not before and not raw:
            raise ShapeError(path, "is empty; a flow has at least one block")
        self._count += len(raw)
        if self._count > MAX_BLOCKS:
            raise ShapeError(path, f"a flow has at most {MAX_BLOCKS:,} blocks")
        if depth > MAX_NESTING:
            raise ShapeError(path, f"blocks are nested at most {MAX_NESTING} levels deep")
        return [
            self._block(item, (*path, index), f"{before}{index + 1}", depth)
            for index, item in enumerate(raw)
        ]

    def _block(self, raw: object, path: Path, number: str, depth: int) -> dict[str, object]:
        fields = shapes.mapping(raw, path)
        kind = fields.get("type")
        if not isinstance(kind, str) or kind not in BLOCKS:
            what = "is missing" if kind is None else f"{shapes.shown(kind)} is no type of block"
            raise ShapeError(
                (*path, "type"), f"{what} (block {number}); known: {', '.join(BLOCKS)}"
            )
        if "config" not in fields:
            raise ShapeError((*path, "config"), f"is missing; block {number} ({kind}) needs one")
        here = (*path, "config")
        config = shapes.mapping(fields["config"], here)
        needed, possible = BLOCKS[kind]
        for key in sorted(needed - set(config)):
            raise ShapeError((*here, key), f"is missing; block {number} ({kind}) needs it")
        unknown = [key for key in config if key not in needed | possible | COMMON_KEYS]
        self.notes += [
            f"block {number} ({kind}): {key!r} is not known and does nothing" for key in unknown
        ]
        if kind == "start" and number != "1":
            raise ShapeError(
                path, f"block {number} is a start block; there is one, and it is the first"
            )
        self._check(kind, config, here)
        checked = dict(config)
        for key in INNER.get(kind, ()):
            if key in config:
                checked[key] = self.steps(config[key], (*here, key), f"{number}.", depth + 1)
        return {"type": kind, "config": checked}

    def _check(self, kind: str, config: Mapping[str, object], path: Path) -> None:
        """Check the values of one block."""
        for key in (
            "responseVariable",
            "resultVariable",
            "itemVariable",
            "indexVariable",
            "url",
            "prompt",
            "flow",
            "model",
        ):
            if config.get(key) is not None:
                shapes.text(config[key], (*path, key))
        shapes.truth(config.get("directOutput") or False, (*path, "directOutput"))
        if "timeout_s" in config:
            shapes.positive(config["timeout_s"], (*path, "timeout_s"))
        match kind:
            case "apiCall":
                self._check_call(config, path)
            case "webScraping":
                capture = shapes.one_of(*CAPTURES)(
                    config.get("captureAs") or "text", (*path, "captureAs")
                )
                if capture == "querySelector" and not config.get("querySelector"):
                    raise ShapeError((*path, "querySelector"), "is missing; captureAs asks for it")
                shapes.text(config.get("querySelector") or "", (*path, "querySelector"))
            case "llmInstruction":
                self._check_tools(config, path)
            case "forEach":
                self._check_loop(config, path)
            case "flow":
                shapes.mapping(config.get("params") or {}, (*path, "params"))
            case "condition" | "code":
                text = shapes.text(config["expression"], (*path, "expression"))
                self.expressions[text] = compile_expression(text, (*path, "expression"))
            case _:
                pass
        address = config.get("url")
        if (
            isinstance(address, str)
            and address.strip()
            and (flaw := hosts.flaw_in_address(address))
        ):
            raise ShapeError((*path, "url"), flaw)

    def _check_loop(self, config: Mapping[str, object], path: Path) -> None:
        if not isinstance(config["list"], str | list):
            raise ShapeError(
                (*path, "list"),
                f"must be a list or a text such as ${{items}}, not {shapes.shown(config['list'])}",
            )
        limit = shapes.whole(config.get("limit", 1), (*path, "limit"))
        if not 1 <= limit <= MAX_ITEMS:
            raise ShapeError((*path, "limit"), f"must be from 1 to {MAX_ITEMS:,}, not {limit}")

    def _check_tools(self, config: Mapping[str, object], path: Path) -> None:
        listed = config.get("tools") or []
        if not isinstance(listed, list):
            raise ShapeError(
                (*path, "tools"),
                f'must be a list of {{"flow", "description"}}, not {shapes.shown(listed)}',
            )
        for index, item in enumerate(listed):
            entry = shapes.mapping(item, (*path, "tools", index))
            shapes.known_keys(entry, ("flow", "description"), (*path, "tools", index))
            shapes.text(
                shapes.required(entry, "flow", (*path, "tools", index)),
                (*path, "tools", index, "flow"),
            )
            shapes.text(entry.get("description", ""), (*path, "tools", index, "description"))

    def _check_call(self, config: Mapping[str, object], path: Path) -> None:
        method = shapes.text(config.get("method", "GET"), (*path, "method"))
        if method.upper() not in METHODS:
            raise ShapeError(
                (*path, "method"), f"{shapes.shown(method)} is not one of {', '.join(METHODS)}"
            )
        shapes.one_of(*BODY_TYPES)(config.get("bodyType") or "json", (*path, "bodyType"))
        for key in ("headers", "formData"):
            listed = config.get(key) or []
            if not isinstance(listed, list):
                raise ShapeError(
                    (*path, key),
                    f'must be a list of {{"key", "value"}}, not {shapes.shown(listed)}',
                )
            for index, item in enumerate(listed):
                entry = shapes.mapping(item, (*path, key, index))
                shapes.text(entry.get("key", ""), (*path, key, index, "key"))
