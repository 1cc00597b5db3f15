"""Consequences of an attempt's end for its job, block, device and host; pure."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile

from farm.core.base.ids import DeviceId
from farm.core.checks.health import RECENT_ATTEMPTS, PastOutcome, is_suspicious
from farm.core.checks.incident import WINDOW, DeviceFailure, Incident, correlated_failures, may_be_host_caused
from farm.core.devices.device import Health
from farm.core.devices.host_state import IncidentKind
from farm.core.errors import Blame
from farm.core.jobs.attempt import AttemptOutcome, AttemptRecord
from farm.core.jobs.job import Job, JobEvent, JobKind, advance
from farm.core.jobs.poison_job import DEVICE_GONE_CODES, POISON_JOB, poisoned_devices
from farm.core.jobs.retry import CHRONIC_AFTER, MAX_BLOCKS, may_retry
from farm.core.results.settle.effects import (
    ChangeHealth,
    Consequence,
    EndJob,
    NotifyDevices,
    OpenIncident,
    QueueCheck,
    RepeatBlock,
    RequeueJob,
    RowEffect,
    WidenIncident,
)
from farm.core.results.settle.new_measurement import NewMeasurement
from farm.core.results.settle.report_context import BlockContext, HealthContext, HostContext, RetryContext
from farm.core.runs.measurement import Outcome, Quality

#: Another try can cure these; what fell back once will fall back again.
_CURABLE = (
    Quality.NOISY,
    Quality.THROTTLED,
    Quality.SHORT,
    Quality.UNPLUGGED,
    Quality.UNCONTROLLED,
)


def end_of_job(
    known: RetryContext, job: Job, outcome: AttemptOutcome, *, now: datetime, actor: str
) -> tuple[Consequence, ...]:
    """Queue a job again after an inconclusive attempt, or finish it when its budget is used up.

    What has made two devices go away is not tried on a third one. `known` has that attempt in it.
    """
    if killed := poisoned_devices(known.losses):
        return poison_job_ends(known, job, killed, now=now, actor=actor)
    if not may_retry(known.tries):
        return job_ends(job, outcome, now=now, actor=actor)
    if advance(job.state, JobEvent.REQUEUED) is None:
        return ()
    return (RequeueJob(at=now, job=job, actor=actor, cause=outcome.message),)


def poison_job_ends(
    known: RetryContext, job: Job, killed: Sequence[DeviceId], *, now: datetime, actor: str
) -> tuple[Consequence, ...]:
    """Finish a poison job and what is queued of the same work; have the lost devices checked.

    It was not their doing, and they may be harmed.
    """
    outcome = poison_outcome(killed)
    ends = [
        end for each in (job, *known.queued_alike) for end in job_ends(each, outcome, now=now, actor=actor)
    ]
    cause = f"{POISON_JOB}: it went away during a job"
    checks = [
        QueueCheck(at=now, device_id=device_id, cause=cause)
        for device_id in killed
        if device_id in known.active_devices
    ]
    return (*ends, NotifyDevices(devices=tuple(killed)), *checks)


def poison_outcome(killed: Sequence[DeviceId]) -> AttemptOutcome:
    """Return how jobs end whose work is not run any more."""
    message = (
        f"{' and '.join(killed)} went away or started anew while they ran it: this matrix runs it no more"
    )
    return AttemptOutcome(outcome=Outcome.FAILED, blame=Blame.VARIANT, code=POISON_JOB, message=message)


def job_ends(job: Job, outcome: AttemptOutcome, *, now: datetime, actor: str) -> tuple[Consequence, ...]:
    """Finish a job, unless it is finished."""
    if advance(job.state, JobEvent.FINISHED) is None:
        return ()
    return (EndJob(at=now, job=job, outcome=outcome, actor=actor),)


def host_trouble(
    known: HostContext, *, now: datetime, failing: DeviceId | None = None
) -> tuple[tuple[Consequence, ...], Incident | None]:
    """Tell whether what devices went through is their host's trouble (I15), and the incident that it is.

    `failing` is a device whose attempt is about to end badly.
    """
    own = [] if failing is None else [DeviceFailure(device_id=failing, at=now)]
    troubles = [*known.troubles, *own]
    lasting = known.open_incident
    if lasting is not None:
        further = {trouble.device_id for trouble in troubles if trouble.at >= lasting.began_at}
        new = frozenset(further - set(lasting.devices))
        if not new:
            return (), lasting
        # Those that were forgiven before may have failed a check of their own since.
        widened = replace(lasting, devices=tuple(sorted({*lasting.devices, *new})))
        return (WidenIncident(incident=lasting, devices=new), *_forgiven(known, lasting, new, now)), widened
    hit = correlated_failures(troubles, known.online, now=now)
    if not hit:
        return (), None
    opened = Incident(
        incident_id=0,
        host_id=known.host_id,
        kind=IncidentKind.CORRELATED_FAILURES,
        began_at=min(trouble.at for trouble in troubles if trouble.device_id in hit),
        ended_at=None,
        devices=tuple(sorted(hit)),
        cause=f"{len(hit)} of its phones went away or failed within {WINDOW.total_seconds():.0f} s",
    )
    return (OpenIncident(at=now, incident=opened), *_forgiven(known, opened, hit, now)), opened


def _forgiven(
    known: HostContext, incident: Incident, hit: Collection[DeviceId], now: datetime
) -> list[Consequence]:
    """Give back the health that devices lost by what is now seen to be their host's trouble."""
    before: dict[DeviceId, str | None] = {}
    for change in known.health_changes:
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


def hosts_doing(incidents: Collection[Incident], attempt: AttemptRecord) -> bool:
    """Tell whether an attempt that ends through its device was under way when an incident hit the device."""
    return any(
        incident.host_id == attempt.host_id
        and _hits(incident, attempt.device_id)
        and (incident.ended_at is None or incident.ended_at >= attempt.claimed_at)
        for incident in incidents
    )


def _hits(incident: Incident, device_id: DeviceId) -> bool:
    return incident.kind is IncidentKind.CORRELATED_FAILURES and device_id in incident.devices


def device_health(
    known: HealthContext,
    attempt: AttemptRecord,
    job: Job,
    outcome: AttemptOutcome,
    ends: Sequence[RowEffect],
    incidents: Collection[Incident],
    *,
    now: datetime,
) -> tuple[Consequence, ...]:
    """Make a good device suspect that was to blame too often since its check, and have it checked.

    Args:
        known: how earlier attempts on it ended.
        attempt: the one that ends now.
        job: its job.
        outcome: how it ends.
        ends: what becomes of its job, and of others with it.
        incidents: of the hosts where they ran, as of now.
        now: the time.
    """
    code_by_job = {each.job.job_id: each.outcome.code for each in ends if isinstance(each, EndJob)}
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
    newest_first = sorted([this, *known.endings], key=lambda ending: -ending.fence)[:RECENT_ATTEMPTS]
    since_check = takewhile(lambda ending: ending.kind is not JobKind.CHECK, newest_first)
    hitting = [incident for incident in incidents if _hits(incident, attempt.device_id)]
    # What makes other phones go away, too, was not this one's doing.
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
    device_id = attempt.device_id
    return (
        ChangeHealth(
            at=now,
            device_id=device_id,
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
    known: RetryContext, device_id: DeviceId, code: str | None, *, now: datetime
) -> tuple[Consequence, ...]:
    """Have a device checked before it gets its next job, when its last one lost it."""
    if code not in DEVICE_GONE_CODES or device_id not in known.active_devices:
        return ()
    return (QueueCheck(at=now, device_id=device_id, cause=f"it went away during a job: {code}"),)


def may_be_repeated(measured: NewMeasurement) -> bool:
    """Tell whether the block of a measurement is queued again, unless that was done too often."""
    return measured.judgement.quality in _CURABLE


def repeated_block(
    known: BlockContext | None, job: Job, measured: NewMeasurement, *, now: datetime
) -> tuple[RepeatBlock, ...]:
    """Queue the block of a measurement that is not valid once more, within its budget.

    It stays out of speedups; every cell of that device and round is measured again, so that what is compared
    was measured side by side. For a cell that never was valid that ends after a few blocks: it would have all
    others measured three times for nothing.
    """
    if not may_be_repeated(measured) or known is None:
        return ()
    qualities = (*known.qualities, measured.judgement.quality)
    is_chronic = len(qualities) > CHRONIC_AFTER and Quality.VALID not in qualities
    if is_chronic or job.repeat + 1 >= MAX_BLOCKS or known.is_repeated:
        return ()
    cause = f"job {job.job_id} is {measured.judgement.quality}"
    return (RepeatBlock(at=now, job=job, cause=cause),)
