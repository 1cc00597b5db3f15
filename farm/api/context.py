"""The resources of every route: the database, the blobs, the clock, and the held exchanges."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Concatenate, ParamSpec, TypeVar

from fastapi import Depends, Request

from farm.api.state.bodies_in_progress import BodiesInProgress
from farm.api.state.heartbeat_batch import HeartbeatBatch
from farm.api.state.held_exchanges import HeldExchanges
from farm.api.state.refusal_log import RefusalLog
from farm.api.state.report_parser_pool import ReportParserPool
from farm.blobs.disk import DiskBlobs
from farm.clock import Clock
from farm.config import FarmConfig
from farm.core.operations.call_budget import CallBudget
from farm.core.results.settle.report import ParsedReport, ReportAnswer
from farm.database.clock_skew import ClockCheck
from farm.database.engine import Database
from farm.database.group_commit import GroupCommit
from farm.database.transaction import BoundService, Tx, bind_tx
from farm.services.access.evidence_reads import EvidenceReads
from farm.services.access.identity_provider import IdentityProvider
from farm.services.access.token_uses import TokenUses
from farm.services.jobs.plans import RunPlanner
from farm.services.results.settle import settle_reports
from farm.store.jobs.counted_matrices import CountedMatrices

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The farm as its routes see it."""

    config: FarmConfig
    database: Database
    blobs: DiskBlobs
    clock: Clock
    started_at: datetime
    held_exchanges: HeldExchanges = field(default_factory=HeldExchanges)
    clock_check: ClockCheck = field(init=False)
    #: Set when there may be a matrix to expand.
    to_expand: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set when the rounds of a matrix that grows may be over.
    to_grow: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set when something was measured, or points are to be computed again.
    to_compute_points: asyncio.Event = field(default_factory=asyncio.Event)
    bodies: BodiesInProgress = field(default_factory=BodiesInProgress)
    call_budget: CallBudget = field(init=False)
    token_uses: TokenUses = field(init=False)
    evidence_reads: EvidenceReads = field(init=False)
    #: None where people sign in with access tokens only.
    identity_provider: IdentityProvider | None = field(init=False)
    planner: RunPlanner = field(default_factory=RunPlanner)
    counted_matrices: CountedMatrices = field(default_factory=CountedMatrices)
    refused: RefusalLog = field(init=False)
    heartbeats: HeartbeatBatch = field(init=False)
    report_parser: ReportParserPool = field(init=False)
    reports: GroupCommit[ParsedReport, ReportAnswer] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "clock_check", ClockCheck(self.clock))
        object.__setattr__(self, "call_budget", CallBudget(self.config.calls_per_minute))
        object.__setattr__(self, "token_uses", TokenUses(self.database, self.clock))
        object.__setattr__(self, "evidence_reads", EvidenceReads(self.database, self.clock))
        provider = self.config.provider
        signed_in_by = None if provider is None else IdentityProvider(provider, self.clock)
        object.__setattr__(self, "identity_provider", signed_in_by)
        object.__setattr__(self, "refused", RefusalLog(self.database, self.clock))
        object.__setattr__(self, "heartbeats", HeartbeatBatch(self.database, self.clock))
        object.__setattr__(self, "report_parser", ReportParserPool(self.database))
        settling = GroupCommit(
            self.database, settle_reports, size_bytes=lambda report: report.size_in_memory_bytes
        )
        object.__setattr__(self, "reports", settling)

    def bind(self, service: Callable[Concatenate[Tx, P], T], *, actor: str = "farm") -> BoundService[P, T]:
        """Return a service as the database runs it, at this moment."""
        return bind_tx(service, now=self.clock.now(), actor=actor)

    async def change(self, service: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a service at this moment in a transaction that writes, and notify waiting agents."""
        return await self.database.change_async(self.bind(service), *args, **kwargs)


async def _context(request: Request) -> Context:
    # Not a plain function: those are run on a thread each time.
    context: Context = request.app.state.context
    return context


Farm = Annotated[Context, Depends(_context)]
