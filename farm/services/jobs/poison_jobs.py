"""Ends what makes one phone after another go away (FAULTS 53), before it reaches the next."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.core.devices.device import Admin
from farm.core.jobs.poison_job import DEVICE_KILLER, killed_devices
from farm.database.notifications import concerns_devices
from farm.store.devices import devices
from farm.store.jobs import jobs
from farm.store.jobs.jobs import Job
from farm.store.matrices import equivalent_cells


def killed_by(connection: Connection, job: Job) -> tuple[DeviceId, ...]:
    """The phones that the job's work has made go away; empty where it is not to blame for that."""
    if job.cell_id is None or job.matrix_id is None:
        return ()
    return killed_devices(equivalent_cells.losses_of(connection, job.matrix_id, job.cell_id))


def others_queued(connection: Connection, job: Job) -> Sequence[JobId]:
    """What else of the job's work nobody has begun."""
    if job.cell_id is None or job.matrix_id is None:
        return ()
    found = equivalent_cells.queued_of(
        connection, job.matrix_id, equivalent_cells.cells_alike(connection, job.cell_id)
    )
    return [job_id for job_id in found if job_id != job.job_id]


def queued_killers(connection: Connection, matrix_id: MatrixId) -> list[Job]:
    """The jobs of a matrix that nobody has begun, of work that it runs no more."""
    cells = equivalent_cells.killer_cells(connection, matrix_id)
    found = equivalent_cells.queued_of(connection, matrix_id, sorted(cells)) if cells else []
    return [job for job_id in found if (job := jobs.find_job(connection, job_id)) is not None]


def check_killed(connection: Connection, killed: Sequence[DeviceId], *, now: datetime) -> None:
    """Have phones looked at that a job made go away: it was not their doing, and they may be harmed."""
    concerns_devices(connection, killed)
    for device_id in killed:
        if devices.get_device(connection, device_id).admin is Admin.ACTIVE:
            jobs.add_check(
                connection, device_id, now=now, cause=f"{DEVICE_KILLER}: it went away during a job"
            )


def said_of(killed: Sequence[DeviceId]) -> str:
    """Why the work is not run any more, for a person."""
    return f"{' and '.join(killed)} went away or started anew while they ran it: this matrix runs it no more"
