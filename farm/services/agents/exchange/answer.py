"""Answer an exchange: the attempts that the session owns, and what else its agent is to do and may read."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, Digest, HostId
from farm.core.devices.device import Admin, Presence
from farm.core.devices.host_state import HostState
from farm.core.errors import Forbidden
from farm.core.jobs.attempt import AttemptRecord, AttemptState
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS, AgentTimeouts
from farm.core.upkeep.device_action import DeviceActionKind, obstacle
from farm.core.upkeep.device_settings import SettingRestore, settings_to_restore
from farm.services.agents.exchange.device_changes import claims_too_much
from farm.services.files.builtin_programs import check_files
from farm.store.devices import workload as device_workload
from farm.store.devices.devices import Device
from farm.store.hosts import hosts
from farm.store.jobs import attempts
from farm.store.jobs.queues import next_job_files
from farm.store.upkeep import device_actions
from farm.wire.agents.protocol import (
    Assignment,
    CleanupOrder,
    DeviceActionOrder,
    DeviceReport,
    Exchange,
    ExchangeAnswer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswer:
    """An answer, and whether it tells the agent anything it does not know."""

    answer: ExchangeAnswer
    has_news: bool
    #: A free device's next job waits for a plan: the agent gets it when it is answered again.
    needs_plans: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """The work in progress on a host when it is answered."""

    devices: Sequence[Device]
    #: Live attempts of the session that are still wanted.
    owned: Sequence[AttemptRecord]
    #: Runs that were given up and yet count: nothing took their place.
    orphaned: Sequence[AttemptRecord]
    #: Devices that an attempt has.
    busy: Collection[DeviceId]


def answer(
    connection: Connection,
    host_id: HostId,
    request: Exchange,
    at_work: AtWork,
    *,
    facts_wanted: Sequence[DeviceId],
    timeouts: AgentTimeouts,
) -> CallAnswer:
    """Answer an exchange that was applied."""
    reply = _answer(
        request,
        timeouts,
        # An attempt that is no longer wanted is left out, and thereby stopped.
        assignments=_assignments(connection, (*at_work.owned, *at_work.orphaned)),
        facts_wanted=tuple(facts_wanted),
        prefetch=upcoming_files(connection, host_id),
        device_actions=tuple(_due_actions(connection, host_id, at_work)),
        may_recover=_may_recover(at_work, request.devices),
        clean_ups=(*_clean_ups(at_work), *_token_resets(at_work, request.devices)),
    )
    return CallAnswer(answer=reply, has_news=_is_news(request, reply))


def no_news(request: Exchange, timeouts: AgentTimeouts = DEFAULT_TIMEOUTS) -> CallAnswer:
    """Return the answer to an exchange that asks nothing, while there is nothing to do."""
    return CallAnswer(answer=_answer(request, timeouts), has_news=False)


def _answer(request: Exchange, timeouts: AgentTimeouts, **values: Any) -> ExchangeAnswer:
    return ExchangeAnswer(
        seq=request.seq,
        start_within_s=timeouts.start_within.total_seconds(),
        lost_after_s=timeouts.lost_after.total_seconds(),
        **values,
    )


def _is_news(request: Exchange, answer: ExchangeAnswer) -> bool:
    held = {report.attempt_id for report in request.attempts if report.phase is not AttemptState.RETURNED}
    owned = {assignment.attempt_id for assignment in answer.assignments}
    new_actions = {device_action.device_action_id for device_action in answer.device_actions} - set(
        request.device_actions_in_progress
    )
    return held != owned or bool(answer.facts_wanted) or bool(new_actions)


def _assignments(connection: Connection, wanted: Sequence[AttemptRecord]) -> tuple[Assignment, ...]:
    """Assign attempts; those that their agent has not begun with their plans."""
    unstarted = [attempt.attempt_id for attempt in wanted if attempt.state is AttemptState.CLAIMED]
    plans = attempts.plans_of(connection, unstarted)
    return tuple(
        Assignment(
            attempt_id=attempt.attempt_id,
            job_id=attempt.job_id,
            device_id=attempt.device_id,
            fence=attempt.fence,
            plan=plans.get(attempt.attempt_id),
        )
        for attempt in wanted
    )


def upcoming_files(connection: Connection, host_id: HostId) -> tuple[Digest, ...]:
    """Return the files that the next job of each of the host's devices needs, each once."""
    for_check = tuple(file.digest for file in check_files())
    needed = (job.digests or for_check for job in next_job_files(connection, host_id))
    return tuple(dict.fromkeys(digest for digests in needed for digest in digests))


def _due_actions(connection: Connection, host_id: HostId, at_work: AtWork) -> Iterator[DeviceActionOrder]:
    """Yield the actions of the host's agent that are due now, on devices where they disturb nothing."""
    open_device_actions = device_actions.open_device_actions(connection, host_id=host_id)
    busy_cpus = device_workload.unquiet_cpus(connection) if open_device_actions else set()
    device_by_id = {device.device_id: device for device in at_work.devices}
    for device_action in open_device_actions:
        device = device_by_id[device_action.device_id]
        state = device.state(cpu_busy=device.cpu_domain in busy_cpus)
        is_busy = device.device_id in at_work.busy
        if is_busy or obstacle(state, host_id=device.host_id, job_id=device.job_id) is not None:
            continue
        yield DeviceActionOrder(
            device_action_id=device_action.device_action_id,
            device_id=device_action.device_id,
            kind=device_action.kind,
            label=device.name,
            put_back=_put_back(connection, device_action.device_id, device_action.kind),
        )


def _put_back(
    connection: Connection, device_id: DeviceId, kind: DeviceActionKind
) -> tuple[SettingRestore, ...]:
    """Return the values that an undo writes; nothing for any other device action."""
    if kind is not DeviceActionKind.RESTORE_SETTINGS:
        return ()
    record = device_actions.find_settings_record(connection, device_id)
    return settings_to_restore(record.settings) if record else ()


def _may_recover(at_work: AtWork, reports: Sequence[DeviceReport]) -> tuple[DeviceId, ...]:
    """Return the devices that ask for recovery and whose recovery disturbs no run or person (I14)."""
    asking = {
        report.device_id
        for report in reports
        if report.recovery is not None and report.recovery.needs_approval
    }
    return tuple(
        device.device_id
        for device in at_work.devices
        if device.device_id in asking - set(at_work.busy) and _is_free(device)
    )


def _is_free(device: Device) -> bool:
    """Tell whether it is in the pool, and no run or person uses it."""
    is_ours = device.admin is Admin.ACTIVE and device.reserved_by is None
    is_idle = device.job_id is None and not device.has_device_action
    return is_ours and is_idle and device.host_state is HostState.ACTIVE


def _clean_ups(at_work: AtWork) -> tuple[CleanupOrder, ...]:
    """Return devices on which a run may have left something though no attempt has them."""
    orphaned = {attempt.device_id for attempt in at_work.orphaned}
    return tuple(
        CleanupOrder(device_id=device.device_id, fence=device.fence)
        for device in at_work.devices
        if device.presence is Presence.ONLINE and device.job_id is None
        if device.cleaned_fence < device.fence and device.device_id not in orphaned
    )


def _token_resets(at_work: AtWork, reports: Sequence[DeviceReport]) -> Iterator[CleanupOrder]:
    """Yield the devices that know a token which the farm cannot have given: a run wrote it there."""
    device_by_id = {device.device_id: device for device in at_work.devices if device.job_id is None}
    for report in reports:
        device = device_by_id.get(DeviceId(report.device_id))
        if device is not None and report.presence is Presence.ONLINE and claims_too_much(device, report):
            yield CleanupOrder(device_id=device.device_id, fence=device.fence, resets=True)


def check_file_is_needed(connection: Connection, host_id: HostId, digest: Digest) -> None:
    """Refuse an agent a file that is none of its own work's.

    Raises:
        Forbidden: neither an attempt it has nor the next job of one of its phones names it.
    """
    if digest not in _needed_digests(connection, host_id):
        raise Forbidden(
            f"no work of host {host_id} names the file {digest}",
            hint="an agent gets what its attempts and the next jobs of its phones need, while they do",
        )


def _needed_digests(connection: Connection, host_id: HostId) -> Iterator[Digest]:
    session = hosts.current_session(connection, host_id)
    if session is not None:
        live = attempts.live_attempts(connection, session.session_id)
        plans = attempts.plans_of(connection, [attempt.attempt_id for attempt in live])
        yield from (file.digest for plan in plans.values() for file in plan.files)
    yield from upcoming_files(connection, host_id)
