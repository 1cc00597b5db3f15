"""Pages of what can be run: variants, and harnesses with their programs."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from farm.api.http.authorization import Viewer
from farm.core.base.ids import VariantId
from farm.database.transaction import Tx
from farm.services.files.programs import list_program_views
from farm.store.files.variants import variants_page
from farm.web.http.page_route import PageRoute
from farm.web.http.rendering import render_page
from farm.wire.base import MAX_LIST_PAGE, Count

router = APIRouter(route_class=PageRoute)


@router.get("/variants")
async def get_variants(
    request: Request, caller: Viewer, part: str | None = None, after: Count = 0
) -> Response:
    """Show the registered variants, oldest first."""

    def rows(tx: Tx) -> Mapping[str, Any]:
        variants = variants_page(tx.connection, after=VariantId(after), limit=MAX_LIST_PAGE)
        next_after = variants[-1].variant_id if len(variants) == MAX_LIST_PAGE else None
        return {"variants": variants, "next": next_after}

    return await render_page(
        request,
        "files/variants",
        caller=caller,
        part=part,
        parts={"rows": rows},
        title="Variants",
        after=after,
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
