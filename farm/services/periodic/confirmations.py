"""Confirm changes of files and programs: measure the old one against the new one, once for each change.

What is due and what is running is in the database: a farm that is killed in between goes on where it was.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy.engine import Connection

from farm.clock import Clock
from farm.core.base.ids import DeviceId, Digest
from farm.core.base.setting_values import non_default_settings
from farm.core.devices.device import Admin
from farm.core.errors import ArtifactExpired, Conflict, FarmError, InvalidInput, NotFound
from farm.core.matrices.repeated_cells import RepeatedCell
from farm.core.matrices.rounds import SequentialRounds
from farm.core.matrices.standing import STANDING_PRIORITY
from farm.core.models.variant import Variant, named_by_digest, variant_name
from farm.core.results.history.bisect import LogChange
from farm.core.results.history.confirmation import Confirmation, ConfirmationOutcome, judge_confirmation
from farm.core.results.history.recorded_change import ChangeCause, ChangedPart, RecordedChange
from farm.core.runs.measurement import DEFAULT_MARGIN
from farm.database.engine import Database
from farm.database.transaction import Tx, bind_tx
from farm.services.files.harnesses import default_of_flags, options_of
from farm.services.files.programs import check_program_kept
from farm.services.matrices.lazy_expansion import expand_small
from farm.services.matrices.rerun import prepare_repeated
from farm.services.matrices.submit import PreparedMatrix, store_matrix
from farm.services.matrices.views import matrix_view
from farm.services.results.history.changes import record_confirmation
from farm.services.results.speedups.listing import list_speedups
from farm.store.devices.devices import get_device
from farm.store.files import programs, variants
from farm.store.files.programs import Program
from farm.store.matrices import matrices
from farm.store.matrices.matrices import CellRow
from farm.store.results.history import changes as change_store
from farm.store.results.history import confirmations

#: Changes that were told longer ago, as in the history of a farm that is upgraded, are not confirmed.
CONFIRM_WITHIN = timedelta(days=7)
#: Matrices that one call begins, and series that it looks at to find one that can run.
_MOST_BEGUN, _MOST_SERIES = 5, 100
_FARM = "farm"


@dataclass(slots=True)
class ConfirmationSweep:
    """Begin confirmations that are due, and store what finished ones show; called periodically. Blocks."""

    database: Database
    clock: Clock

    def __call__(self) -> None:
        """Look at each once."""
        since = self.clock.now() - CONFIRM_WITHIN
        due = self.database.read(confirmations.unconfirmed_changes, since=since, limit=_MOST_BEGUN)
        for change in due:
            self.database.write(bind_tx(begin_confirmation, now=self.clock.now()), change)
        for confirmation in self.database.read(confirmations.running_confirmations):
            # Without the write lock: most of these looks find a matrix under way.
            if self.database.read(bind_tx(is_over, now=self.clock.now()), confirmation):
                self.database.write(bind_tx(end_confirmation, now=self.clock.now()), confirmation)


def begin_confirmation(tx: Tx, change: RecordedChange) -> None:
    """Submit the matrix that confirms a change, or store why there can be none; nothing if there is one."""
    if confirmations.find_confirmation(tx.connection, change.change_id) is not None:
        return
    try:
        prepared, device_id = _prepare(tx, change)
        matrix_id = store_matrix(tx.by(_FARM), prepared)
    except (InvalidInput, NotFound, Conflict) as error:
        impossible = Confirmation(
            change_id=change.change_id, outcome=ConfirmationOutcome.IMPOSSIBLE, reason=_reason(error)
        )
        confirmations.add_confirmation(tx, impossible)
        return
    expand_small(tx, matrix_id)
    running = Confirmation(
        change_id=change.change_id,
        outcome=ConfirmationOutcome.RUNNING,
        matrix_id=matrix_id,
        device_id=device_id,
    )
    confirmations.add_confirmation(tx, running)


def is_over(tx: Tx, confirmation: Confirmation) -> bool:
    """Return whether the matrix of a confirmation is over."""
    assert confirmation.matrix_id is not None
    return matrix_view(tx, confirmation.matrix_id, cells=0).finished_at is not None


def end_confirmation(tx: Tx, confirmation: Confirmation) -> None:
    """Store what a confirmation shows whose matrix is over."""
    assert confirmation.matrix_id is not None
    change = change_store.find_change(tx.connection, confirmation.change_id)
    assert change is not None
    views = list_speedups(tx.connection, confirmation.matrix_id)
    shown = [LogChange.of_speedup(view.speedup, view.ci_low, view.ci_high) for view in views]
    found = next((own for own in shown if own is not None), None)
    margin = math.log1p(DEFAULT_MARGIN)
    record_confirmation(
        tx,
        confirmation.change_id,
        judge_confirmation(found, is_slower=change.delta > 0, margin=margin),
        delta=None if found is None else found.value,
        half_width=None if found is None else found.half_width,
    )


def _reason(error: FarmError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What one of the two cells of a confirmation runs."""

    variant: Variant
    #: Of the file, or of the program, by which the cell is named.
    digest: Digest
    program: Program


def _prepare(tx: Tx, change: RecordedChange) -> tuple[PreparedMatrix, DeviceId]:
    """Return the matrix of the old version and the new one, on the device that shows the change most.

    Both run under names of their own, by digests: the histories of their names stay as they are.

    Raises:
        NotFound: a file or a program is not known, or was deleted.
        Conflict: every device that shows it is retired, or the old program cannot do the same.
    """
    part = ChangedPart.FILE if change.found_cause is ChangeCause.FILE else ChangedPart.PROGRAM
    version = next((own for own in change.versions if own.part is part), None)
    if version is None or version.old is None or version.new is None:
        raise NotFound(f"it is not known which {part} was replaced", hint="`farm history` shows the versions")
    digests = Digest(version.old), Digest(version.new)
    cell = _changed_cell(tx.connection, change.change_id, part, digests[1])
    matrix = matrices.get_matrix(tx.connection, cell.matrix_id)
    sides_of = _of_files if part is ChangedPart.FILE else _of_programs
    sides = [sides_of(tx.connection, digest, cell) for digest in digests]
    _check_flags(tx.connection, cell, sides)
    cells = [
        RepeatedCell(
            index=index,
            baseline_index=0 if index else None,
            harness=cell.harness,
            variant_id=variant.variant_id,
            model=variant.manifest.model,
            recipe=variant.manifest.recipe,
            backend=cell.backend,
            settings=cell.settings,
            replica=1,
            program_id=side.program.program_id,
        )
        for index, side in enumerate(sides)
        for variant in (variants.put_variant(tx, named_by_digest(side.variant.manifest, side.digest)),)
    ]
    prepared = prepare_repeated(
        tx.connection,
        replace(
            matrix.spec,
            rounds=SequentialRounds(),
            equivalence_margin=DEFAULT_MARGIN,
            metrics=(),
            priority=STANDING_PRIORITY,
        ),
        cells,
        name=f"confirm change {change.change_id}: {version.old[:8]} against {version.new[:8]}",
        device_id=cell.device_id,
    )
    return prepared, cell.device_id


def _of_files(connection: Connection, digest: Digest, cell: CellRow) -> _Side:
    program = programs.get_program(connection, cell.program_id)
    check_program_kept(connection, program)
    return _Side(variant=_file(connection, digest, cell), digest=digest, program=program)


def _of_programs(connection: Connection, digest: Digest, cell: CellRow) -> _Side:
    if cell.variant_id is None:
        raise Conflict(
            "it runs no model file, by whose name both programs could be distinguished",
            hint="`farm rerun ATTEMPT` measures a number of the old program again",
        )
    current = programs.get_program(connection, cell.program_id)
    known = [
        own
        for own in programs.list_programs(connection, harness=current.harness)
        if (own.abi, own.digest) == (current.abi, digest)
    ]
    if not known:
        raise NotFound(
            f"the farm has no program {digest[:8]} of {current.harness} for {current.abi}",
            hint=f"`farm harness add {current.harness} PATH` sends one",
        )
    check_program_kept(connection, known[0])
    file = variants.variants_by_id(connection, {cell.variant_id})[cell.variant_id]
    return _Side(variant=_file(connection, file.manifest.digest, cell), digest=digest, program=known[0])


def _check_flags(connection: Connection, cell: CellRow, sides: Sequence[_Side]) -> None:
    """Refuse settings that one of the programs does not know."""
    changed = non_default_settings(cell.settings, default_of_flags(connection, cell.harness)).keys()
    for side in sides:
        missing = changed & (side.program.missing_flags | (changed - options_of(side.program).flags.keys()))
        if missing:
            flags = ", ".join(f"--{flag}" for flag in sorted(missing))
            raise Conflict(
                f"the program {side.program.digest[:8]} of {cell.harness} has no flag {flags}",
                hint="a matrix that leaves it at its default can compare both",
            )


def _changed_cell(connection: Connection, change_id: int, part: ChangedPart, new: Digest) -> CellRow:
    """Return the cell that ran the new version, of the series that shows a change most and can run."""
    changed = change_store.series_of_change(connection, change_id, limit=_MOST_SERIES)
    for own in sorted(changed, key=lambda own: -abs(own.delta or 0.0)):
        cell = matrices.get_cell(connection, own.cell_id)
        if get_device(connection, cell.device_id).admin is Admin.RETIRED:
            continue
        rows = matrices.list_cells(connection, cell.matrix_id, device_id=cell.device_id)
        # The file of its baseline may be the one that changed.
        sides = [cell, *(row for row in rows if row.index == cell.baseline_index)]
        found = next((side for side in sides if _version(connection, side, part) == new), None)
        if found is not None:
            return found
    raise Conflict(
        "no device that shows it can measure it any more", hint="`farm regressions show` lists its series"
    )


def _version(connection: Connection, cell: CellRow, part: ChangedPart) -> Digest | None:
    """Return the digest of the file or the program of a cell."""
    if part is ChangedPart.PROGRAM:
        return programs.get_program(connection, cell.program_id).digest
    if cell.variant_id is None:
        return None
    return variants.variants_by_id(connection, {cell.variant_id})[cell.variant_id].manifest.digest


def _file(connection: Connection, digest: Digest, cell: CellRow) -> Variant:
    """Return the variant of a file, by the name that the cell has where it has that."""
    known = [view for view in variants.list_variants(connection) if view.manifest.digest == digest]
    if not known:
        raise NotFound(f"the farm has no file {digest[:8]}", hint="`farm variant list --all` has its files")
    variant = next((view for view in known if view.name == cell.variant_name), known[0])
    if variant.expired_at is not None:
        name = variant_name(variant.manifest.model, variant.manifest.recipe)
        raise ArtifactExpired(
            f"the file of {name} ({digest[:8]}) was deleted", hint="`farm variant add FILE`"
        )
    return variant
