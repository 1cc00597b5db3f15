"""Tables of imported files, and of the results in them."""

import json
from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from farm.cli.shell.tables import Listing, name, number, prose
from farm.presentation.text import local_time_text
from farm.wire.documents.results.imports import ExternalResultView, ImportView

#: What a file does not tell.
UNKNOWN = "unknown"


def import_table(views: Sequence[ImportView]) -> RenderableType:
    """Return a table of imported files."""
    return _imports(views) if views else Text("Nothing was imported.")


def result_tables(views: Sequence[ExternalResultView]) -> RenderableType:
    """Return results in the units of their files: a table below a line for what was measured together."""
    if not views:
        return Text("There is no such result.")
    blocks: list[RenderableType] = []
    for title, together in groupby(views, key=_title):
        blocks += [Text(title, style="bold"), Padding(_results(list(together)), (0, 0, 1, 2))]
    return Group(*blocks)


def _title(view: ExternalResultView) -> str:
    """Return what results have in common; `live` is what a client drove, and no plan of the farm."""
    tool = " ".join([view.tool, view.tool_version or ""]).strip()
    settings = json.loads(view.settings)
    driven, source = settings.get("driven"), settings.get("source")
    parts = [
        f"import {view.import_id}: {tool}",
        f"model {view.model or UNKNOWN}",
        f"device {view.device or UNKNOWN}",
        f"backend {view.backend or UNKNOWN}",
        f"date {view.date or UNKNOWN}",
        *([f"driven {driven}"] if driven else []),
        *([f"published at {source}"] if source else []),
    ]
    return ", ".join(parts)


_imports = Listing[ImportView](
    name("import", lambda view: view.import_id),
    name("file", lambda view: view.name),
    name("format", lambda view: view.harness or view.format),
    number("results", lambda view: view.results),
    name("imported", lambda view: local_time_text(view.imported_at)),
    name("by", lambda view: view.imported_by),
    prose("notes", lambda view: "\n".join(_notes(view)), is_shown=lambda views: any(map(_notes, views))),
)
_results = Listing[ExternalResultView](
    name("metric", lambda view: view.metric),
    number("value", lambda view: f"{view.value:.12g}"),
    name("unit", lambda view: view.unit or UNKNOWN),
    name("is", lambda view: view.statistic),
    number("n", lambda view: view.sample_count if view.sample_count is not None else UNKNOWN),
)


def _notes(view: ImportView) -> list[str]:
    withdrawn = [] if view.withdrawn_at is None else [f"withdrawn by {view.withdrawn_by}: {view.reason}"]
    return [*withdrawn, *view.notes[:3]]
