"""The journal of active attempts on disk, from which a restarted agent continues."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import structlog
from pydantic import TypeAdapter, ValidationError

from agents.host.atomic_file import (
    make_folder,
    quarantine,
    remove_durably,
    sealed,
    sweep_temporaries,
    unsealed,
    write_file_durably,
)
from farm.core.base.ids import AttemptId, DeviceId, JobId
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.core.runs.plan import RunPlan
from farm.wire.agents.protocol import Assignment

log = structlog.get_logger(__name__)

#: Phases of an active attempt; the farm decides its outcome. `reporting` is never journaled: evidence in the
#: spool means the same.
AttemptPhase = Literal[
    AttemptState.CLAIMED,
    AttemptState.PREPARING,
    AttemptState.MEASURING,
    AttemptState.REPORTING,
    AttemptState.RETURNED,
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRecord:
    """One active attempt.

    Invariant: `measuring` is on disk before anything of the run starts on the device, so a record in an
    earlier phase means that nothing ran.
    """

    attempt_id: AttemptId
    job_id: JobId
    device_id: DeviceId
    fence: int
    plan: RunPlan
    phase: AttemptPhase = AttemptState.CLAIMED
    #: Reason of its return.
    reason: str | None = None
    #: The evidence so far.
    draft: Evidence


_RECORD = TypeAdapter(JournalRecord)


def new_journal_record(assignment: Assignment, plan: RunPlan) -> JournalRecord:
    """Return the record of a new assignment."""
    return JournalRecord(
        attempt_id=assignment.attempt_id,
        job_id=assignment.job_id,
        device_id=assignment.device_id,
        fence=assignment.fence,
        plan=plan,
        draft=Evidence(fence=assignment.fence),
    )


class AttemptJournal:
    """One file per attempt, replaced as a whole at each change of phase. Blocking: for the disk thread."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        sweep_temporaries(folder)
        self._folder = folder

    def records(self) -> list[JournalRecord]:
        """Return all active attempts, lowest fence first; an unreadable file is quarantined."""
        records = [self._read(path) for path in self._folder.glob("*.json")]
        return sorted((record for record in records if record is not None), key=lambda record: record.fence)

    def write(self, record: JournalRecord) -> None:
        """Write a record; raises HostDiskFull."""
        write_file_durably(self._path(record.attempt_id), sealed(_RECORD.dump_json(record)))

    def remove(self, attempt_id: AttemptId) -> None:
        """Remove an attempt permanently."""
        remove_durably(self._path(attempt_id))

    def _path(self, attempt_id: AttemptId) -> Path:
        return self._folder / f"{attempt_id}.json"

    def _read(self, path: Path) -> JournalRecord | None:
        try:
            # A measured run may be in it: a record with a changed byte is not believed.
            return _RECORD.validate_json(unsealed(path.read_bytes()) or b"")
        except (OSError, ValidationError):
            log.exception("journal_record_unreadable", path=str(path))
            quarantine(path)
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartBlockers:
    """The devices and fences that keep assignments from being started."""

    #: Devices with an active attempt, its clean-up included, or with a device action.
    busy: frozenset[DeviceId]
    #: The highest fence this process knows of each device.
    fence_by_device: Mapping[DeviceId, int]
