"""Consequences of an attempt's end for its job, block, series, device and host; pure."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile

from farm.core.base.ids import DeviceId
from farm.core.checks.failures import (
    RECENT_ATTEMPTS,
    WINDOW,
    DeviceFailure,
    Incident,
    PastOutcome,
    correlated_failures,
    is_suspicious,
    may_be_host_caused,
)
from farm.core.devices.device import Health
from farm.core.devices.host_state import IncidentKind
from farm.core.errors import Blame
from farm.core.jobs.attempt import AttemptOutcome, AttemptRecord
from farm.core.jobs.job import Job, JobEvent, JobKind, advance
from farm.core.jobs.retry import (
    CHRONIC_AFTER,
    DEVICE_GONE_CODES,
    MAX_BLOCKS,
    POISON_JOB,
    may_retry,
    poisoned_devices,
)
from farm.core.matrices.blocks import shuffled
from farm.core.operations.alarm import AlarmKind, AlarmSubject, DueAlarm
from farm.core.operations.event import DeviceEvent, EventSubject, SubjectEvent
from farm.core.results.settle.effects import (
    ChangeHealth,
    ClearAlarm,
    Consequence,
    EndJob,
    NotifyDevices,
    OpenIncident,
    QueueCheck,
    RaiseAlarm,
    RepeatBlock,
    RequeueJob,
    WidenIncident,
)
from farm.core.results.settle.report import NewMeasurement
from farm.core.results.settle.report_context import (
    BlockContext,
    HealthContext,
    HostContext,
    LastPlacement,
    RetryContext,
)
from farm.core.runs.measurement import COUNTED, DISTURBED, UNKNOWN_ACCELERATOR, Outcome, Quality
from farm.core.runs.placement import Placement, placement_text

_PLACEMENT_HINT = "`farm placement` shows where series run; `farm attempt show ID` has the proof of one run"

#: Another try can cure these; what fell back once will fall back again.
_CURABLE = DISTURBED | {Quality.SHORT, Quality.UNPLUGGED, Quality.UNCONTROLLED}


def retry_or_end_job(
    retry: RetryContext, job: Job, outcome: AttemptOutcome, *, now: datetime, actor: str
) -> tuple[Consequence, ...]:
    """Queue a job again after an inconclusive attempt, or finish it when its budget is used up.

    What has made two devices go away is not tried on a third one. `retry` has that attempt in it.
    """
    if killed := poisoned_devices(retry.losses):
        return end_poison_jobs(retry, job, killed, now=now, actor=actor)
    if not may_retry(retry.tries):
        return end_job(job, outcome, now=now, actor=actor)
    if advance(job.state, JobEvent.REQUEUED) is None:
        return ()
    return (RequeueJob(at=now, job=job, actor=actor, cause=outcome.message),)


def end_poison_jobs(
    retry: RetryContext, job: Job, killed: Sequence[DeviceId], *, now: datetime, actor: str
) -> tuple[Consequence, ...]:
    """Finish a poison job and the queued jobs of equivalent cells; have the lost devices checked.

    It was not their doing, and they may be harmed.
    """
    outcome = poison_outcome(killed)
    ends = [
        end for peer in (job, *retry.queued_alike) for end in end_job(peer, outcome, now=now, actor=actor)
    ]
    cause = f"{POISON_JOB}: it went away during a job"
    checks = [
        QueueCheck(at=now, device_id=device_id, cause=cause)
        for device_id in killed
        if device_id in retry.active_devices
    ]
    return (*ends, NotifyDevices(devices=tuple(killed)), *checks)


def poison_outcome(killed: Sequence[DeviceId]) -> AttemptOutcome:
    """Return how jobs end whose work is not run any more."""
    message = f"{' and '.join(killed)} went away or restarted while they ran it: this matrix runs it no more"
    return AttemptOutcome(outcome=Outcome.FAILED, blame=Blame.VARIANT, code=POISON_JOB, message=message)


def end_job(job: Job, outcome: AttemptOutcome, *, now: datetime, actor: str) -> tuple[Consequence, ...]:
    """Finish a job, unless it is finished."""
    if advance(job.state, JobEvent.FINISHED) is None:
        return ()
    return (EndJob(at=now, job=job, outcome=outcome, actor=actor),)


def end_other_rounds(
    retry: RetryContext, outcome: AttemptOutcome, *, now: datetime, actor: str
) -> tuple[Consequence, ...]:
    """Finish the other starts of a cell of which two ended in the same way: they would end so, too."""
    same = replace(outcome, message=f"not run, because two starts ended so: {outcome.message}")
    return tuple(end for peer in retry.same_cell for end in end_job(peer, same, now=now, actor=actor))


def host_incident(
    host: HostContext, *, now: datetime, failing: DeviceId | None = None
) -> tuple[tuple[Consequence, ...], Incident | None]:
    """Tell whether what devices went through is their host's failure (I15), and the incident that it is.

    `failing` is a device whose attempt is about to end badly.
    """
    own = [] if failing is None else [DeviceFailure(device_id=failing, at=now)]
    failures = [*host.failures, *own]
    incident = host.open_incident
    if incident is not None:
        further = {failure.device_id for failure in failures if failure.at >= incident.began_at}
        new = frozenset(further - set(incident.devices))
        if not new:
            return (), incident
        # Those that were forgiven before may have failed a check of their own since.
        widened = replace(incident, devices=tuple(sorted({*incident.devices, *new})))
        return (WidenIncident(incident=incident, devices=new), *_heal(host, incident, new, now)), widened
    hit = correlated_failures(failures, host.online, now=now)
    if not hit:
        return (), None
    opened = Incident(
        incident_id=0,
        host_id=host.host_id,
        kind=IncidentKind.CORRELATED_FAILURES,
        began_at=min(failure.at for failure in failures if failure.device_id in hit),
        ended_at=None,
        devices=tuple(sorted(hit)),
        cause=f"{len(hit)} of its phones went away or failed within {WINDOW.total_seconds():.0f} s",
    )
    return (OpenIncident(at=now, incident=opened), *_heal(host, opened, hit, now)), opened


def _heal(
    host: HostContext, incident: Incident, hit: Collection[DeviceId], now: datetime
) -> list[Consequence]:
    """Restore the health that devices lost by what is now seen to be a fault of their host."""
    before: dict[DeviceId, str | None] = {}
    for change in host.health_changes:
        if change.at >= incident.began_at:
            before.setdefault(change.device_id, change.before)
    return [
        ChangeHealth(
            at=now,
            device_id=device_id,
            sources=(Health.SUSPECT, Health.BAD),
            to=Health(health),
            cause=f"it was {incident.host_id}: {incident.cause}",
        )
        for device_id in sorted(hit)
        if (health := before.get(device_id)) in (Health.GOOD, Health.UNKNOWN)
    ]


def is_explained_by_incident(attempt: AttemptRecord, incidents: Collection[Incident]) -> bool:
    """Tell whether an attempt that ends through its device was under way when an incident hit the device."""
    return any(
        incident.host_id == attempt.host_id
        and _affects(incident, attempt.device_id)
        and (incident.ended_at is None or incident.ended_at >= attempt.claimed_at)
        for incident in incidents
    )


def _affects(incident: Incident, device_id: DeviceId) -> bool:
    return incident.kind is IncidentKind.CORRELATED_FAILURES and device_id in incident.devices


def suspect_device(
    recent: HealthContext,
    attempt: AttemptRecord,
    job: Job,
    outcome: AttemptOutcome,
    job_effects: Sequence[Consequence],
    incidents: Collection[Incident],
    *,
    now: datetime,
) -> tuple[Consequence, ...]:
    """Make a good device suspect that was to blame too often since its check, and have it checked.

    Args:
        recent: how earlier attempts on it ended.
        attempt: the one that ends now.
        job: its job.
        outcome: how it ends.
        job_effects: what becomes of its job, and of others with it.
        incidents: of the hosts where they ran, as of now.
        now: the time.
    """
    code_by_job = {end.job.job_id: end.outcome.code for end in job_effects if isinstance(end, EndJob)}
    this = PastOutcome(
        attempt_id=attempt.attempt_id,
        job_id=job.job_id,
        kind=job.kind,
        fence=attempt.fence,
        blame=outcome.blame,
        code=outcome.code,
        job_code=job.code,
        host_id=attempt.host_id,
        claimed_at=attempt.claimed_at,
        finished_at=now,
    )
    newest_first = sorted([this, *recent.outcomes], key=lambda ending: -ending.fence)[:RECENT_ATTEMPTS]
    since_check = takewhile(lambda ending: ending.kind is not JobKind.CHECK, newest_first)
    hitting = [incident for incident in incidents if _affects(incident, attempt.device_id)]
    # A cause that makes other phones go away, too, was not this one's doing.
    blames = [
        ending.blame
        for ending in since_check
        if code_by_job.get(ending.job_id, ending.job_code) != POISON_JOB
        and not (
            may_be_host_caused(ending.blame, ending.code)
            and any(_overlaps(incident, ending) for incident in hitting)
        )
    ]
    if not is_suspicious(blames):
        return ()
    failures = blames.count(Blame.DEVICE)
    cause = f"{failures} of its last {len(blames)} attempts failed through the phone"
    return (
        ChangeHealth(
            at=now,
            device_id=attempt.device_id,
            sources=(Health.GOOD,),
            to=Health.SUSPECT,
            cause=cause,
            with_check=True,
        ),
    )


def _overlaps(incident: Incident, ending: PastOutcome) -> bool:
    is_later = incident.ended_at is not None and ending.claimed_at > incident.ended_at
    is_there = incident.host_id == ending.host_id
    return is_there and not is_later and ending.finished_at >= incident.began_at


def check_after_loss(
    retry: RetryContext, device_id: DeviceId, code: str | None, *, now: datetime
) -> tuple[Consequence, ...]:
    """Have a device checked before it gets its next job, when its last one lost it."""
    if code not in DEVICE_GONE_CODES or device_id not in retry.active_devices:
        return ()
    return (QueueCheck(at=now, device_id=device_id, cause=f"it went away during a job: {code}"),)


def may_be_repeated(measured: NewMeasurement) -> bool:
    """Tell whether the block of a measurement is queued again, unless that was done too often."""
    return measured.apart is not None or measured.quality in _CURABLE


def is_block_repeatable(job: Job, qualities: Sequence[Quality]) -> bool:
    """Tell whether a job's block is within its budget of repeats, by all qualities of the job's cell.

    A cell that never was valid would have all others measured three times for nothing.
    """
    is_chronic = len(qualities) > CHRONIC_AFTER and COUNTED.isdisjoint(qualities)
    return not is_chronic and job.repeat + 1 < MAX_BLOCKS


def repeat_block(
    block: BlockContext | None, job: Job, measured: NewMeasurement, *, now: datetime
) -> tuple[RepeatBlock, ...]:
    """Queue the block of a measurement that `may_be_repeated` once more, all of its cells side by side."""
    if block is None:
        return ()
    key = f"{block.seed}/{job.device_id}/{job.round}/{job.repeat + 1}/{job.block}/"
    return (
        RepeatBlock(
            at=now,
            job=job,
            cells=tuple(block.cell_by_index[index] for index in shuffled(block.cell_by_index, key)),
            virtual_time=block.virtual_time,
            cause=measured.apart or f"job {job.job_id} is {measured.quality}",
        ),
    )


def place_in_words(actual_backend: str, accelerator: str, placement: Placement | None) -> str | None:
    """Return what is compared from one run to the next; None where nothing is proven."""
    if accelerator == UNKNOWN_ACCELERATOR:
        return None
    words = accelerator if placement is None else placement_text(placement)
    return f"{actual_backend} on {words}"


def record_placement_change(
    measured: NewMeasurement, last: LastPlacement | None, *, now: datetime
) -> tuple[Consequence, ...]:
    """Record that a series runs on other hardware than before: a driver was updated, or lost. Raise an alarm.

    Runs that are on the CPU by construction have no placement, and are not compared.
    """
    series = measured.series
    if last is None or measured.placement is None:
        return ()
    place = place_in_words(measured.actual_backend, measured.accelerator, measured.placement)
    place_before = place_in_words(last.actual_backend, last.accelerator, last.placement)
    if place is None or place_before is None or place == place_before:
        return ()
    name = " ".join(filter(None, [series.model, series.harness, series.backend]))
    alarm = DueAlarm(
        kind=AlarmKind.PLACEMENT_CHANGED,
        subject=AlarmSubject.SERIES,
        subject_id=str(last.series_id),
        message=f"{name} on {series.device_id} ran as {place_before}, and runs as {place} now",
        hint=_PLACEMENT_HINT,
    )
    return (
        SubjectEvent(
            at=now,
            actor="farm",
            subject=EventSubject.DEVICE,
            subject_id=series.device_id,
            kind=DeviceEvent.PLACEMENT_CHANGED,
            from_state=place_before,
            to_state=place,
            cause=f"series {last.series_id} ({name}), attempt {measured.attempt_id}: {measured.proof}",
        ),
        # One alarm tells of the newest change: an older one that is still open is over with it.
        ClearAlarm(at=now, alarm=alarm.key, cause="it changed once more"),
        RaiseAlarm(at=now, alarm=alarm, unless_acknowledged=False),
    )
