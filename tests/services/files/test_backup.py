"""A backup is one moment of a farm at work; restored into either database, agents go on from there."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from pydantic import SecretStr

from farm.cli.admin.machine_checks import check_database
from farm.config import FarmConfig
from farm.core.errors import Conflict, FarmBusy, FarmFault, NotFound, SessionFenced
from farm.core.jobs.attempt import AttemptState
from farm.core.operations.diagnostic import Severity
from farm.database.engine import Database, create_engine, sqlite_url
from farm.database.migrate import upgrade
from farm.database.tables import metadata
from farm.services.files.backup.backup import Backup, find_backup, make_backup
from farm.services.files.backup.restore import check_empty, restore_backup
from farm.store.operations.database_copy import count_rows, has_rows
from tests.support.database.postgres import PostgresServer
from tests.support.fake_clock import FakeClock
from tests.support.farm.service_fixture import (
    FarmRig,
    HostRig,
    checked_rig,
    good_evidence,
    phase,
    report_body,
)

NewUrl = Callable[[], str]


@pytest.fixture(params=["sqlite", "postgresql"])
def new_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewUrl]:
    """Empty databases to restore into, of each kind."""
    if request.param == "sqlite":
        yield lambda: sqlite_url(tmp_path / "restored" / "farm.sqlite3")
    else:
        server = request.getfixturevalue("postgres")
        with server.database() as name:
            yield lambda: str(server.url(name))


def backed_up(farm: FarmRig, folder: Path) -> Backup:
    return make_backup(farm.database, farm.blobs.folder, folder, farm.clock)


def rows(url: str) -> dict[str, list[object]]:
    """Every value of every row, as Python has it, without what a restore changes."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return {
                table.name: [
                    tuple(row)
                    for row in connection.execute(sa.select(table).order_by(*table.primary_key.columns))
                ]
                for table in metadata.sorted_tables
                if table.name not in ("database_epochs", "events", "sessions", "devices")
            }
    finally:
        engine.dispose()


class Back:
    """A host's agent that met a farm before it was put back."""

    def __init__(self, host: HostRig, farm: FarmRig) -> None:
        self.host = HostRig(farm, host.host_id)
        self.host.phones = {
            name: phone.model_copy(update={"known_fence": phone.cleaned_fence})
            for name, phone in host.phones.items()
        }

    def clean_up(self) -> None:
        """Do what the farm wants of phones that nobody has."""
        for phone in self.host.exchange().clean_ups:
            before = self.host.phones[phone.device_id]
            self.host.phones[phone.device_id] = before.model_copy(update={"cleaned_fence": phone.fence})


def test_a_backup_holds_every_row_and_file_and_both_come_back_as_they_were(
    farm: FarmRig, host: HostRig, tmp_path: Path, new_url: NewUrl
) -> None:
    farm.submit(rounds=1)
    host.run()
    made = backed_up(farm, tmp_path / "backups")
    before = rows(farm.database.engine.url.render_as_string(hide_password=False))
    restored = restore_backup(
        made.folder, new_url(), tmp_path / "restored" / "blobs", farm.clock, actor="user:ann"
    )
    assert rows(new_url()) == before
    assert restored.rows == sum(made.manifest.rows.values())
    assert restored.missing == 0
    kept = farm.blobs.digests()
    assert {path.name for path in (tmp_path / "restored" / "blobs").glob("??/*")} == kept
    assert restored.artifacts == made.manifest.artifacts == len(kept)


@pytest.mark.invariant("I3", "I4", "I7", "I12")
@pytest.mark.fault(44)
def test_agents_go_on_after_a_restore_and_nothing_is_doubled_or_lost_that_they_have(
    farm: FarmRig, host: HostRig, tmp_path: Path, new_url: NewUrl
) -> None:
    matrix = farm.submit(rounds=2)
    first, second = host.exchange().assignments
    host.exchange([phase(first, AttemptState.MEASURING), phase(second, AttemptState.PREPARING)])
    made = backed_up(farm, tmp_path / "backups")

    # The agent reports, and runs on to the end; its farm forgets all of that.
    bodies = {each.attempt_id: report_body(good_evidence(each)) for each in (first, second)}
    for each in (first, second):
        host.report_bytes(each.attempt_id, bodies[each.attempt_id])
        host.clean(each)
    forgotten = host.exchange().assignments[0]
    host.report(forgotten.attempt_id, good_evidence(forgotten))
    host.clean(forgotten)
    host.run()
    farm.clock.advance(600)
    restore_backup(made.folder, new_url(), tmp_path / "restored" / "blobs", farm.clock, actor="user:ann")

    with checked_rig(tmp_path / "restored", new_url()) as again:
        again.clock = farm.clock
        back = Back(host, again)
        opened = back.host.restart()
        # What was under way is settled by the reports that the agent still has.
        assert set(opened.reports_wanted) == {first.attempt_id, second.attempt_id}
        for attempt_id in opened.reports_wanted:
            assert back.host.report_bytes(attempt_id, bodies[attempt_id]).counted
        # What the farm never heard of is told from what it knows.
        with pytest.raises(NotFound):
            back.host.report(forgotten.attempt_id, good_evidence(forgotten))
        # No phone gets work before it was cleaned up.
        assert back.host.exchange().assignments == ()
        back.clean_up()
        assert back.host.run() == 8 - 2
        view = again.matrix(matrix)
        assert view.jobs_by_outcome == {"succeeded": 8}
        later = "SELECT attempt_id, fence FROM attempts WHERE attempt_id >= :first"
        given = again.rows(later, first=forgotten.attempt_id)
        assert min(row["attempt_id"] for row in given) > 1_000_000
        assert min(row["fence"] for row in given) > 1_000_000


@pytest.mark.fault(44)
def test_a_run_that_goes_on_over_a_restore_is_adopted(
    farm: FarmRig, host: HostRig, tmp_path: Path, new_url: NewUrl
) -> None:
    farm.submit(rounds=1)
    first, _ = host.exchange().assignments
    made = backed_up(farm, tmp_path / "backups")
    host.exchange([phase(first, AttemptState.MEASURING)])
    restore_backup(made.folder, new_url(), tmp_path / "restored" / "blobs", farm.clock, actor="user:ann")
    with checked_rig(tmp_path / "restored", new_url()) as again:
        back = Back(host, again)
        opened = back.host.restart([phase(first, AttemptState.MEASURING)])
        assert [(order.attempt_id, order.do) for order in opened.orders] == [(first.attempt_id, "continue")]
        assert back.host.report(first.attempt_id, good_evidence(first)).counted


@pytest.mark.invariant("I9")
@pytest.mark.fault(44)
def test_every_session_has_to_be_opened_again_after_a_restore(
    farm: FarmRig, host: HostRig, tmp_path: Path
) -> None:
    made = backed_up(farm, tmp_path / "backups")
    epoch = host.restart().database_epoch
    url = sqlite_url(tmp_path / "restored" / "farm.sqlite3")
    restored = restore_backup(made.folder, url, tmp_path / "restored" / "blobs", farm.clock, actor="user:ann")
    with checked_rig(tmp_path / "restored", url) as again:
        # The session that was open when the backup was made, and the one that was opened since.
        for session_id in (host.session_id, type(host.session_id)(host.session_id - 1)):
            known = HostRig(again, host.host_id)
            known.session_id, known.database_epoch = session_id, epoch
            with pytest.raises(SessionFenced):
                known.exchange()
        opened = Back(host, again).host.restart()
        assert opened.database_epoch == restored.epoch.epoch != epoch
        assert opened.session_id > 1_000_000


def test_what_is_written_while_a_backup_is_made_is_in_it_whole_or_not_at_all(
    farm: FarmRig, host: HostRig, tmp_path: Path
) -> None:
    done = threading.Event()

    def write_on() -> None:
        while not done.is_set():
            farm.submit(rounds=5)

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        made = backed_up(farm, tmp_path / "backups")
    finally:
        done.set()
        writer.join()
    counts = made.manifest.rows
    # A matrix is one transaction: 4 cells of 5 rounds each.
    assert counts["jobs"] - 2 == counts["matrices"] * 4 * 5
    assert counts["cells"] == counts["matrices"] * 4


def test_a_second_backup_into_a_folder_brings_only_new_files(
    farm: FarmRig, host: HostRig, tmp_path: Path
) -> None:
    first = backed_up(farm, tmp_path / "backups")
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "backups" / "artifacts").glob("??/*")}
    farm.variant("int8-full")
    farm.clock.advance(1)
    second = backed_up(farm, tmp_path / "backups")
    now = {path: path.stat().st_mtime_ns for path in (tmp_path / "backups" / "artifacts").glob("??/*")}
    assert files.items() < now.items()
    assert second.manifest.artifacts == first.manifest.artifacts + 1 == len(now)
    assert find_backup(tmp_path / "backups") == second.folder


def test_a_backup_without_artifacts_marks_them_as_expired_when_it_is_restored(
    farm: FarmRig, host: HostRig, tmp_path: Path
) -> None:
    made = make_backup(
        farm.database, farm.blobs.folder, tmp_path / "backups", farm.clock, with_artifacts=False
    )
    url = sqlite_url(tmp_path / "restored" / "farm.sqlite3")
    restored = restore_backup(made.folder, url, tmp_path / "restored" / "blobs", farm.clock, actor="user:ann")
    assert restored.artifacts == 0
    with checked_rig(tmp_path / "restored", url) as again:
        expired = again.rows("SELECT count(*) AS n FROM artifacts WHERE expired_at IS NOT NULL")
        # But for the programs that every farm brings with it.
        assert restored.missing > expired[0]["n"] > 0


@pytest.mark.parametrize("folder", ["/proc/backups", "/dev/null/backups", "/proc", "/dev/null"])
def test_a_place_that_takes_no_backup_is_refused_with_what_to_do(sqlite_farm: FarmRig, folder: str) -> None:
    with pytest.raises(FarmFault, match="cannot be written") as refused:
        backed_up(sqlite_farm, Path(folder))
    assert "another place" in refused.value.hint


def test_a_database_with_anything_in_it_is_not_restored_into(farm: FarmRig, tmp_path: Path) -> None:
    made = backed_up(farm, tmp_path / "backups")
    before = farm.read(count_rows)
    url = farm.database.engine.url.render_as_string(hide_password=False)
    with pytest.raises(Conflict):
        restore_backup(made.folder, url, tmp_path / "restored" / "blobs", farm.clock, actor="user:ann")
    assert farm.read(count_rows) == before


def test_a_database_of_others_is_left_as_it_is(
    sqlite_farm: FarmRig, postgres: PostgresServer, tmp_path: Path
) -> None:
    made = backed_up(sqlite_farm, tmp_path / "backups")
    with postgres.database() as name:
        engine = create_engine(postgres.url(name))
        try:
            with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
                connection.exec_driver_sql("CREATE TABLE invoices (number bigint)")
            with pytest.raises(Conflict, match="invoices"):
                restore_backup(
                    made.folder, postgres.url(name), tmp_path / "blobs", FakeClock(), actor="user:ann"
                )
            assert sa.inspect(engine).get_table_names() == ["invoices"]
        finally:
            engine.dispose()


@pytest.mark.parametrize("table", ["invoices", "jobs"])
def test_a_farm_begins_in_no_database_of_someone_else(postgres: PostgresServer, table: str) -> None:
    with postgres.database() as name:
        engine = create_engine(postgres.url(name))
        try:
            with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
                connection.exec_driver_sql(f"CREATE TABLE {table} (number bigint)")
            with pytest.raises(Conflict, match=f"it has a table {table}"):
                upgrade(engine)
            assert sa.inspect(engine).get_table_names() == [table]
            config = FarmConfig(database_url=SecretStr(postgres.url(name)))
            assert check_database(config).level is Severity.PROBLEM
        finally:
            engine.dispose()


def test_a_look_at_an_empty_database_leaves_it_empty(postgres: PostgresServer) -> None:
    with postgres.database() as name:
        engine = create_engine(postgres.url(name))
        try:
            check_empty(engine)
            assert sa.inspect(engine).get_table_names() == []
        finally:
            engine.dispose()


def test_a_disk_that_is_slower_than_the_server_is_patient_ends_no_backup(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    stood_still = False

    def stand_still(what: str, count: int) -> None:
        nonlocal stood_still
        if not stood_still:
            # By the clock of the database server, which no test moves.
            time.sleep(2 * patience_ms / 1000)
        stood_still = True

    # A busy machine may pause a client between two statements for some of it.
    patience_ms = 1000
    with postgres.database("migrated") as name:
        database = Database(postgres.url(name), stuck_ms=patience_ms)
        try:
            make_backup(database, tmp_path, tmp_path / "b", FakeClock(), progress=stand_still)
        finally:
            database.close()
    assert stood_still


# psycopg cannot close a cursor whose server is gone, and remarks that nobody did.
@pytest.mark.filterwarnings("ignore:.*ServerCursorMixin:pytest.PytestUnraisableExceptionWarning")
def test_a_server_that_goes_away_is_said_as_something_that_passes(
    sqlite_farm: FarmRig, postgres: PostgresServer, tmp_path: Path
) -> None:
    made = backed_up(sqlite_farm, tmp_path / "backups")
    with postgres.database("migrated") as name:
        url = postgres.url(name)

        def go_away(what: str, count: int) -> None:
            postgres.execute(
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            )

        database = Database(url)
        try:
            with pytest.raises(FarmBusy):
                make_backup(database, tmp_path, tmp_path / "b", FakeClock(), progress=go_away)
            assert list((tmp_path / "b").glob("*2*")) == []
            with pytest.raises(FarmBusy):
                restore_backup(
                    made.folder, url, tmp_path / "blobs", FakeClock(), actor="user:ann", progress=go_away
                )
            assert not database.read(has_rows)
        finally:
            database.close()


def test_a_backup_can_be_moved_with_its_artifacts_and_restored_twice(farm: FarmRig, tmp_path: Path) -> None:
    made = backed_up(farm, tmp_path / "backups")
    shutil.move(tmp_path / "backups", tmp_path / "elsewhere")
    moved = tmp_path / "elsewhere" / made.folder.name
    numbers = []
    for name in ("one", "two"):
        farm.clock.advance(60)
        url = sqlite_url(tmp_path / name / "farm.sqlite3")
        restore_backup(moved, url, tmp_path / name / "blobs", farm.clock, actor="user:ann")
        with checked_rig(tmp_path / name, url) as again:
            numbers.append(again.host(f"bench-{name}").session_id)
    # Two lives of one backup give no number twice, unless they give many in a second.
    assert numbers[1] - numbers[0] == 600


def test_numbers_that_people_type_stay_short_after_a_restore(
    farm: FarmRig, host: HostRig, tmp_path: Path, new_url: NewUrl
) -> None:
    for _ in range(4):
        farm.submit(rounds=1)
    made = backed_up(farm, tmp_path / "backups")
    # A farm that is restored a day later may have taken so many matrices meanwhile.
    farm.clock.advance(24 * 3600)
    restore_backup(made.folder, new_url(), tmp_path / "restored" / "blobs", farm.clock, actor="user:ann")
    with checked_rig(tmp_path / "restored", new_url()) as again:
        again.clock = farm.clock
        matrix = again.submit(rounds=1)
        (row,) = again.rows("SELECT min(job_id) AS first FROM jobs WHERE matrix_id = :matrix", matrix=matrix)
        assert 4 + 100 < matrix < 2000
        assert 16 + 100 < row["first"] < 2000


def test_the_log_of_a_database_that_was_moved_away_is_not_left_to_the_new_one(
    sqlite_farm: FarmRig, tmp_path: Path
) -> None:
    made = backed_up(sqlite_farm, tmp_path / "backups")
    place = tmp_path / "restored" / "farm.sqlite3"
    place.parent.mkdir()
    place.with_name("farm.sqlite3-wal").touch()
    with pytest.raises(Conflict, match="sqlite3-wal"):
        restore_backup(
            made.folder, sqlite_url(place), place.parent / "blobs", sqlite_farm.clock, actor="user:ann"
        )
