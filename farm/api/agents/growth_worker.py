"""Background growth of matrices by further rounds, by the process that settled reports, or by the leader."""

import structlog

from farm.clock import Clock
from farm.core.errors import FarmError
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.services.results.round_growth import DueGrowth, find_next_growth, grow_next

log = structlog.get_logger(__name__)

#: The farm looks so often at most for matrices to grow: each report asks for it, and few of them end a round.
GROW_EVERY_S = 0.2


async def grow_matrices(database: Database, clock: Clock) -> None:
    """Do all that is due; other writers have their turn between two steps.

    A matrix that fails to grow on a device, through a defect of the farm, delays no other.
    """
    failed: set[DueGrowth] = set()
    while (due := await database.read_async(find_next_growth, excluded=failed)) is not None:
        try:
            await database.change_async(bind_tx(grow_next, now=clock.now()), due)
        except FarmError:
            raise
        except Exception:
            log.exception("growth_failed", matrix_id=due.matrix_id, device_id=due.device_id)
            failed.add(due)
