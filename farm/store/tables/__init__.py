"""The schema: every table, with the rule each constraint enforces and the query each index serves."""

from farm.store.tables.catalog import artifacts, program_files, programs, variants
from farm.store.tables.columns import UtcTime, is_one_of, metadata, word
from farm.store.tables.control import database_epochs, duties
from farm.store.tables.fleet import (
    access_tokens,
    device_facts,
    devices,
    errands,
    hosts,
    incidents,
    join_tokens,
    sessions,
)
from farm.store.tables.log import events
from farm.store.tables.phones import alarms, golden_runs
from farm.store.tables.results import measurements, series
from farm.store.tables.work import (
    attempts,
    blueprints,
    cells,
    evidence,
    is_live,
    jobs,
    matrices,
    rejections,
    unfoldings,
)

__all__ = [
    "UtcTime",
    "access_tokens",
    "alarms",
    "artifacts",
    "attempts",
    "blueprints",
    "cells",
    "database_epochs",
    "device_facts",
    "devices",
    "duties",
    "errands",
    "events",
    "evidence",
    "golden_runs",
    "hosts",
    "incidents",
    "is_live",
    "is_one_of",
    "jobs",
    "join_tokens",
    "matrices",
    "measurements",
    "metadata",
    "program_files",
    "programs",
    "rejections",
    "series",
    "sessions",
    "unfoldings",
    "variants",
    "word",
]
