"""Sweeps that nobody asked for: they do not believe a clock that jumped."""

from dataclasses import replace
from datetime import timedelta

import structlog

from farm.blobs.disk import DiskBlobs
from farm.clock import Clock
from farm.core.operations.retention import StorageRules
from farm.database.engine import Database
from farm.services.files.retention import SweepResult, sweep_storage

_log = structlog.get_logger(__name__)

#: What a wall clock may gain on the time that passed since the farm started. It gains while a machine sleeps,
#: too: then output is kept for longer than it had to be.
_MAX_CLOCK_JUMP = timedelta(days=1)


class Sweeper:
    """Enforces the limits whenever called.

    Output that went by age does not come back. So while the wall clock is ahead of the time that passed, by
    more than corrections explain, none goes by age; a farm that is started anew believes its clock again.
    """

    def __init__(self, database: Database, blobs: DiskBlobs, rules: StorageRules, clock: Clock) -> None:
        self._database = database
        self._blobs = blobs
        self._rules = rules
        self._clock = clock
        self._started_at, self._started_s = clock.now(), clock.monotonic()

    def __call__(self) -> SweepResult:
        """Sweep once; raises like `sweep_storage`."""
        rules = self._rules
        passed = timedelta(seconds=self._clock.monotonic() - self._started_s)
        ahead = self._clock.now() - self._started_at - passed
        if rules.evidence_keep_days is not None and ahead > _MAX_CLOCK_JUMP:
            _log.warning(
                "clock_jumped", ahead_s=ahead.total_seconds(), hint="nothing expires by age meanwhile"
            )
            rules = replace(rules, evidence_keep_days=None)
        return sweep_storage(self._database, self._blobs, rules, self._clock)
