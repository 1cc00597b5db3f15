"""Pages of files: variants, harnesses with their programs, and imports of what others measured."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.core.base.ids import VariantId
from farm.database.transaction import Tx
from farm.services.files.programs import list_program_views
from farm.services.results.interchange.imports import (
    external_result_views,
    get_import_view,
    import_views,
)
from farm.store.files.variants import newest_variants
from farm.store.results.interchange.external_results import ExternalFilter
from farm.web.http.csv_response import columns_of, csv_response
from farm.web.http.filters import Typed
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import MAX_LIST_PAGE, Count
from farm.wire.documents.results.export import MAX_EXPORT_PAGE
from farm.wire.documents.results.imports import ExternalResultView

router = APIRouter(route_class=PageRoute)

_IMPORTS = 50
#: Results of others on one page.
_RESULTS = 200
_RESULT_COLUMNS = tuple(ExternalResultView.model_fields)


@router.get("/variants")
async def get_variants(
    request: Request,
    caller: Viewer,
    typed: Typed,
    part: str | None = None,
    all: bool = False,
    before: Count | None = None,
) -> Response:
    """Show the registered variants, newest first."""

    def rows(tx: Tx) -> Mapping[str, Any]:
        variants = newest_variants(
            tx.connection,
            typed.which,
            replaced=all,
            before=None if before is None else VariantId(before),
            limit=MAX_LIST_PAGE,
        )
        return {
            "variants": variants,
            "next": variants[-1].variant_id if len(variants) == MAX_LIST_PAGE else None,
        }

    return await render_page(
        request,
        "files/variants",
        caller=caller,
        part=part,
        parts={"rows": rows},
        title="Variants",
        name=typed.name,
        since=typed.since,
        mine=typed.mine,
        all=all,
        before=before,
    )


@router.get("/harnesses")
async def get_harnesses(request: Request, caller: Viewer, part: str | None = None) -> Response:
    """Show the programs of all harnesses, those that new matrices run first."""

    def rows(tx: Tx) -> Mapping[str, Any]:
        programs = list_program_views(tx.connection)
        return {"programs": sorted(programs, key=lambda program: (not program.in_use, program.name))}

    return await render_page(
        request, "files/harnesses", caller=caller, part=part, parts={"rows": rows}, title="Harnesses"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """A result of others, and what its file says of it besides."""

    view: ExternalResultView
    settings: Mapping[str, object]


@router.get("/imports")
async def get_imports(
    request: Request,
    caller: Viewer,
    typed: Typed,
    part: str | None = None,
    before: Count | None = None,
) -> Response:
    """Show the imported files, the newest first."""

    def rows(tx: Tx) -> Mapping[str, Any]:
        imports = import_views(tx.connection, typed.which, before=before, limit=_IMPORTS)
        return {"imports": imports, "next": imports[-1].import_id if len(imports) == _IMPORTS else None}

    return await render_page(
        request,
        "files/imports",
        caller=caller,
        part=part,
        parts={"rows": rows},
        title="Imports",
        name=typed.name,
        since=typed.since,
        mine=typed.mine,
        before=before,
    )


ExternalName = Annotated[str, Query(max_length=500)]


async def _wanted_results(
    model: ExternalName = "",
    device: ExternalName = "",
    tool: ExternalName = "",
    metric: ExternalName = "",
    import_id: Count | None = None,
    withdrawn: bool = False,
) -> ExternalFilter:
    return ExternalFilter(
        import_id=import_id,
        model=model or None,
        device=device or None,
        tool=tool or None,
        metric=metric or None,
        withdrawn=withdrawn,
    )


WantedResults = Annotated[ExternalFilter, Depends(_wanted_results)]


@router.get("/imports/results")
async def get_external_results(
    request: Request, caller: Viewer, wanted: WantedResults, part: str | None = None, after: Count = 0
) -> Response:
    """Show results that others measured, in the units of their files."""
    return await render_page(
        request,
        "files/imports",
        caller=caller,
        part=part,
        parts={"results": lambda tx: _results(tx, wanted, after)},
        page="all_results",
        title="Results of others",
        is_of_all=True,
        import_id=wanted.import_id,
        model=wanted.model or "",
        device=wanted.device or "",
        tool=wanted.tool or "",
        metric=wanted.metric or "",
        withdrawn=wanted.withdrawn,
    )


@router.get("/imports/results.csv")
async def get_external_results_csv(_: Viewer, farm: Farm, wanted: WantedResults) -> Response:
    """Return results that others measured, with all that their files say."""

    async def page(last: ExternalResultView | None) -> list[ExternalResultView]:
        after = 0 if last is None else last.result_id
        return await farm.database.read_async(
            external_result_views, wanted, after=after, limit=MAX_EXPORT_PAGE
        )

    return await csv_response("results-of-others", page, columns_of(*_RESULT_COLUMNS))


@router.get("/imports/{import_id}")
async def get_import(
    request: Request, import_id: Count, caller: Viewer, part: str | None = None, after: Count = 0
) -> Response:
    """Show an imported file: who imported it and when, what was left out and why, and its results."""

    def facts(tx: Tx) -> Mapping[str, Any]:
        view = get_import_view(tx.connection, import_id)
        return {"file": view, "title": f"Import {import_id}: {view.name}"}

    def results(tx: Tx) -> Mapping[str, Any]:
        # What was withdrawn stays to be seen here, where it is said so.
        return _results(tx, ExternalFilter(import_id=import_id, withdrawn=True), after)

    return await render_page(
        request,
        "files/imports",
        caller=caller,
        part=part,
        parts={"facts": facts, "results": results},
        page="one",
        import_id=import_id,
    )


def _results(tx: Tx, wanted: ExternalFilter, after: int) -> Mapping[str, Any]:
    views = external_result_views(tx.connection, wanted, after=after, limit=_RESULTS)
    return {
        "results": [ShownResult(view=view, settings=json.loads(view.settings)) for view in views],
        "next": views[-1].result_id if len(views) == _RESULTS else None,
    }
