"""Withdraw measurements for a reason that a person gives, and take that back.

Copies take the place of measurements, so points are computed again as after any new measurement, and what was
known before can still be asked for.
"""

from farm.core.errors import InvalidInput, NotFound
from farm.core.operations.event import RetractionEvent
from farm.database.transaction import Tx
from farm.services.devices.views import device_id_named
from farm.store.jobs.attempts import find_attempt
from farm.store.matrices.matrices import find_cell, get_matrix
from farm.store.operations.events import record_transitions
from farm.store.results.history.retractions import RetractSelection, reinstate, retract, retract_targets
from farm.wire.documents.results.history import RetractPage, RetractRequest

#: Measurements of one transaction: agents have their turn between two.
CHUNK = 500


def apply_retraction(tx: Tx, request: RetractRequest, *, limit: int = CHUNK) -> RetractPage:
    """Retract the next measurements that a request means, or let them count again.

    Done again it does nothing: what is retracted is not retracted again.

    Raises:
        NotFound: there is no such matrix, device, cell or run, or nothing was measured there.
        InvalidInput: the request means none of matrix, cell and run, or several.
    """
    selection = _selection(tx, request)
    targets = retract_targets(tx.connection, selection, retracted=request.undo, limit=limit)
    if not targets and not retract_targets(tx.connection, selection, retracted=not request.undo, limit=1):
        raise NotFound("nothing that counts was measured there", hint="`farm matrix show ID` lists what was")
    ids = [target.measurement_id for target in targets]
    if request.undo:
        reinstate(tx, ids)
    else:
        retract(tx, ids, by=tx.actor, reason=request.reason)
    kind = RetractionEvent.REINSTATED if request.undo else RetractionEvent.RETRACTED
    causes: dict[object, str | None] = {target.job_id: request.reason for target in targets}
    record_transitions(tx, kind, causes, from_state=None, to_state=None)
    return RetractPage(measurements=len(targets), has_more=len(targets) == limit)


def _selection(tx: Tx, request: RetractRequest) -> RetractSelection:
    given = [request.matrix_id, request.cell_id, request.attempt_id]
    if sum(each is not None for each in given) != 1:
        raise InvalidInput("one of matrix, cell and run is needed", hint="give exactly one of them")
    device_id = None
    if request.device is not None:
        if request.matrix_id is None:
            raise InvalidInput("a device goes with a matrix only", hint="leave the device out")
        device_id = device_id_named(tx.connection, request.device)
    if request.matrix_id is not None:
        get_matrix(tx.connection, request.matrix_id)
    if request.cell_id is not None and find_cell(tx.connection, request.cell_id) is None:
        raise NotFound(f"there is no cell {request.cell_id}", hint="`farm speedups --json` names cells")
    if request.attempt_id is not None and find_attempt(tx.connection, request.attempt_id) is None:
        raise NotFound(f"there is no attempt {request.attempt_id}", hint="`farm matrix jobs ID` has them")
    return RetractSelection(
        matrix_id=request.matrix_id,
        device_id=device_id,
        cell_id=request.cell_id,
        attempt_id=request.attempt_id,
    )
