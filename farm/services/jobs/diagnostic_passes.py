"""Which of a plan's uncounted passes are worth their time: what was told once is not asked again."""

from dataclasses import replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, Digest, FactsId
from farm.core.runs.plan import PLACEMENT_PROBE, RunPlan
from farm.store.results.placements import earlier_runs

#: A pass that shows nothing is tried so often: a phone may have been away in the first.
_TRIES = 3


def with_due_passes(
    connection: Connection,
    plan: RunPlan,
    *,
    cell_id: CellId,
    facts_id: FactsId | None,
    program_digest: Digest,
) -> RunPlan:
    """The plan with the passes that its run still needs.

    A pass speaks for all runs of a cell on one build of its phone with one program, so the first run has it;
    the plans of others carry what it showed of the placement.
    """
    if not plan.passes:
        return plan
    earlier = earlier_runs(connection, cell_id, facts_id, program_digest)
    due = {
        each.name: earlier.shown is None and earlier.runs < _TRIES
        if each.name == PLACEMENT_PROBE
        else earlier.runs == 0
        for each in plan.passes
    }
    passes = tuple(each for each in plan.passes if due[each.name])
    wanted = any(each.name == PLACEMENT_PROBE for each in plan.passes)
    return replace(plan, passes=passes, shown=earlier.shown if wanted else None)
