"""Import of energy that an instrument outside of the farm measured."""

from farm.core.base.ids import AttemptId
from farm.core.errors import Conflict, InvalidInput
from farm.core.operations.event import FarmEvent
from farm.core.runs.derived.energy import EnergyReading
from farm.database.transaction import Tx
from farm.services.results.explanations.attempts import attempt_view
from farm.store.operations.events import record_event
from farm.store.results.interchange.imported_energy import put_imported_energy, timed_inferences
from farm.wire.documents.matrices.jobs import AttemptView
from farm.wire.documents.results.results import EnergyImport


def import_energy(tx: Tx, attempt_id: AttemptId, imported: EnergyImport) -> AttemptView:
    """Keep measured energy with an attempt, with method, boundary, instrument and who imported it.

    Energy that was imported before is replaced; the event of each import stays.

    Raises:
        NotFound: there is no such attempt.
        Conflict: it has no measurement that counts.
        InvalidInput: of how many inferences the energy is, is not known.
    """
    attempt_view(tx.connection, attempt_id)
    counted = timed_inferences(tx.connection, attempt_id)
    if counted is None:
        raise Conflict(
            f"attempt {attempt_id} has no measurement that counts",
            hint="energy belongs to the attempt that a job ended with: `farm job show`",
        )
    inferences = imported.inferences or counted
    if inferences == 0:
        raise InvalidInput(
            f"the tool of attempt {attempt_id} does not say how many inferences it timed",
            hint="say of how many the energy is: `--inferences N`",
        )
    actor = tx.actor.removeprefix("user:")
    energy = EnergyReading(
        method="external",
        boundary=imported.boundary,
        joules=imported.joules,
        inferences=inferences,
        seconds=imported.seconds,
        notes=(imported.note,) if imported.note else (),
        instrument=imported.instrument,
        imported_by=actor,
    )
    put_imported_energy(tx.connection, attempt_id, energy)
    cause = (
        f"{imported.joules:g} J for {inferences} inferences, of {imported.boundary}, by {imported.instrument}"
    )
    record_event(tx, FarmEvent.ENERGY_IMPORTED, attempt_id, cause=cause)
    return attempt_view(tx.connection, attempt_id)
