"""Ends what makes one phone after another go away (FAULTS 53), before it reaches the next."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, JobId, MatrixId
from farm.core.devices.device import Admin
from farm.core.jobs.poison_job import POISON_JOB, poisoned_devices
from farm.database.notifications import notify_hosts_of_devices
from farm.store.devices import devices
from farm.store.jobs import jobs
from farm.store.jobs.jobs import Job
from farm.store.matrices import equivalent_cells


def find_lost_devices(connection: Connection, job: Job) -> tuple[DeviceId, ...]:
    """The phones that the job's work has made go away; empty where it is not to blame for that."""
    if job.cell_id is None or job.matrix_id is None:
        return ()
    return poisoned_devices(equivalent_cells.losses_of_cell(connection, job.matrix_id, job.cell_id))


def other_queued_jobs(connection: Connection, job: Job) -> Sequence[JobId]:
    """What else of the job's work nobody has begun."""
    if job.cell_id is None or job.matrix_id is None:
        return ()
    found = equivalent_cells.queued_jobs_of_cells(
        connection, job.matrix_id, equivalent_cells.equivalents_of_cell(connection, job.cell_id)
    )
    return [job_id for job_id in found if job_id != job.job_id]


def queued_poison_jobs(connection: Connection, matrix_id: MatrixId) -> list[Job]:
    """The jobs of a matrix that nobody has begun, of work that it runs no more."""
    cells = equivalent_cells.poison_cells(connection, matrix_id)
    found = equivalent_cells.queued_jobs_of_cells(connection, matrix_id, sorted(cells)) if cells else []
    return [job for job_id in found if (job := jobs.find_job(connection, job_id)) is not None]


def check_lost_devices(connection: Connection, killed: Sequence[DeviceId], *, now: datetime) -> None:
    """Have phones looked at that a job made go away: it was not their doing, and they may be harmed."""
    notify_hosts_of_devices(connection, killed)
    for device_id in killed:
        if devices.get_device(connection, device_id).admin is Admin.ACTIVE:
            jobs.add_check(connection, device_id, now=now, cause=f"{POISON_JOB}: it went away during a job")


def poison_message(killed: Sequence[DeviceId]) -> str:
    """Why the work is not run any more, for a person."""
    return f"{' and '.join(killed)} went away or started anew while they ran it: this matrix runs it no more"
