"""Routes for the farm itself, variants, attempts and speedups."""

import asyncio
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request

from farm import __version__
from farm.api.context import Farm
from farm.api.http.authorization import Submitter, Viewer, telling_refusal
from farm.api.http.pages import Listed, ListPageSize
from farm.api.http.past_times import past_time
from farm.core.base.ids import AttemptId, CellId, MatrixId, VariantId
from farm.core.errors import InvalidInput
from farm.core.models.variant import Variant
from farm.core.operations.event import AccessEvent
from farm.core.results.history.chosen_labels import PairChoice
from farm.services.files.registration import (
    change_variant,
    changed_manifest,
    check_variant_file,
    register_variant,
)
from farm.services.operations.alarms import step_text
from farm.services.results.explanations.attempts import attempt_view
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.interchange.energy_import import import_energy
from farm.services.results.speedups.listing import PAGE, list_speedups
from farm.store.files.variants import get_variant, newest_variants, variants_page
from farm.store.matrices.search import matrices_of
from farm.wire.base import MAX_LIST_PAGE, WIRE_VERSION, Count
from farm.wire.documents.files.variants import VariantChange, VariantRegistration
from farm.wire.documents.matrices.jobs import AttemptView
from farm.wire.documents.operations import FarmView
from farm.wire.documents.results.results import EnergyImport
from farm.wire.documents.results.speedups import SpeedupView

router = APIRouter(prefix="/api/v1")


@router.get("/health")
async def get_health(farm: Farm) -> dict[str, str]:
    """Answer when the database does, and its clock agrees with this process's."""
    farm.clock_check.demand()
    await farm.database.ping_async()
    step = step_text(farm.clock.step_s())
    return {"status": "ok"} if step is None else {"status": "ok", "clock": step}


@router.get("/farm")
async def get_farm(_: Viewer, farm: Farm) -> FarmView:
    """Return the identity of the farm."""
    return FarmView(
        version=__version__,
        wire_version=WIRE_VERSION,
        started_at=farm.started_at,
        data_dir=str(farm.config.data_dir.resolve()),
        agents_url=farm.config.agents_url,
    )


@router.get("/variants")
async def get_variants(
    _: Viewer, farm: Farm, after: Count = 0, limit: ListPageSize = MAX_LIST_PAGE
) -> list[Variant]:
    """Return a page of the registered variants, oldest first; a page that is not full is the last."""
    return await farm.database.read_async(variants_page, after=VariantId(after), limit=limit)


@router.get("/variants/newest")
async def get_newest_variants(
    _: Viewer,
    farm: Farm,
    which: Listed,
    all: bool = False,
    before: Count | None = None,
    limit: ListPageSize = MAX_LIST_PAGE,
) -> list[Variant]:
    """Return a page of variants, newest first: those before one. An empty page is the end.

    They are those since a time, with a text in their name, or registered by the caller; without `all`, only
    the file that new matrices run under each name.
    """
    return await farm.database.read_async(
        newest_variants,
        which,
        replaced=all,
        before=None if before is None else VariantId(before),
        limit=limit,
    )


@router.post("/variants", status_code=201)
async def post_variant(
    registration: VariantRegistration, request: Request, caller: Submitter, farm: Farm
) -> Variant:
    """Register a variant whose file was uploaded before; again is no error.

    A name that has another file stays with who registered that, and with operators.
    """
    manifest = await asyncio.to_thread(check_variant_file, registration.manifest, farm.blobs)
    async with telling_refusal(request, caller, farm):
        return await farm.database.write_async(farm.bind(register_variant), manifest, caller)


@router.post("/variants/{variant_id}/manifest")
async def post_variant_manifest(
    variant_id: Count, change: VariantChange, request: Request, caller: Submitter, farm: Farm
) -> Variant:
    """Rename a variant's model, or declare its inputs.

    A variant stays with who registered it, and with operators.
    Matrices that ran with it find it by its name: then it can only be completed.
    """
    variant = await farm.database.read_async(get_variant, VariantId(variant_id))
    manifest = await asyncio.to_thread(
        changed_manifest, variant.manifest, farm.blobs, model=change.model, inputs=change.inputs
    )
    async with telling_refusal(request, caller, farm):
        return await farm.database.write_async(farm.bind(change_variant), variant, manifest, caller)


@router.get("/attempts/{attempt_id}")
async def get_attempt(attempt_id: Count, caller: Viewer, farm: Farm) -> AttemptView:
    """Return one attempt with plan, outcome and evidence."""
    view = await farm.database.read_async(attempt_view, AttemptId(attempt_id))
    farm.evidence_reads.note(caller, AccessEvent.EVIDENCE_READ, attempt_id)
    return view


@router.post("/attempts/{attempt_id}/energy")
async def post_energy(
    attempt_id: Count, imported: EnergyImport, caller: Submitter, farm: Farm
) -> AttemptView:
    """Attach energy that an instrument measured to an attempt; imported again, it is replaced."""
    service = farm.bind(import_energy, actor=caller.actor)
    return await farm.database.write_async(service, AttemptId(attempt_id), imported)


@router.get("/speedups")
async def get_speedups(
    caller: Viewer,
    farm: Farm,
    matrix_id: Count | None = None,
    device: str | None = Query(default=None, max_length=128),
    model: str | None = Query(default=None, max_length=128),
    baseline: str | None = Query(default=None, max_length=256),
    candidate: str | None = Query(default=None, max_length=256),
    name: str | None = Query(default=None, max_length=256),
    mine: bool = False,
    across_controls: bool = False,
    since: datetime | None = None,
    at: datetime | None = None,
    after: Count | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
) -> list[SpeedupView]:
    """Return a page of comparisons: of one matrix, or else the newest of each pair.

    They are those behind the comparison of the cell `after`; an empty page is the end. With `at`, they are as
    known then. With a baseline or a candidate, they are of pairs with these words in their labels, planned or
    not. `since`, `name` and `mine` are of those of all matrices.
    """
    now = farm.clock.now()
    begin = past_time("since", since, now=now)
    for option, value in (("since", begin), ("name", name), ("mine", mine or None)):
        if matrix_id is not None and value is not None:
            hint = "leave one of them out"
            raise InvalidInput(f"{option}: goes with the comparisons of all matrices", hint=hint)
    list_page = partial(
        partial(
            list_latest_speedups,
            since=begin,
            which=matrices_of(name=name, person=caller.actor if mine else None),
        )
        if matrix_id is None
        else partial(list_speedups, matrix_id=MatrixId(matrix_id)),
        at=past_time("at", at, now=now),
        device=device,
        model=model,
        across_controls=across_controls,
        choice=(
            None
            if baseline is None and candidate is None
            else PairChoice(baseline=baseline, candidate=candidate)
        ),
        after=None if after is None else CellId(after),
        limit=limit,
    )
    return await farm.database.read_async(list_page)
