"""A wire type repeats a record of the core, the store or the services only for a reason."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.architecture.sources import classes, name_of

#: Wire types that repeat most of a record all the same, and why each is a type of its own.
REASONS = {
    "HarnessDefinition": "what an author may leave out is worked out: units, whether a model is needed",
    "BackendSpec": "as its author writes it: `declared` in place of a pattern, the accelerator by name",
    "ProgramRegistration": "a request: its files have no sizes before the farm looked at them",
    "MeasurementRow": "a row of a file: flat, with the names of what was measured, and JSON as text",
    "CommonSetup": "of many series: what differs among them is None",
    "JobDetail": "a job with its attempts and its measurement, and without its place in the queue",
}
#: A wire type repeats a record that has so many fields, if it has this share of them and ...
MIN_FIELDS = 4
MIN_SHARE_OF_RECORD = 0.8
#: ... they are this share of its own: a page that also shows a small record repeats nothing.
MIN_SHARE_OF_WIRE_TYPE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A class and the names of its fields."""

    name: str
    file: str
    fields: frozenset[str]


def own_fields(node: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        statement.target.id
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    )


def is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def records() -> Iterator[Record]:
    for path, node in classes("farm/core", "farm/phone", "farm/store", "farm/services"):
        if is_dataclass(node):
            yield Record(name=node.name, file=name_of(path), fields=own_fields(node))


def wire_types() -> Iterator[Record]:
    node_by_name = {node.name: (name_of(path), node) for path, node in classes("farm/wire")}
    for name, (file, node) in node_by_name.items():
        yield Record(name=name, file=file, fields=fields_with_bases(node, node_by_name))


def fields_with_bases(
    node: ast.ClassDef, node_by_name: Mapping[str, tuple[str, ast.ClassDef]]
) -> frozenset[str]:
    bases = [
        node_by_name[base.id][1]
        for base in node.bases
        if isinstance(base, ast.Name) and base.id in node_by_name
    ]
    return own_fields(node).union(*(fields_with_bases(base, node_by_name) for base in bases))


def repeats(wire_type: Record, record: Record) -> bool:
    shared = len(wire_type.fields & record.fields)
    return (
        len(record.fields) >= MIN_FIELDS
        and shared >= MIN_SHARE_OF_RECORD * len(record.fields)
        and shared >= MIN_SHARE_OF_WIRE_TYPE * len(wire_type.fields)
    )


def test_no_wire_type_repeats_a_record_without_a_reason() -> None:
    known = list(records())
    repeated = {
        wire_type.name: sorted(record.name for record in same)
        for wire_type in wire_types()
        if (same := [record for record in known if repeats(wire_type, record)])
    }
    unexplained = repeated.keys() - REASONS.keys()
    assert not unexplained, {name: repeated[name] for name in unexplained}
    assert not REASONS.keys() - repeated.keys(), "a reason for what repeats nothing any more"
