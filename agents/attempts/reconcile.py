"""Pure reconciliation of the farm's answer with the active attempts."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.outbox.attempt_journal import StartBlockers
from farm.core.base.ids import AttemptId, DeviceId
from farm.core.jobs.attempt import AttemptState
from farm.wire.agents.protocol import Assignment, Exchange, ExchangeAnswer

#: The phases in which an attempt can still be stopped.
STOPPABLE = (AttemptState.CLAIMED, AttemptState.PREPARING, AttemptState.MEASURING)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentExchange:
    """An exchange that is being answered, with the monotonic time at which it was sent."""

    exchange: Exchange
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDecision:
    """The attempts to start, to stop and to forget."""

    start: tuple[Assignment, ...] = ()
    #: No longer wanted by the farm: stop them and clean up.
    stop: tuple[AttemptId, ...] = ()
    #: Returned, and the farm has recorded it.
    forget: tuple[AttemptId, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether it changes no attempt."""
        return not (self.start or self.stop or self.forget)


def reconcile(
    sent: SentExchange, answer: ExchangeAnswer, start_blockers: StartBlockers, *, now_s: float
) -> AttemptDecision:
    """Compare the answer's full list with the attempts that the exchange reported.

    An answer to another exchange changes nothing. An attempt that was not named in the exchange is never
    stopped: the farm could not have known it.
    """
    if answer.seq != sent.exchange.seq:
        return AttemptDecision()
    wanted = {assignment.attempt_id for assignment in answer.assignments}
    unwanted = [report for report in sent.exchange.attempts if report.attempt_id not in wanted]
    in_time = now_s - sent.at_s <= answer.start_within_s
    return AttemptDecision(
        start=startable_assignments(answer.assignments, start_blockers) if in_time else (),
        # Evidence in the spool is sent in any case; the farm's answer to the report ends the attempt.
        stop=tuple(report.attempt_id for report in unwanted if report.phase in STOPPABLE),
        forget=tuple(report.attempt_id for report in unwanted if report.phase is AttemptState.RETURNED),
    )


def startable_assignments(
    assignments: Sequence[Assignment], start_blockers: StartBlockers
) -> tuple[Assignment, ...]:
    """Return the assignments that can begin: with a plan, on a free device, with a fence above all before.

    The fence keeps an attempt from being run twice when the answer to an older exchange arrives late. At most
    one per device.
    """
    startable: dict[DeviceId, Assignment] = {}
    for assignment in sorted(assignments, key=lambda assignment: assignment.fence, reverse=True):
        device = assignment.device_id
        if assignment.plan is None or device in start_blockers.busy or device in startable:
            continue
        if assignment.fence > start_blockers.fence_by_device.get(device, 0):
            startable[device] = assignment
    return tuple(startable.values())
