"""The schema: every table, with the rule each constraint enforces and the query each index serves."""

from farm.database.tables.columns import UtcTime, is_one_of, literal, metadata
from farm.database.tables.files import artifacts, program_files, programs, variants
from farm.database.tables.fleet import (
    access_tokens,
    device_actions,
    device_facts,
    devices,
    hosts,
    incidents,
    join_tokens,
    sessions,
)
from farm.database.tables.operations import alarms, database_epochs, events, leader_leases
from farm.database.tables.results import measurements, reference_runs, series
from farm.database.tables.work import (
    attempts,
    cancellations,
    cells,
    evidence,
    is_live,
    job_templates,
    jobs,
    lazy_expansions,
    matrices,
    rejections,
)

__all__ = [
    "UtcTime",
    "access_tokens",
    "alarms",
    "artifacts",
    "attempts",
    "cancellations",
    "cells",
    "database_epochs",
    "device_actions",
    "device_facts",
    "devices",
    "events",
    "evidence",
    "hosts",
    "incidents",
    "is_live",
    "is_one_of",
    "job_templates",
    "jobs",
    "join_tokens",
    "lazy_expansions",
    "leader_leases",
    "literal",
    "matrices",
    "measurements",
    "metadata",
    "program_files",
    "programs",
    "reference_runs",
    "rejections",
    "series",
    "sessions",
    "variants",
]
