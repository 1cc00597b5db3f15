"""Tables of imported files, and of the results in them."""

import json
from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from farm.cli.shell.tables import Listing, name, number, prose
from farm.presentation.text import local_time_text
from farm.wire.documents.results.imports import ExternalResultView, ImportView

#: What a file does not tell.
UNKNOWN = "unknown"


def import_table(views: Sequence[ImportView]) -> RenderableType:
    """Return a table of imported files."""
    return _imports(views) if views else Text("Nothing was imported.")


def result_table(views: Sequence[ExternalResultView]) -> RenderableType:
    """Return a table of results in the units of their files."""
    return _results(views) if views else Text("There is no such result.")


def _driven(view: ExternalResultView) -> str:
    """Return `live` where a client drove the phone, and no plan of the farm."""
    return str(json.loads(view.settings).get("driven", ""))


_imports = Listing[ImportView](
    name("import", lambda view: view.import_id),
    name("file", lambda view: view.name),
    name("format", lambda view: view.harness or view.format),
    number("results", lambda view: view.results),
    name("imported", lambda view: f"{local_time_text(view.imported_at)} by {view.imported_by}"),
    prose("notes", lambda view: "\n".join(_notes(view)), is_shown=lambda views: any(map(_notes, views))),
)
_results = Listing[ExternalResultView](
    name("import", lambda view: view.import_id),
    name("tool", lambda view: " ".join([view.tool, view.tool_version or ""]).strip()),
    name("model", lambda view: view.model or UNKNOWN),
    name("device", lambda view: view.device or UNKNOWN),
    name("backend", lambda view: view.backend or UNKNOWN),
    name("metric", lambda view: view.metric),
    number("value", lambda view: f"{view.value:.6g}"),
    name("unit", lambda view: view.unit or UNKNOWN),
    name("is", lambda view: view.statistic),
    number("n", lambda view: view.sample_count if view.sample_count is not None else UNKNOWN),
    name("date", lambda view: view.date or UNKNOWN),
    name("driven", _driven, is_shown=lambda views: any(map(_driven, views))),
)


def _notes(view: ImportView) -> list[str]:
    withdrawn = [] if view.withdrawn_at is None else [f"withdrawn by {view.withdrawn_by}: {view.reason}"]
    return [*withdrawn, *view.notes[:3]]
