"""The schema: every table, with the rule each constraint enforces and the query each index serves."""

from farm.database.tables.columns import UtcTime, is_one_of, metadata, word
from farm.database.tables.device_checks import alarms, golden_runs
from farm.database.tables.event_log import events
from farm.database.tables.files import artifacts, program_files, programs, variants
from farm.database.tables.fleet import (
    access_tokens,
    device_facts,
    devices,
    errands,
    hosts,
    incidents,
    join_tokens,
    sessions,
)
from farm.database.tables.operations import database_epochs, duties
from farm.database.tables.results import measurements, series
from farm.database.tables.work import (
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
