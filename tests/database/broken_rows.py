"""Rows that break a rule of the schema, by the name of the rule."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from farm.database import tables
from tests.support.database.sample_rows import (
    ACCESS_TOKEN,
    ARTIFACT,
    ATTEMPT,
    CELL,
    CHECK,
    DEVICE,
    DIGEST,
    EXTERNAL_RESULT,
    IMPORT,
    INCIDENT,
    JOB,
    MEASUREMENT,
    NOW,
    PHONE,
    PROGRAM,
    SERIES,
    SESSION,
)

Insert = tuple[sa.Table, dict[str, Any]]


FINISHED = {"state": "finished", "outcome": "succeeded", "finished_at": NOW}
EVIDENCE = {
    "attempt_id": 1,
    "report_digest": DIGEST,
    "counted": True,
    "body": b"",
    "body_bytes": 0,
    "received_at": NOW,
}
GROWTH = {
    "matrix_id": 1,
    "device_id": PHONE,
    "first_round": 1,
    "last_round": 5,
    "jobs": 4,
    "queued_jobs": 4,
    "virtual_time": 0,
    "looked_index": -1,
}
LOOK = {
    "cell_id": 1,
    "number": 1,
    "rounds": 5,
    "usable": 5,
    "level": 0.009,
    "spent": 0.009,
    "verdict": "undecided",
    "taken_at": NOW,
}
POINT = {
    "cell_id": 1,
    "matrix_id": 1,
    "device_id": PHONE,
    "series_id": 1,
    "replica": 1,
    "slot": 1,
    "rounds": 1,
    "left_out": 0,
    "time_ns": 1.0,
    "control_level": 0,
    "began_at": NOW,
    "ended_at": NOW,
    "newest": True,
}
COMPARED_POINT = {**POINT, "baseline_series_id": 1, "baseline_slot": 1, "baseline_ns": 1.0}
CHANGE = {
    "cause": "file",
    "scope": {},
    "delta": 0.1,
    "se_delta": 0.01,
    "is_slower": True,
    "before_at": NOW,
    "since_at": NOW,
    "told_at": NOW,
    "recorded_at": NOW,
    "devices": 1,
    "of_devices": 1,
    "versions": [],
    "first_cell_id": 1,
    "is_passing": False,
    "state": "new",
}
ALARM = {
    "kind": "device_silent",
    "subject": "device",
    "subject_id": PHONE,
    "message": "m",
    "hint": "h",
    "raised_at": NOW,
}
GOLDEN = {
    "job_id": 1,
    "device_id": PHONE,
    "reference_key": "Pixel 8",
    "program_digest": DIGEST,
    "value_ns": 1.0,
    "verdict": "in_range",
    "measured_at": NOW,
}
DEVICE_ACTION = {"device_id": PHONE, "kind": "identify", "requested_by": "ann", "requested_at": NOW}
STANDING = {"name": "m", "spec": {}, "submitted_by": "user:ann", "created_at": NOW, "changed_at": NOW}
SUBMITTED = {
    "name": "m",
    "harness": "h",
    "spec": {},
    "rounds": 5,
    "seed": 1,
    "rejected_count": 0,
    "created_at": NOW,
    "submitted_by": "user:ann",
    "request_key": "k",
    "request_digest": DIGEST,
}
HOST_ROW = {"state": "active", "auto_admit": True, "created_at": NOW}


#: The one that the sample rows have already.
VARIANT: dict[str, object] = {
    "name": "v",
    "model": "m",
    "recipe_digest": "r",
    "digest": DIGEST,
    "manifest": {},
    "created_at": NOW,
}

#: What is broken: the rows before, and the row that must be refused.
BROKEN: dict[str, Sequence[Insert]] = {
    "uq_attempts_one_live_per_device": [
        (tables.jobs, {**JOB, "round": 2}),
        (tables.attempts, ATTEMPT),
        (tables.attempts, {**ATTEMPT, "job_id": 2, "fence": 2}),
    ],
    "uq_attempts_one_live_per_job": [
        (tables.attempts, ATTEMPT),
        (tables.attempts, {**ATTEMPT, "device_id": "phone-2"}),
    ],
    "uq_attempts_one_live_per_cpu": [
        (tables.jobs, {**JOB, "round": 2}),
        (tables.attempts, {**ATTEMPT, "cpu_domain": "cpu"}),
        (tables.attempts, {**ATTEMPT, "job_id": 2, "device_id": "phone-2", "cpu_domain": "cpu"}),
    ],
    "uq_attempts_device_id_fence": [
        (tables.attempts, {**ATTEMPT, "state": "lost"}),
        (tables.attempts, ATTEMPT),
    ],
    "uq_sessions_one_live_per_host": [(tables.sessions, {**SESSION, "epoch": 2, "state": "silent"})],
    "uq_sessions_host_id_epoch": [(tables.sessions, {**SESSION, "state": "closed"})],
    "ck_hosts_clock_comparison_is_whole": [
        (tables.hosts, {**HOST_ROW, "host_id": "bench-2", "credential_hash": "y", "clock_ahead_s": 1.0})
    ],
    "uq_hosts_credential_hash": [(tables.hosts, {**HOST_ROW, "host_id": "bench-2", "credential_hash": "x"})],
    "uq_jobs_one_open_check_per_device": [(tables.jobs, CHECK), (tables.jobs, CHECK)],
    "uq_jobs_cell_id_round_block_repeat": [(tables.jobs, JOB)],
    "uq_matrices_one_per_request": [
        (tables.matrices, SUBMITTED),
        (tables.matrices, {**SUBMITTED, "submitted_by": "user:bob"}),
        (tables.matrices, {**SUBMITTED, "request_key": None}),
        (tables.matrices, {**SUBMITTED, "request_key": None}),
        (tables.matrices, SUBMITTED),
    ],
    "uq_standing_matrices_name": [
        (tables.standing_matrices, {**STANDING, "ended_at": NOW}),
        (tables.standing_matrices, STANDING),
        (tables.standing_matrices, STANDING),
    ],
    "uq_cells_matrix_id_cell_index": [(tables.cells, {**CELL, "cell_index": 0})],
    "uq_measurements_one_accepted_per_job": [
        (tables.attempts, {**ATTEMPT, "attempt_id": 1}),
        (tables.attempts, {**ATTEMPT, "state": "lost", "fence": 2, "attempt_id": 2}),
        (tables.measurements, MEASUREMENT),
        (tables.measurements, {**MEASUREMENT, "attempt_id": 2}),
    ],
    "uq_measurements_attempt_id_parser_version_retraction": [
        (tables.attempts, {**ATTEMPT, "attempt_id": 1}),
        (tables.measurements, MEASUREMENT),
        (tables.measurements, {**MEASUREMENT, "accepted": False}),
    ],
    "ck_measurements_retracted_is_withdrawn": [
        (tables.attempts, ATTEMPT),
        (tables.measurements, {**MEASUREMENT, "retraction": 1, "retracted_by": "user:ann"}),
    ],
    "ck_measurements_retracted_is_withdrawn ": [
        (tables.attempts, ATTEMPT),
        (tables.measurements, {**MEASUREMENT, "quality": "withdrawn", "retracted_by": "user:ann"}),
    ],
    "ck_points_time_of_rounds": [(tables.points, {**POINT, "rounds": 0, "newest": False})],
    "ck_points_baseline_of_compared": [(tables.points, {**POINT, "baseline_slot": 1})],
    "ck_points_baseline_of_compared ": [
        (tables.points, {**POINT, "baseline_slot": 1, "baseline_series_id": 1})
    ],
    "uq_points_newest": [
        (tables.cells, {**CELL, "cell_index": 1}),
        (tables.points, COMPARED_POINT),
        (tables.points, {**COMPARED_POINT, "cell_id": 2}),
    ],
    "uq_changes_first_cell": [(tables.changes, CHANGE), (tables.changes, {**CHANGE, "delta": 0.2})],
    "ck_changes_cause_known": [(tables.changes, {**CHANGE, "cause": "weather"})],
    "ck_changes_state_known": [(tables.changes, {**CHANGE, "state": "boring"})],
    "ck_changes_direction_of_size": [(tables.changes, {**CHANGE, "delta": -0.1})],
    "ck_changes_levels_in_order": [(tables.changes, {**CHANGE, "before_at": NOW + timedelta(seconds=1)})],
    "ck_changes_noise_follows": [(tables.changes, {**CHANGE, "cause": "noise"})],
    "ck_changes_passing_unexplained": [(tables.changes, {**CHANGE, "is_passing": True})],
    "ck_changes_devices_of_all": [(tables.changes, {**CHANGE, "devices": 2})],
    "uq_imports_digest": [(tables.imports, IMPORT), (tables.imports, {**IMPORT, "name": "again.json"})],
    "ck_imports_format_known": [(tables.imports, {**IMPORT, "format": "a spreadsheet"})],
    "ck_imports_withdrawn_for_a_reason": [(tables.imports, {**IMPORT, "withdrawn_at": NOW})],
    "uq_external_results_import_id_position": [
        (tables.imports, {**IMPORT, "import_id": 1}),
        (tables.external_results, EXTERNAL_RESULT),
        (tables.external_results, {**EXTERNAL_RESULT, "value": 2.0}),
    ],
    "ck_external_results_statistic_known": [
        (tables.imports, IMPORT),
        (tables.external_results, {**EXTERNAL_RESULT, "statistic": "vibes"}),
    ],
    "ck_confirmations_outcome_known": [
        (tables.changes, CHANGE),
        (tables.confirmations, {"change_id": 1, "outcome": "perhaps", "matrix_id": 1}),
    ],
    "ck_confirmations_matrix_of_measured": [
        (tables.changes, CHANGE),
        (tables.confirmations, {"change_id": 1, "outcome": "running"}),
    ],
    "ck_point_progress_one_row": [
        (tables.point_progress, {"progress_id": 2, "measurement_id": 0, "version": 0})
    ],
    "uq_evidence_attempt_id_report_digest": [
        (tables.attempts, {**ATTEMPT, "attempt_id": 1}),
        (tables.evidence, EVIDENCE),
        (tables.evidence, {**EVIDENCE, "counted": False}),
    ],
    "uq_series_series_digest": [(tables.series, SERIES)],
    "ck_jobs_outcome_exactly_when_finished": [(tables.jobs, {**JOB, "round": 2, "state": "finished"})],
    "ck_jobs_outcome_exactly_when_finished ": [(tables.jobs, {**JOB, "round": 2, "outcome": "failed"})],
    "ck_jobs_benchmark_has_cell": [(tables.jobs, {**JOB, "cell_id": None})],
    "ck_jobs_benchmark_has_cell ": [(tables.jobs, {**CHECK, "cell_id": 1, "matrix_id": 1})],
    "ck_jobs_state_known": [(tables.jobs, {**JOB, "round": 2, "state": "paused"})],
    "ck_jobs_kind_known": [(tables.jobs, {**CHECK, "kind": "other"})],
    "ck_jobs_outcome_known": [(tables.jobs, {**JOB, **FINISHED, "round": 2, "outcome": "fine"})],
    "ck_attempts_state_known": [(tables.attempts, {**ATTEMPT, "state": "thinking"})],
    "ck_attempts_outcome_known": [(tables.attempts, {**ATTEMPT, "outcome": "fine"})],
    "ck_hosts_state_known": [
        (tables.hosts, {**HOST_ROW, "host_id": "b", "credential_hash": "y", "state": "gone"})
    ],
    "ck_hosts_max_runs_positive": [
        (tables.hosts, {**HOST_ROW, "host_id": "b", "credential_hash": "y", "max_runs": 0})
    ],
    "ck_sessions_state_known": [(tables.sessions, {**SESSION, "epoch": 2, "state": "gone"})],
    "ck_devices_presence_known": [(tables.devices, {**DEVICE, "device_id": "p", "presence": "near"})],
    "ck_devices_health_known": [(tables.devices, {**DEVICE, "device_id": "p", "health": "fine"})],
    "ck_devices_admin_known": [(tables.devices, {**DEVICE, "device_id": "p", "admin": "maybe"})],
    "ck_artifacts_digest_is_sha256": [(tables.artifacts, {**ARTIFACT, "digest": "incomplete"})],
    "ck_evidence_body_until_expired": [
        (tables.attempts, ATTEMPT),
        (tables.evidence, {**EVIDENCE, "body": None}),
    ],
    "ck_evidence_body_until_expired ": [
        (tables.attempts, ATTEMPT),
        (tables.evidence, {**EVIDENCE, "expired_at": NOW, "expired_by": "1 day"}),
    ],
    "ck_evidence_expired_by_a_rule": [
        (tables.attempts, ATTEMPT),
        (tables.evidence, {**EVIDENCE, "body": None, "expired_at": NOW}),
    ],
    "ck_evidence_expired_by_a_rule ": [
        (tables.attempts, ATTEMPT),
        (tables.evidence, {**EVIDENCE, "expired_by": "1 day"}),
    ],
    "ck_devices_reservation_has_owner": [
        (tables.devices, {**DEVICE, "device_id": "p", "reserved_until": NOW})
    ],
    "ck_devices_reservation_has_owner ": [
        (tables.devices, {**DEVICE, "device_id": "p", "reserved_by": "ann"})
    ],
    "uq_devices_label": [
        (tables.devices, {**DEVICE, "device_id": "p", "label": "shelf 1"}),
        (tables.devices, {**DEVICE, "device_id": "q", "label": "shelf 1"}),
    ],
    "ck_device_actions_kind_known": [(tables.device_actions, {**DEVICE_ACTION, "kind": "polish"})],
    "ck_device_actions_finished_exactly_one_way": [
        (tables.device_actions, {**DEVICE_ACTION, "finished_at": NOW})
    ],
    "ck_device_actions_finished_exactly_one_way ": [
        (tables.device_actions, {**DEVICE_ACTION, "done": "woke it"})
    ],
    "uq_device_actions_one_open_per_kind": [
        (tables.device_actions, DEVICE_ACTION),
        (tables.device_actions, DEVICE_ACTION),
    ],
    "ck_access_tokens_role_known": [(tables.access_tokens, {**ACCESS_TOKEN, "role": "king"})],
    "uq_incidents_one_open_per_kind": [(tables.incidents, INCIDENT), (tables.incidents, INCIDENT)],
    "ck_reference_runs_verdict_known": [(tables.reference_runs, {**GOLDEN, "verdict": "lovely"})],
    "ck_reference_runs_unfit_has_reasons": [(tables.reference_runs, {**GOLDEN, "verdict": "unfit"})],
    "uq_reference_runs_job_id": [(tables.reference_runs, GOLDEN), (tables.reference_runs, GOLDEN)],
    "ck_alarms_kind_known": [(tables.alarms, {**ALARM, "kind": "boredom"})],
    "ck_alarms_cleared_has_actor": [(tables.alarms, {**ALARM, "cleared_at": NOW})],
    "uq_alarms_one_open_per_kind": [(tables.alarms, ALARM), (tables.alarms, ALARM)],
    "ck_measurements_quality_known": [
        (tables.attempts, ATTEMPT),
        (tables.measurements, {**MEASUREMENT, "quality": "fine"}),
    ],
    "ck_measurements_kind_known": [
        (tables.attempts, ATTEMPT),
        (tables.measurements, {**MEASUREMENT, "kind": "guess"}),
    ],
    "uq_device_facts_device_id_facts_digest": [
        (tables.device_facts, {"device_id": "p", "facts_digest": "d", "facts": {}, "taken_at": NOW}),
        (tables.device_facts, {"device_id": "p", "facts_digest": "d", "facts": {}, "taken_at": NOW}),
    ],
    "uq_variants_name_digest": [(tables.variants, {**VARIANT, "name_order": 2})],
    "ix_variants_name": [(tables.variants, {**VARIANT, "digest": "b" * 64})],
    "uq_programs_harness_abi_digest": [(tables.programs, PROGRAM)],
    "ck_round_growths_queued_no_more_than_all": [(tables.round_growths, {**GROWTH, "queued_jobs": 5})],
    "ck_looks_stopped_known": [(tables.looks, {**LOOK, "stopped": "bored"})],
    "ck_looks_level_is_spent": [(tables.looks, {**LOOK, "spent": None})],
    "ck_looks_look_or_stop": [(tables.looks, {**LOOK, "level": None, "spent": None})],
    "ck_lazy_expansions_expanded_fewer_than_all": [
        (
            tables.lazy_expansions,
            {
                "matrix_id": 1,
                "device_id": PHONE,
                "jobs": 5,
                "expanded_jobs": 5,
                "first_virtual_time": 0,
                "last_virtual_time": 4,
            },
        )
    ],
}
