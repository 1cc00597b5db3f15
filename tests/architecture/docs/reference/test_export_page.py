"""docs/export.md lists the columns of exported files; BENCHFARM_DRAW=1 writes it again."""

import inspect
import os
from pathlib import Path

from farm.cli.results.interchange.exported_parts import ROWS, RowKind
from farm.wire.base import Wire
from farm.wire.documents.results.export_columns import ExportType, columns_of
from tests.architecture.docs.test_json_page import meaning_by_field

PAGE = Path(__file__).resolve().parents[4] / "docs" / "export.md"
HEAD = Path(__file__).with_name("export_head.txt").read_text(encoding="utf-8")
_UNITS = {
    "_ns": "ns",
    "_s": "s",
    "_c": "°C",
    "_hz": "Hz",
    "_pct": "%",
    "_bytes": "bytes",
    "_a": "A",
    "_v": "V",
}


def page() -> str:
    return "\n".join([HEAD, *(section(kind, ROWS[kind][0]) for kind in RowKind)])


def section(kind: RowKind, document: type[Wire]) -> str:
    meanings = meaning_by_field(document)
    rows = [
        f"| `{column.name}` | {column.type}{', or null' if column.is_nullable else ''}"
        f" | {unit(column.name)} | {meanings[column.name]} |"
        for column in columns_of(document)
    ]
    about = (inspect.getdoc(document) or "").partition("\n\n")[0].replace("\n", " ")
    return "\n".join(
        [
            f"### {kind}",
            "",
            about,
            "",
            "| column | type | unit | meaning |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def unit(name: str) -> str:
    return next((text for ending, text in _UNITS.items() if name.endswith(ending)), "")


def test_the_page_of_exported_columns_lists_what_the_types_have() -> None:
    if os.environ.get("BENCHFARM_DRAW"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "BENCHFARM_DRAW=1 writes the page again"


def test_every_type_of_a_column_has_a_meaning_in_parquet() -> None:
    listed = HEAD.partition("| type | Parquet |")[2]
    assert all(type in listed or type.startswith("list of ") for type in ExportType)
