"""A change of a model file is confirmed by the old file against the new one, once."""

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from farm.core.base.ids import Digest, MatrixId
from farm.core.matrices.standing import STANDING_PRIORITY
from farm.core.models.variant import Variant
from farm.core.results.history.bisect import LogChange
from farm.core.results.history.changes.points import Cause
from farm.core.results.history.confirmation import ConfirmationOutcome, judge_confirmation
from farm.core.results.history.recorded_change import ChangedPart, ChangedVersion, ChangeState
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.presentation.changes import confirmation_text
from farm.services.devices.admin import retire
from farm.services.periodic.confirmations import ConfirmationSweep, begin_confirmation
from farm.services.results.history.changes import change_detail, decide
from farm.services.results.round_growth import find_next_growth, grow_next
from farm.store.files.artifacts import expire_artifacts
from farm.store.results.history.changes import find_change
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.results.changes import ChangeStateRequest, ConfirmationView
from tests.support.farm.changes import recorded_change
from tests.support.farm.direct_calls import cancel_matrix
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, plan_of

#: By file, how many times as long it takes.
Factors = Mapping[Digest, float]


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    host = farm.host()
    host.plug_in("phone-1")
    host.earn_health()
    return host


@pytest.fixture
def files(farm: FarmRig, host: HostRig) -> tuple[Variant, Variant]:
    """The old and the new file of int8; the new one was measured last."""
    farm.variant("float32")
    old = farm.variant("int8-core")
    new = farm.variant("int8-core", edition="2")
    farm.submit()
    host.run()
    return old, new


def change_of(farm: FarmRig, files: tuple[Variant, Variant], **values: Any) -> int:
    """The number of a recorded regression of the file."""
    old, new = (file.manifest.digest for file in files)
    versions = [ChangedVersion(part=ChangedPart.FILE, old=old, new=new)]
    change_id = recorded_change(farm, **{"versions": versions, **values})
    assert change_id is not None
    return change_id


def evidence(factors: Factors, random: Random, assignment: Assignment) -> Evidence:
    plan = plan_of(assignment)
    if plan.harness == "device_check":
        return good_evidence(assignment)
    factor = factors.get(plan.file("model").digest, 1.0)
    return good_evidence(assignment, sample_us=1000.0 * factor * random.gauss(1.0, 0.002))


def run(farm: FarmRig, host: HostRig, factors: Factors) -> None:
    """Run, and grow, until nothing is left to do."""
    random = Random(2)
    while host.run(lambda assignment: evidence(factors, random, assignment)):
        while (due := farm.read(find_next_growth)) is not None:
            farm.write(bind_tx(grow_next, now=farm.clock.now()), due)


def sweep(farm: FarmRig) -> None:
    ConfirmationSweep(farm.database, farm.clock)()


def confirmation(farm: FarmRig, change_id: int) -> ConfirmationView | None:
    return farm.read(change_detail, change_id).confirmation


def begun(farm: FarmRig, change_id: int) -> MatrixId:
    view = confirmation(farm, change_id)
    assert view is not None
    assert view.outcome is ConfirmationOutcome.RUNNING
    assert view.matrix_id is not None
    return view.matrix_id


def test_a_change_that_is_there_is_confirmed_with_its_size(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant]
) -> None:
    change_id = change_of(farm, files)
    sweep(farm)
    matrix = farm.matrix(begun(farm, change_id))
    old, new = (file.manifest.digest for file in files)
    assert [(cell.variant_digest, cell.baseline is None) for cell in matrix.cell_list] == [
        (old, True),
        (new, False),
    ]
    # Of names of their own: the history of the name has no old file again.
    assert {cell.model for cell in matrix.cell_list} == {
        f"mobilenet_v2-{digest[:8]}" for digest in (old, new)
    }
    assert (matrix.submitted_by, matrix.max_rounds) == ("farm", 40)
    (row,) = farm.rows("SELECT MAX(priority) AS priority FROM jobs WHERE matrix_id = :m", m=matrix.matrix_id)
    assert row["priority"] == STANDING_PRIORITY
    sweep(farm)
    assert begun(farm, change_id) == matrix.matrix_id
    run(farm, host, {new: 1.2})
    sweep(farm)
    view = confirmation(farm, change_id)
    assert view is not None
    assert (view.outcome, view.device_id) == (ConfirmationOutcome.CONFIRMED, "phone-1")
    assert view.ratio == pytest.approx(1.2, rel=0.02)
    text = confirmation_text(view)
    assert text.startswith("confirmed: 1.2")
    assert text.endswith(f" on phone-1 (matrix {matrix.matrix_id})")
    sweep(farm)
    assert confirmation(farm, change_id) == view


@pytest.mark.parametrize(
    ("factor", "outcome"),
    [(1.0, ConfirmationOutcome.NOT_CONFIRMED), (0.8, ConfirmationOutcome.NOT_CONFIRMED)],
)
def test_a_change_that_is_not_there_is_not_confirmed(
    farm: FarmRig,
    host: HostRig,
    files: tuple[Variant, Variant],
    factor: float,
    outcome: ConfirmationOutcome,
) -> None:
    change_id = change_of(farm, files)
    sweep(farm)
    run(farm, host, {files[1].manifest.digest: factor})
    sweep(farm)
    view = confirmation(farm, change_id)
    assert view is not None
    assert view.outcome is outcome


def test_two_farm_processes_begin_one_matrix(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant]
) -> None:
    change = farm.read(find_change, change_of(farm, files))
    assert change is not None
    for _ in range(2):
        farm.write(bind_tx(begin_confirmation, now=farm.clock.now()), change)
    (row,) = farm.rows("SELECT COUNT(*) AS count FROM matrices WHERE name LIKE 'confirm change%'")
    assert row["count"] == 1


def test_a_cancelled_matrix_measured_nothing(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant]
) -> None:
    change_id = change_of(farm, files)
    sweep(farm)
    matrix_id = begun(farm, change_id)
    farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user:ann"), matrix_id)
    sweep(farm)
    view = confirmation(farm, change_id)
    assert view is not None
    assert (view.outcome, view.ratio) == (ConfirmationOutcome.NOT_MEASURED, None)


def test_what_cannot_be_measured_is_said_with_the_reason(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant]
) -> None:
    change_id = change_of(farm, files)
    digests = [files[0].manifest.digest]
    farm.write(bind_tx(expire_artifacts, now=farm.clock.now()), digests, cause="test")
    sweep(farm)
    view = confirmation(farm, change_id)
    assert view is not None
    assert (view.outcome, view.matrix_id) == (ConfirmationOutcome.IMPOSSIBLE, None)
    assert "was deleted" in confirmation_text(view)


def test_a_device_that_is_retired_confirms_nothing(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant]
) -> None:
    change_id = change_of(farm, files)
    request = OperatorRequest(by="ann", reason="broken")
    farm.write(bind_tx(retire, now=farm.clock.now()), "phone-1", request)
    sweep(farm)
    view = confirmation(farm, change_id)
    assert view is not None
    assert "no device that shows it" in (view.reason or "")


@pytest.mark.parametrize(
    "values", [{"cause": Cause.OS}, {"told_days_ago": 8}, {"state": ChangeState.EXPECTED}]
)
def test_what_is_no_change_of_a_file_or_old_or_judged_is_left_alone(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant], values: dict[str, Any]
) -> None:
    state, days = values.get("state"), values.get("told_days_ago", 0)
    cause = values.get("cause", Cause.FILE)
    change_id = change_of(farm, files, cause=cause)
    if state is not None:
        request = ChangeStateRequest(state=state, reason="it is meant so")
        farm.write(bind_tx(decide, now=farm.clock.now(), actor="user:ann"), change_id, request)
    farm.clock.advance(days * 86400)
    sweep(farm)
    assert confirmation(farm, change_id) is None


@pytest.mark.parametrize(
    ("value", "half_width", "outcome"),
    [
        (0.1, 0.05, ConfirmationOutcome.CONFIRMED),
        (-0.1, 0.05, ConfirmationOutcome.NOT_CONFIRMED),
        (0.005, 0.01, ConfirmationOutcome.NOT_CONFIRMED),
        (0.05, 0.06, ConfirmationOutcome.UNDECIDED),
    ],
)
def test_the_direction_of_the_change_is_confirmed(
    value: float, half_width: float, outcome: ConfirmationOutcome
) -> None:
    margin = math.log(1.02)
    change = LogChange(value=value, half_width=half_width)
    assert judge_confirmation(change, is_slower=True, margin=margin) is outcome
    mirrored = LogChange(value=-value, half_width=half_width)
    assert judge_confirmation(mirrored, is_slower=False, margin=margin) is outcome
    assert judge_confirmation(None, is_slower=True, margin=margin) is ConfirmationOutcome.NOT_MEASURED
