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
from farm.services.agents.exchange.reconcile import (
    facts_wanted,
    reconcile_attempts_and_arrivals,
    reconcile_devices,
)
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
class RequestState:
    """The state after a request was applied, now or before."""

    #: No request with a higher number was applied.
    is_latest: bool
    #: Devices whose facts are wanted.
    facts_wanted: Sequence[DeviceId] = ()
    #: All devices of the host; None where they have to be read again.
    devices: Sequence[Device] | None = None


def exchange(
    tx: Tx,
    host_id: HostId,
    session_id: SessionId,
    request: Exchange,
    *,
    plans: RunPlans,
    timeouts: AgentTimeouts = DEFAULT_TIMEOUTS,
    already_applied: bool = False,
) -> CallAnswer:
    """Run one exchange: apply the request, claim jobs for free devices, return the attempts of the session.

    A request that was applied before, or is older than one that was, is not applied again. Only the latest
    one claims jobs. With `already_applied` the caller says so: a held call is answered again.

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: the session is not open any more, or the database was restored since.
    """
    if already_applied:
        session = require_open_session(tx.connection, host_id, session_id)
        state = RequestState(is_latest=session.exchange_seq == request.seq)
    else:
        state = apply_request(tx, host_id, session_id, request)
    own_devices = state.devices
    if own_devices is None:
        own_devices = devices.list_devices(tx.connection, host_id=host_id)
    live = attempts.live_attempts(tx.connection, session_id)
    # Read before the claim: attempts claimed below cannot be unwanted.
    unwanted = attempts.attempts_to_stop(tx.connection, session_id) if live else set()
    orphaned = orphaned_runs(
        tx.connection, host_id, request.attempts, live={attempt.attempt_id for attempt in live}
    )
    claim = ClaimResult()
    if state.is_latest and request.pressure is None:
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
        tx.connection, host_id, request, at_work, facts_wanted=state.facts_wanted, timeouts=timeouts
    )
    return replace(answered, needs_plans=claim.needs_plans)


def apply_request(tx: Tx, host_id: HostId, session_id: SessionId, request: Exchange) -> RequestState:
    """Apply what an agent says; a request older than one that was applied changes nothing.

    Raises like `exchange`.
    """
    session = require_open_session(tx.connection, host_id, session_id)
    _check_epoch(tx.connection, request)
    if not hosts.record_heartbeat(tx, session_id, seq=request.seq):
        return RequestState(is_latest=session.exchange_seq == request.seq)
    if session.state is SessionState.SILENT:
        hosts.move_session(tx.by("farm"), session, SessionState.LIVE, cause="its agent is back")
    snapshot = load(tx, session, request)
    # First what changes attempts, fences and the set of devices: checks and incidents depend on the result.
    first = reconcile_attempts_and_arrivals(snapshot, request)
    apply_effects(tx, host_id, first)
    if not _keeps_device_rows(first, host_id):
        snapshot = reload_devices(tx, snapshot, request)
    second = reconcile_devices(snapshot, request)
    apply_effects(tx, host_id, second)
    return RequestState(
        is_latest=True,
        facts_wanted=facts_wanted(second, request),
        devices=snapshot.devices if _keeps_device_rows(second, host_id) else None,
    )


def require_open_session(connection: Connection, host_id: HostId, session_id: SessionId) -> Session:
    """Return the session if it is this host's and open (live or silent).

    Raises:
        Forbidden: the session is another host's.
        SessionFenced: there is no such session, or it is not open any more.
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


def _keeps_device_rows(effects: Sequence[Effect], host_id: HostId) -> bool:
    """Tell whether the device rows that were read are current after these effects, apart from `seen_at`."""
    return all(
        all(update.is_unchanged(host_id) for update in effect.updates)
        if isinstance(effect, RecordStatus)
        else isinstance(effect, Progress)
        for effect in effects
    )


def apply_effects(tx: Tx, host_id: HostId, effects: Iterable[Effect]) -> None:
    """Apply effects in their order. Each is a compare-and-set, or changes nothing the second time.

    `FindIncident` and `FinishDeviceAction` read again: they depend on rows that earlier effects wrote.
    """
    for effect in effects:
        _apply_effect(tx, host_id, effect)


def _apply_effect(tx: Tx, host_id: HostId, effect: Effect) -> None:
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
            # Decided here: it depends on the disconnects that the effects before it recorded.
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
        # Keep the values from before the farm first changed these settings.
        earlier = device_actions.find_settings_record(tx.connection, device_action.device_id)
        settings = keep_originals(report.settings, earlier.settings if earlier else ())
        record = DeviceSettingsRecord(
            at=tx.now, kind=device_action.kind, requested_by=device_action.requested_by, settings=settings
        )
        device_actions.put_settings_record(tx.connection, device_action.device_id, record)
