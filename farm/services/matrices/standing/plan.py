"""Plan a matrix that is to stand: what would be queued at once, and in each session of its schedule."""

from dataclasses import replace

from farm.core.matrices.matrix import RejectedCell, RejectionKind
from farm.core.matrices.partial_rerun import select_cells
from farm.core.matrices.standing import StandingSpec
from farm.database.transaction import Tx
from farm.services.matrices.plan import plan_expanded
from farm.services.matrices.standing.coverage import wanted_cells
from farm.services.matrices.standing.sessions import check_standing
from farm.store.matrices.standing import find_last_standing, queued_cells
from farm.wire.documents.matrices.plans import MatrixPlanView, StandingPlan


def plan_standing(tx: Tx, spec: StandingSpec) -> MatrixPlanView:
    """Return the plan of all cells that would be measured, skipped ones as rejected. Raises like `stand`."""
    expanded, next_due_at = check_standing(tx, spec)
    last = find_last_standing(tx.connection, spec.matrix.name)
    queued = {} if last is None else queued_cells(tx.connection, last.standing_id)
    wanted = wanted_cells(expanded, spec.skip, today=tx.now.date())
    measured = [own for own in wanted if own.skip is None]
    skipped = tuple(
        RejectedCell(
            key=own.cell.key,
            device_id=own.cell.device_id,
            rejection=RejectionKind.EXCLUDED,
            reason=f"skipped until {own.skip.until}: {own.skip.reason}",
        )
        for own in wanted
        if own.skip is not None
    )
    part = select_cells(expanded.expansion, {own.cell.index for own in measured})
    return plan_expanded(
        tx.connection,
        replace(expanded, expansion=replace(part, rejected=(*part.rejected, *skipped))),
        standing=StandingPlan(
            missing=sum(own.version_digest not in queued for own in measured), next_due_at=next_due_at
        ),
    )
