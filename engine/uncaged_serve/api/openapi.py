"""OpenAPI document of the API, made from its endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel
from uncaged_bundles.version import __version__

from .endpoints import ApiEndpoint, EventStream, Fields

REF = "#/components/schemas/{model}"
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["kind", "message"],
            "properties": {
                "kind": {"type": "string"},
                "message": {"type": "string"},
                "exitCode": {"type": "integer"},
            },
        }
    },
}
DESCRIPTIONS = {
    "200": "Success",
    "201": "Created",
    "400": "A key is missing, unknown or wrong",
    "401": "The token is missing or wrong",
    "403": "The server is read-only, or the origin is foreign",
    "404": "There is no such thing",
    "409": "The present state forbids it, or another request was first",
    "422": "A bundle or a file is at fault",
    "503": "The machine or the store refuses it",
}


def openapi_document(
    endpoints: Sequence[ApiEndpoint], streams: Sequence[EventStream]
) -> dict[str, Any]:
    """Return the document: OpenAPI 3.1, schemas in JSON Schema 2020-12."""
    schemas: dict[str, Any] = {"Error": ERROR}
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        operation = _operation(one.path, one.summary, one.query, schemas)
        if one.body is not None:
            content = {"application/json": {"schema": _reference(one.body, schemas)}}
            operation["requestBody"] = {"required": True, "content": content}
        success: dict[str, Any] = {"description": DESCRIPTIONS[str(one.status)]}
        if one.answer is not None:
            schema = _reference(one.answer, schemas)
            success["content"] = {"application/json": {"schema": schema}}
        operation["responses"] = {str(one.status): success, **_errors(changes=one.method != "GET")}
        paths.setdefault(one.path, {})[one.method.lower()] = operation
    for stream in streams:
        operation = _operation(stream.path, stream.summary, stream.query, schemas)
        success = {"description": "Server-sent events", "content": {"text/event-stream": {}}}
        operation["responses"] = {"200": success, **_errors(changes=False)}
        paths.setdefault(stream.path, {})["get"] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "uncaged-workflow", "version": __version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _errors(*, changes: bool) -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": REF.format(model="Error")}}}
    statuses = ["400", "401", "404", "422", "503", *(("403", "409") if changes else ())]
    return {one: {"description": DESCRIPTIONS[one], "content": content} for one in sorted(statuses)}


def _operation(
    path: str, summary: str, query: type[Fields] | None, schemas: dict[str, Any]
) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", path)
    ]
    if query is not None:
        schema = query.model_json_schema(ref_template=REF)
        schemas.update(schema.get("$defs", {}))
        required = schema.get("required", [])
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": one}
            for name, one in schema.get("properties", {}).items()
        ]
    return {"summary": summary, **({"parameters": parameters} if parameters else {})}


def _reference(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, str]:
    schema = model.model_json_schema(ref_template=REF)
    schemas.update(schema.pop("$defs", {}))
    schemas[model.__name__] = schema
    return {"$ref": REF.format(model=model.__name__)}
