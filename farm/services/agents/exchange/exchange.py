"""One exchange of an agent, in one transaction: load the snapshot, decide, apply, claim jobs, and answer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, HostId, SessionId
from farm.core.devices.host_state import CREDENTIAL_IN_USE_HINT, SessionState
from farm.core.errors import Forbidden, SessionFenced
from farm.core.jobs.timeouts import DEFAULT_TIMEOUTS, AgentTimeouts
from farm.core.results.settle.consequences import host_incident
from farm.core.upkeep.device_action import DeviceActionKind
from farm.core.upkeep.device_settings import DeviceSettingsRecord, keep_originals
from farm.database.transaction import Tx
from farm.services.access.refused_requests import record_refusal, record_refused_claim
from farm.services.agents.exchange import effects as to
from farm.services.agents.exchange.answer import AtWork, CallAnswer, answer
from farm.services.agents.exchange.effects import Effect, Progress, RecordStatus
from farm.services.agents.exchange.reconcile import facts_wanted, reconcile, reconcile_attempts
from farm.services.agents.exchange.snapshot import load, reload_devices
from farm.services.agents.orphaned_runs import orphaned_runs
from farm.services.jobs.claim import ClaimResult, RunPlans, claim_jobs
from farm.services.jobs.termination import finish_cancelled_attempt, lose_attempt, return_attempt
from farm.store.devices import devices
from farm.store.devices import facts as device_facts
from farm.store.devices import reports as device_reports
from farm.store.devices.devices import Device
from farm.store.devices.transitions import raise_fence_to
from farm.store.hosts import hosts
from farm.store.hosts.hosts import Session
from farm.store.jobs import attempts
from farm.store.operations import database_epochs
from farm.store.results.settle.effects import write_consequences
from farm.store.results.settle.report_context import host_context
from farm.store.upkeep import device_actions
from farm.wire.agents.protocol import Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """An exchange that was applied, or whose session was read."""

    session: Session
    #: No exchange with a higher number was applied.
    is_latest: bool
    #: Devices whose facts are wanted.
    facts_wanted: Sequence[DeviceId] = ()
    #: All devices of the host; None where they have to be read again.
    devices: Sequence[Device] | None = None


def exchange(tx: Tx, host_id: HostId, session_id: SessionId, request: Exchange) -> Applied:
    """Apply what an agent says; an exchange older than one that was applied changes nothing.

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: the session is not the host's current one, or the database was restored since.
    """
    session = current_session(tx.connection, host_id, session_id)
    _check_epoch(tx.connection, request)
    if not hosts.record_heartbeat(tx, session_id, seq=request.seq):
        return Applied(session=session, is_latest=session.exchange_seq == request.seq)
    if session.state is SessionState.SILENT:
        hosts.move_session(tx.by("farm"), session, SessionState.LIVE, cause="its agent is back")
    snapshot = load(tx, session, request)
    effects = reconcile_attempts(snapshot, request)
    apply(tx, host_id, effects)
    if not _leave_devices(effects, host_id):
        snapshot = reload_devices(tx, snapshot, request)
    effects = reconcile(snapshot, request)
    apply(tx, host_id, effects)
    return Applied(
        session=session,
        is_latest=True,
        facts_wanted=facts_wanted(effects, request),
        devices=snapshot.devices if _leave_devices(effects, host_id) else None,
    )


def current_session(connection: Connection, host_id: HostId, session_id: SessionId) -> Session:
    """Return a session of a host that is live, or silent.

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: the session is not the host's current one.
    """
    session = hosts.find_session(connection, session_id)
    if session is None:
        raise SessionFenced(f"host {host_id} has no session {session_id}")
    if session.host_id != host_id:
        raise Forbidden(f"session {session_id} is not of host {host_id}", hint=CREDENTIAL_IN_USE_HINT)
    if session.state is SessionState.CLOSED:
        raise SessionFenced(
            f"session {session_id} is closed: a newer one of {host_id} was opened",
            hint="if no one restarted the agent, another one has its credential: a copied folder, say",
        )
    if session.state not in (SessionState.LIVE, SessionState.SILENT):
        raise SessionFenced(f"session {session_id} is {session.state}")
    return session


def _check_epoch(connection: Connection, request: Exchange) -> None:
    epoch = database_epochs.current_epoch(connection)
    if request.database_epoch not in ("", epoch.epoch):
        raise SessionFenced(f"the farm's database was {epoch.cause}")


def _leave_devices(effects: Sequence[Effect], host_id: HostId) -> bool:
    """Return whether effects leave all that was read of devices as it was, but for when they were seen."""
    return all(
        all(update.is_unchanged(host_id) for update in effect.updates)
        if isinstance(effect, RecordStatus)
        else isinstance(effect, Progress)
        for effect in effects
    )


def apply(tx: Tx, host_id: HostId, effects: Iterable[Effect]) -> None:
    """Apply effects in their order. Each is a compare-and-set, or changes nothing the second time."""
    for effect in effects:
        _apply(tx, host_id, effect)


def _apply(tx: Tx, host_id: HostId, effect: Effect) -> None:
    actor = f"agent:{host_id}"
    match effect:
        case to.AdvanceAttempt(attempt=attempt, event=event):
            attempts.move_attempt(tx.by(actor), attempt, event)
        case to.RecordWaiting(attempt=attempt, state=state, waiting_for=waiting_for):
            attempts.record_waiting(tx, replace(attempt, state=state), waiting_for)
        case to.ReturnAttempt(attempt=attempt, reason=reason, code=code):
            return_attempt(tx.by(actor), attempt, reason=reason, code=code)
        case to.CancelAttempt(attempt=attempt, cause=cause):
            finish_cancelled_attempt(tx.by(actor), attempt, cause=cause)
        case to.LoseAttempt(attempt=attempt, cause=cause, code=code):
            lose_attempt(tx, attempt, cause=cause, code=code)
        case to.AddDevice(device_id=device_id, serial=serial, admin=admin):
            device_reports.add_device(tx, device_id=device_id, host_id=host_id, serial=serial, admin=admin)
        case to.MarkAbsent(device_id=device_id, presence=presence):
            cause = "adb does not list it"
            device_reports.mark_absent(tx, device_id, presence=presence, cause=cause)
        case to.RecordFacts(device_id=device_id, facts=facts, is_unnumbered=is_unnumbered):
            device_facts.put_facts(tx, device_id, facts)
            if is_unnumbered:
                device_facts.assign_unit_number(tx, device_id, facts.device_model)
        case to.RecordStatus(updates=updates):
            device_reports.record_status_updates(tx, host_id, updates)
        case to.RaiseFence(device_id=device_id, fence=fence, cause=cause):
            raise_fence_to(tx.by(actor), device_id, fence, cause=cause)
        case to.Provision(device_id=device_id):
            reason = "its host sets up devices automatically (FARM_AGENT_PROVISION_DEVICES)"
            kind = DeviceActionKind.PROVISION
            device_actions.add_device_action(tx.by(actor), device_id, kind, by=actor, reason=reason)
        case to.FinishDeviceAction():
            _finish_device_action(tx.by(actor), effect)
        case to.RefuseDevice(device_id=device_id, cause=cause):
            record_refused_claim(tx, device_id, cause, host_id)
        case to.RefuseNewDevices(cause=cause):
            record_refusal(tx, host_id, cause)
        case to.FindIncident():
            consequences, _ = host_incident(host_context(tx, host_id), now=tx.now)
            write_consequences(tx.connection, consequences)
        case _:
            write_consequences(tx.connection, [effect])


def _finish_device_action(tx: Tx, effect: to.FinishDeviceAction) -> None:
    device_action, report = effect.device_action, effect.report
    device_actions.finish_device_action(
        tx,
        device_action,
        done=None if report.error is not None else report.done or "done",
        error=report.error,
        freed_bytes=report.freed_bytes,
    )
    if report.settings:
        # With what settings were before the farm first changed them.
        earlier = device_actions.find_settings_record(tx.connection, device_action.device_id)
        settings = keep_originals(report.settings, earlier.settings if earlier else ())
        record = DeviceSettingsRecord(
            at=tx.now, kind=device_action.kind, requested_by=device_action.requested_by, settings=settings
        )
        device_actions.put_settings_record(tx.connection, device_action.device_id, record)


def answer_call(
    tx: Tx,
    host_id: HostId,
    session_id: SessionId,
    request: Exchange,
    *,
    plans: RunPlans,
    timeouts: AgentTimeouts = DEFAULT_TIMEOUTS,
    again: bool = False,
) -> CallAnswer:
    """Apply what an agent says, claim what can be claimed, and say what the session owns.

    An exchange older than one already applied only gets an answer; with `again` the exchange was applied
    before, and is not once more. Raises like `exchange`.
    """
    if again:
        session = current_session(tx.connection, host_id, session_id)
        applied = Applied(session=session, is_latest=session.exchange_seq == request.seq)
    else:
        applied = exchange(tx, host_id, session_id, request)
    own_devices = applied.devices
    if own_devices is None:
        own_devices = devices.list_devices(tx.connection, host_id=host_id)
    live = attempts.live_attempts(tx.connection, session_id)
    # Attempts claimed below are wanted.
    unwanted = attempts.attempts_to_stop(tx.connection, session_id) if live else set()
    orphaned = orphaned_runs(
        tx.connection, host_id, request.attempts, live={attempt.attempt_id for attempt in live}
    )
    claim = ClaimResult()
    if applied.is_latest and request.pressure is None:
        claim = claim_jobs(
            tx, host_id, session_id, plans=plans, orphaned_runs=len(orphaned), known_devices=own_devices
        )
        live = attempts.live_attempts(tx.connection, session_id) if claim.had_candidates else live
    at_work = AtWork(
        devices=own_devices,
        owned=[attempt for attempt in live if attempt.attempt_id not in unwanted],
        orphaned=orphaned,
        busy={attempt.device_id for attempt in live},
    )
    answered = answer(
        tx.connection, host_id, request, at_work, facts_wanted=applied.facts_wanted, timeouts=timeouts
    )
    return replace(answered, needs_plans=claim.needs_plans)
