"""A change of a file or a program is confirmed by the old one against the new one, once."""

import math
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from farm.core.base.ids import Digest, MatrixId, digest_of
from farm.core.matrices.standing import STANDING_PRIORITY
from farm.core.models.variant import Variant
from farm.core.programs.bundle import single_file
from farm.core.results.history.bisect import LogChange
from farm.core.results.history.confirmation import ConfirmationOutcome, judge_confirmation
from farm.core.results.history.recorded_change import ChangeCause, ChangedPart, ChangedVersion, ChangeState
from farm.core.runs.evidence import Evidence
from farm.database.transaction import Tx, bind_tx
from farm.presentation.changes import confirmation_text
from farm.services.devices.admin import retire
from farm.services.periodic.confirmations import ConfirmationSweep, begin_confirmation
from farm.services.results.history.changes import change_detail, decide
from farm.services.results.round_growth import find_next_growth, grow_next
from farm.store.files.artifacts import expire_artifacts, put_artifact
from farm.store.files.programs import put_program
from farm.store.results.history.changes import find_change
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.results.changes import ChangeStateRequest, ConfirmationView
from tests.support.farm.changes import recorded_change
from tests.support.farm.direct_calls import cancel_matrix
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, plan_of

#: By file, how many times as long it takes.
Factors = Mapping[Digest, float]


class KilledError(Exception):
    """The process ends here."""


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


@pytest.fixture
def programs(farm: FarmRig, files: tuple[Variant, Variant]) -> tuple[Digest, Digest]:
    """The old and the new program; what was measured last, was measured with the new one."""
    (row,) = farm.rows(
        "SELECT digest FROM programs WHERE harness = 'speed_benchmark_torch' AND abi = 'x86_64'"
    )
    return Digest(row["digest"]), new_program(farm)


def new_program(farm: FarmRig, **changes: Any) -> Digest:
    """Register a program that new matrices run instead of the previous one, and measure with it."""
    content = b"a newer program"
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.clock.advance(1)
    farm.write(bind_tx(put_artifact, now=farm.clock.now()), digest, len(content))
    put = farm.write(
        bind_tx(put_program, now=farm.clock.now()),
        harness="speed_benchmark_torch",
        abi="x86_64",
        bundle=single_file("speed_benchmark_torch", digest, len(content)),
        **changes,
    )
    return put.digest


def change_of_program(farm: FarmRig, digests: tuple[Digest, Digest]) -> int:
    """The number of a recorded regression of the program."""
    old, new = digests
    versions = [ChangedVersion(part=ChangedPart.PROGRAM, old=old, new=new)]
    change_id = recorded_change(farm, cause=ChangeCause.PROGRAM, versions=versions)
    assert change_id is not None
    return change_id


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
    factor = math.prod(factors.get(file.digest, 1.0) for file in plan.files)
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


def test_a_change_of_a_program_is_confirmed_by_both_programs_with_one_file(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant], programs: tuple[Digest, Digest]
) -> None:
    farm.submit()
    host.run()
    change_id = change_of_program(farm, programs)
    sweep(farm)
    matrix = farm.matrix(begun(farm, change_id))
    old, new = programs
    assert [(cell.program_digest, cell.baseline is None) for cell in matrix.cell_list] == [
        (old, True),
        (new, False),
    ]
    assert {cell.variant_digest for cell in matrix.cell_list} == {files[1].manifest.digest}
    assert [cell.model for cell in matrix.cell_list] == [f"mobilenet_v2-{own[:8]}" for own in programs]
    (row,) = farm.rows("SELECT MAX(priority) AS priority FROM jobs WHERE matrix_id = :m", m=matrix.matrix_id)
    assert row["priority"] == STANDING_PRIORITY
    # The slower one is the program that was registered last: its file is known by what it is made of.
    run(farm, host, {digest_of(b"a newer program"): 1.2})
    sweep(farm)
    view = confirmation(farm, change_id)
    assert view is not None
    assert (view.outcome, view.device_id) == (ConfirmationOutcome.CONFIRMED, "phone-1")
    assert view.ratio == pytest.approx(1.2, rel=0.02)
    assert confirmation_text(view).startswith("confirmed: 1.2")


def test_a_program_that_changes_nothing_is_not_confirmed(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant], programs: tuple[Digest, Digest]
) -> None:
    farm.submit()
    host.run()
    change_id = change_of_program(farm, programs)
    sweep(farm)
    run(farm, host, {})
    sweep(farm)
    view = confirmation(farm, change_id)
    assert view is not None
    assert view.outcome is ConfirmationOutcome.NOT_CONFIRMED


def test_a_farm_that_is_killed_after_it_began_begins_no_second_matrix_of_a_program(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant], programs: tuple[Digest, Digest]
) -> None:
    farm.submit()
    host.run()
    change = farm.read(find_change, change_of_program(farm, programs))
    assert change is not None

    def killed(tx: Tx) -> None:
        begin_confirmation(tx, change)
        raise KilledError

    with pytest.raises(KilledError):
        farm.write(bind_tx(killed, now=farm.clock.now()))
    count = "SELECT COUNT(*) AS count FROM matrices WHERE name LIKE 'confirm change%'"
    assert farm.rows(count) == [{"count": 0}]
    for _ in range(2):
        sweep(farm)
    assert farm.rows(count) == [{"count": 1}]


@pytest.mark.parametrize("what", ["old program deleted", "flag unknown to the old program"])
def test_a_program_that_cannot_do_the_same_any_more_confirms_nothing(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant], programs: tuple[Digest, Digest], what: str
) -> None:
    farm.submit(settings={"use_bundled_input": 1} if what.startswith("flag") else {})
    host.run()
    if what.startswith("flag"):
        statement = sa.text("UPDATE programs SET missing_flags = '[\"use_bundled_input\"]' WHERE digest = :d")
        farm.write(lambda connection: connection.execute(statement, {"d": programs[0]}))
    else:
        (row,) = farm.rows(
            "SELECT f.digest FROM program_files AS f JOIN programs AS p ON p.program_id = f.program_id"
            " WHERE p.digest = :d AND p.harness = 'speed_benchmark_torch' AND p.abi = 'x86_64'",
            d=programs[0],
        )
        farm.write(bind_tx(expire_artifacts, now=farm.clock.now()), [Digest(row["digest"])], cause="test")
    change_id = change_of_program(farm, programs)
    sweep(farm)
    view = confirmation(farm, change_id)
    assert view is not None
    assert (view.outcome, view.matrix_id) == (ConfirmationOutcome.IMPOSSIBLE, None)
    expected = "has no flag --use_bundled_input" if what.startswith("flag") else "was deleted"
    assert expected in confirmation_text(view)


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
    "values",
    [
        {"cause": ChangeCause.OS},
        {"cause": ChangeCause.DEVICE},
        {"told_days_ago": 8},
        {"state": ChangeState.EXPECTED},
    ],
)
def test_what_has_no_two_versions_to_run_or_is_old_or_judged_is_left_alone(
    farm: FarmRig, host: HostRig, files: tuple[Variant, Variant], values: dict[str, Any]
) -> None:
    state, days = values.get("state"), values.get("told_days_ago", 0)
    cause = values.get("cause", ChangeCause.FILE)
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
