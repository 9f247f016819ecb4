"""The description of the API in OpenAPI 3.1, made from the declarations that its routes are made from."""

import re
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from daemon.intake.compatible.errors import OpenAIError
from daemon.intake.operations import Answer, Content, Operation, Who
from daemon.intake.queries import Parameter
from daemon.intake.schemas import Schema, Schemas

_ID = Parameter(name="id", place="path", says="A record's id.", schema={"type": "string", "format": "uuid"})
_WRONG_QUERY = (400, "invalid_query")
_OF_EVERY_ACCOUNT = (
    (401, "unauthorized"),
    (429, "too_many_wrong_tokens"),
    (503, "database_unavailable"),
    (500, "internal_error"),
)
_RETRY = "Seconds after which to ask again."


_PROBLEM = {
    "type": "object",
    "description": "An error: RFC 9457, with a stable `code`. Some say more, in members of their own.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "Cause and remedy in a sentence, for a person."},
        "code": {"type": "string", "description": "The stable word for it, for a program."},
    },
    "required": ["type", "title", "status", "detail", "code"],
}


@cache
def _version() -> str:
    return version("rubezh")


def described(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the document, as plain data."""
    schemas = Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = re.sub(r"\{(\w+):\w+\}", r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, path, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Rubezh",
            "version": _version(),
            "summary": "Recordings go in, text comes out, and what was accepted is never lost.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "paths": paths,
        "components": {
            "schemas": {**schemas.named, "Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(operation: Operation, path: str, schemas: Schemas) -> dict[str, Any]:
    parameters = [*([_ID] if "{id}" in path else []), *operation.parameters]
    shown: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.says,
        "tags": [operation.tag],
        "responses": {
            **{str(status): _answer(each, schemas) for status, each in operation.answers.items()},
            **_problems(operation, schemas),
        },
    }
    if parameters:
        shown["parameters"] = [_parameter(each) for each in parameters]
    if operation.body:
        shown["requestBody"] = {
            "required": operation.body_required,
            "content": _contents(operation.body, schemas),
        }
    if operation.who is not Who.ACCOUNT:
        shown["security"] = []
    return shown


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema: Schema = dict(parameter.schema)
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.says,
        "schema": {"type": "array", "items": schema} if parameter.repeats else schema,
    }


def _answer(answer: Answer, schemas: Schemas) -> dict[str, Any]:
    shown: dict[str, Any] = {"description": answer.says}
    if answer.contents:
        shown["content"] = _contents(answer.contents, schemas)
    if answer.headers:
        shown["headers"] = {
            name: {"description": says, "schema": {"type": "string"}} for name, says in answer.headers.items()
        }
    return shown


def _contents(contents: Iterable[Content], schemas: Schemas) -> dict[str, Any]:
    return {
        each.media: {"schema": each.shape if isinstance(each.shape, dict) else schemas.of(each.shape)}
        for each in contents
    }


def _problems(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    told = list(operation.problems)
    if operation.who is Who.ACCOUNT:
        told += _OF_EVERY_ACCOUNT
        if operation.handler is not None:
            told.append(_WRONG_QUERY)
    codes: dict[int, list[str]] = {}
    for status, code in told:
        codes.setdefault(status, []).append(code)
    return {str(status): _problem(operation, status, each, schemas) for status, each in sorted(codes.items())}


def _problem(operation: Operation, status: int, codes: list[str], schemas: Schemas) -> dict[str, Any]:
    if operation.tells == "openai":
        content = {"application/json": {"schema": schemas.of(OpenAIError)}}
    else:
        narrowed = {"properties": {"code": {"enum": codes}, "status": {"const": status}}}
        content = {
            "application/problem+json": {
                "schema": {"allOf": [{"$ref": "#/components/schemas/Problem"}, narrowed]}
            }
        }
    shown: dict[str, Any] = {"description": ", ".join(codes), "content": content}
    if status in (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS):
        shown["headers"] = {"Retry-After": {"description": _RETRY, "schema": {"type": "string"}}}
    return shown
