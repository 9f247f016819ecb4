"""The description of the API, and the schemas it is made of."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from attrs import frozen
from starlette.routing import Route

from daemon.intake.app import DESCRIPTION, OPERATIONS
from daemon.intake.schemas import Schemas
from daemon.intake.shapes import ShownRecord, plain, shown_record
from tests.daemon.intake.conftest import Doors
from tests.daemon.intake.test_pace import a_readiness


class Colour(StrEnum):
    """A closed list."""

    RED = "red"


@frozen(kw_only=True)
class Leaf:
    """Something inside."""

    colour: Colour


@frozen(kw_only=True)
class Tree:
    """Something with all kinds of members."""

    name: Annotated[str, "What it is called.", {"maxLength": 5}]
    grown: float | None
    planted: datetime
    leaves: tuple[Leaf, ...]
    best: Leaf | None
    kind: Literal["oak"]
    notes: Mapping[str, Any]


def test_a_class_is_described_by_its_members() -> None:
    """Each of them is required, and there are no others."""
    schemas = Schemas()
    assert schemas.of(Tree) == {"$ref": "#/components/schemas/Tree"}
    assert schemas.named["Leaf"]["properties"] == {"colour": {"type": "string", "enum": ["red"]}}
    tree = schemas.named["Tree"]
    assert (tree["required"], tree["additionalProperties"]) == (list(tree["properties"]), False)
    assert tree["description"] == "Something with all kinds of members."
    leaf = {"$ref": "#/components/schemas/Leaf"}
    assert tree["properties"] == {
        "name": {"type": "string", "description": "What it is called.", "maxLength": 5},
        "grown": {"type": ["number", "null"]},
        "planted": {"type": "string", "format": "date-time"},
        "leaves": {"type": "array", "items": leaf},
        "best": {"anyOf": [leaf, {"type": "null"}]},
        "kind": {"enum": ["oak"]},
        "notes": {"type": "object", "additionalProperties": {}},
    }


@pytest.mark.parametrize("kind", [bytes, tuple[int, str], set[int]])
def test_what_has_no_form_in_json_is_a_fault_of_ours(kind: Any) -> None:
    """Told when the description is made."""
    with pytest.raises(TypeError, match="no form in JSON"):
        Schemas().of(kind)


def test_a_record_is_shown_as_it_is_described() -> None:
    """By the very class."""
    schemas = Schemas()
    schemas.of(ShownRecord)
    shown = shown_record(a_readiness())
    assert set(shown) == set(schemas.named["ShownRecord"]["required"])
    assert set(shown["progress"]) == set(schemas.named["ShownProgress"]["required"])
    assert plain(shown) == shown


async def test_every_route_is_described(doors: Doors) -> None:
    """Each method of each path, and nothing else; and the description is served."""
    routes = {
        (route.path, method)
        for route in doors.app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    described = {
        (path, method.upper())
        for path, methods in DESCRIPTION["paths"].items()
        for method in methods
        if method != "head"
    }
    assert routes == described == {(each.path, each.method) for each in OPERATIONS if each.method != "HEAD"}
    async with doors.client() as client:
        answer = await client.get("/openapi.json")
    assert answer.json() == DESCRIPTION
    async with doors.client("") as client:
        assert (await client.get("/openapi.json")).status_code == 401


def test_names_are_given_once() -> None:
    """A generated client has a function for each."""
    names = [each.name for each in OPERATIONS]
    assert len(set(names)) == len(names)
