"""What the farm answers to an exchange: what the session owns, and what else its agent is to do."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, Digest, HostId
from farm.core.devices.device import Admin, Presence
from farm.core.devices.host_state import HostState
from farm.core.jobs.attempt import Attempt, AttemptState
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS, AgentTimeouts
from farm.core.upkeep.device_action import DeviceActionKind, obstacle
from farm.core.upkeep.device_settings import SettingRestore, settings_to_restore
from farm.services.files.check_files import check_files
from farm.store.devices import capacity as device_capacity
from farm.store.devices.devices import Device
from farm.store.jobs.queues import next_job_files
from farm.store.upkeep import device_actions, device_settings
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """What is under way on a host when it is answered."""

    devices: Sequence[Device]
    #: Live attempts of the session that somebody still wants.
    owned: Sequence[Attempt]
    #: Runs that were given up and yet count: nothing took their place.
    orphaned: Sequence[Attempt]
    #: Devices that an attempt has.
    busy: Collection[DeviceId]


def answer(
    connection: Connection,
    host_id: HostId,
    said: Exchange,
    at_work: AtWork,
    *,
    facts_wanted: Sequence[DeviceId],
    patience: AgentTimeouts,
) -> CallAnswer:
    """Answer an exchange that was applied."""
    found = _answer(
        said,
        patience,
        # What is no longer wanted is left out, and thereby stopped.
        assignments=tuple(_assignment(attempt) for attempt in (*at_work.owned, *at_work.orphaned)),
        facts_wanted=tuple(facts_wanted),
        prefetch=upcoming_files(connection, host_id),
        device_actions=tuple(_errands(connection, host_id, at_work)),
        may_recover=_may_recover(at_work, said.devices),
        clean_ups=_clean_ups(at_work),
    )
    return CallAnswer(answer=found, has_news=_is_news(said, found))


def no_news(said: Exchange, patience: AgentTimeouts = DEFAULT_TIMEOUTS) -> CallAnswer:
    """The answer to an exchange that asks nothing, while there is nothing to do."""
    return CallAnswer(answer=_answer(said, patience), has_news=False)


def _answer(said: Exchange, patience: AgentTimeouts, **values: Any) -> ExchangeAnswer:
    return ExchangeAnswer(
        seq=said.seq,
        start_within_s=patience.start_within.total_seconds(),
        lost_after_s=patience.lost_after.total_seconds(),
        **values,
    )


def _is_news(said: Exchange, answer: ExchangeAnswer) -> bool:
    held = {report.attempt_id for report in said.attempts if report.phase is not AttemptState.RETURNED}
    owned = {assignment.attempt_id for assignment in answer.assignments}
    asked = {device_action.device_action_id for device_action in answer.device_actions} - set(
        said.device_actions_in_progress
    )
    return held != owned or bool(answer.facts_wanted) or bool(asked)


def _assignment(attempt: Attempt) -> Assignment:
    unstarted = attempt.state is AttemptState.CLAIMED
    return Assignment(
        attempt_id=attempt.attempt_id,
        job_id=attempt.job_id,
        device_id=attempt.device_id,
        fence=attempt.fence,
        plan=attempt.plan if unstarted else None,
    )


def upcoming_files(connection: Connection, host_id: HostId) -> tuple[Digest, ...]:
    """The files that the next job of each of the host's devices needs, each once."""
    for_check = tuple(file.digest for file in check_files())
    needed = (job.digests or for_check for job in next_job_files(connection, host_id))
    return tuple(dict.fromkeys(digest for digests in needed for digest in digests))


def _errands(connection: Connection, host_id: HostId, at_work: AtWork) -> Iterator[DeviceActionOrder]:
    """What the host's agent is to do now, on devices where it disturbs nothing."""
    open_device_actions = device_actions.open_device_actions(connection, host_id=host_id)
    busy_cpus = device_capacity.unquiet_cpus(connection) if open_device_actions else set()
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
    """What an undo writes; nothing for any other errand."""
    if kind is not DeviceActionKind.RESTORE_SETTINGS:
        return ()
    record = device_settings.find_settings_record(connection, device_id)
    return settings_to_restore(record.settings) if record else ()


def _may_recover(at_work: AtWork, reports: Sequence[DeviceReport]) -> tuple[DeviceId, ...]:
    """The devices that are about to be disturbed, as far as that is nobody's harm (I14)."""
    asking = {
        each.device_id for each in reports if each.recovery is not None and each.recovery.needs_approval
    }
    return tuple(
        device.device_id
        for device in at_work.devices
        if device.device_id in asking - set(at_work.busy) and _is_free(device)
    )


def _is_free(device: Device) -> bool:
    """Whether it is the pool's, and nobody is at work on it."""
    is_ours = device.admin is Admin.ACTIVE and device.reserved_by is None
    is_idle = device.job_id is None and not device.has_device_action
    return is_ours and is_idle and device.host_state is HostState.ACTIVE


def _clean_ups(at_work: AtWork) -> tuple[CleanupOrder, ...]:
    """Devices on which something of a run may be left though no attempt has them."""
    orphaned = {attempt.device_id for attempt in at_work.orphaned}
    return tuple(
        CleanupOrder(device_id=device.device_id, fence=device.fence)
        for device in at_work.devices
        if device.presence is Presence.ONLINE and device.job_id is None
        if device.cleaned_fence < device.fence and device.device_id not in orphaned
    )
