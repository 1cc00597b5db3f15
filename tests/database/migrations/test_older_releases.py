"""What is stored goes back to an older release, and forward again."""

import json
import os
import zlib

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from farm.core.runs.samples import decode_samples, encode_samples
from farm.database import tables
from farm.database.engine import opened_engine
from farm.database.migrate import upgrade
from tests.database.broken_rows import CHANGE
from tests.database.migrations.downgrades import downgrade
from tests.support.database.postgres import PostgresServer
from tests.support.database.sample_rows import (
    ARTIFACT,
    ATTEMPT,
    DEVICE,
    DIGEST,
    EXTERNAL_RESULT,
    IMPORT,
    MATRIX,
    MEASUREMENT,
    NOW,
    add,
    add_rows,
)


def test_starts_of_a_baseline_in_several_blocks_survive_a_release_that_knows_repeats_only(
    engine: Engine,
) -> None:
    upgrade(engine)
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        add_rows(connection)
        connection.exec_driver_sql("UPDATE matrices SET block_candidates = 6")
        # The baseline's start in another block, and that start again.
        names = "kind, device_id, matrix_id, cell_id, round, priority, state, created_at"
        for repeat in (0, 1):
            connection.exec_driver_sql(
                f"INSERT INTO jobs ({names}, block, repeat, place) SELECT {names}, 2, {repeat}, 1"
                " FROM jobs WHERE kind = 'benchmark' ORDER BY job_id LIMIT 1"
            )
        before = connection.exec_driver_sql("SELECT count(*) FROM jobs").scalar_one()
    downgrade(engine, "0102")
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT repeat FROM jobs ORDER BY job_id DESC LIMIT 2").scalars()
        assert list(rows) == [7, 6]
        assert connection.exec_driver_sql("SELECT count(*) FROM jobs").scalar_one() == before
    upgrade(engine)
    with engine.connect() as connection:
        # What was planned by an older release goes on as it was planned.
        planned = connection.exec_driver_sql("SELECT DISTINCT block_candidates FROM matrices").scalars()
        assert list(planned) == [None]
        assert connection.exec_driver_sql("SELECT count(*) FROM jobs").scalar_one() == before


def test_a_wrong_output_is_no_comparison_for_a_release_without_that_word(engine: Engine) -> None:
    _take_wrong_output_back(engine)


@pytest.mark.long
def test_a_wrong_output_is_no_comparison_for_a_release_without_that_word_on_postgresql(
    postgres: PostgresServer,
) -> None:
    with postgres.database("migrated") as name, opened_engine(postgres.url(name)) as engine:
        _take_wrong_output_back(engine)


def _take_wrong_output_back(engine: Engine) -> None:
    upgrade(engine)
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        add_rows(connection)
        add(connection, tables.attempts, ATTEMPT)
        add(connection, tables.measurements, MEASUREMENT, quality="wrong_output", generation={})
    downgrade(engine, "0110")
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT quality FROM measurements").scalars()
        assert set(rows) == {"implausible"}
        # Its views are there again.
        connection.exec_driver_sql("SELECT count(*) FROM analysis_measurements").scalar_one()
    upgrade(engine)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT quality, generation FROM measurements").all()
        assert set(rows) == {("implausible", None)}


def test_published_numbers_are_gone_for_a_release_without_that_format(engine: Engine) -> None:
    upgrade(engine)
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        for number, format in enumerate(("log", "published"), start=1):
            add(connection, tables.imports, IMPORT, import_id=number, digest=str(number), format=format)
            add(connection, tables.external_results, EXTERNAL_RESULT, result_id=number, import_id=number)
    downgrade(engine, "0116")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT format FROM imports").scalars().all() == ["log"]
        assert connection.exec_driver_sql("SELECT import_id FROM external_results").scalars().all() == [1]
    upgrade(engine)


def test_a_change_that_nothing_explains_is_the_devices_for_a_release_without_that_word(
    engine: Engine,
) -> None:
    _take_unknown_back(engine)


@pytest.mark.long
def test_a_change_that_nothing_explains_is_the_devices_for_an_older_release_on_postgresql(
    postgres: PostgresServer,
) -> None:
    with postgres.database("migrated") as name, opened_engine(postgres.url(name)) as engine:
        _take_unknown_back(engine)


def _take_unknown_back(engine: Engine) -> None:
    upgrade(engine)
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        add_rows(connection)
        add(connection, tables.changes, CHANGE, cause="device")
        add(connection, tables.changes, CHANGE, cause="unknown", is_passing=True)
        add(connection, tables.changes, CHANGE, cause="unknown", delta=-0.1, is_slower=False)
    downgrade(engine, "0114")
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT cause FROM changes ORDER BY change_id").scalars()
        assert list(rows) == ["device", "drift", "device"]
    upgrade(engine)


def test_a_variant_of_several_files_is_its_model_for_a_release_that_knows_one_file(engine: Engine) -> None:
    _take_files_back(engine)


@pytest.mark.long
def test_a_variant_of_several_files_is_its_model_for_a_release_that_knows_one_file_on_postgresql(
    postgres: PostgresServer,
) -> None:
    with postgres.database("migrated") as name, opened_engine(postgres.url(name)) as engine:
        _take_files_back(engine)


def _take_files_back(engine: Engine) -> None:
    """Take variants of one file and of two, with one model file, to the schema of one file, and back."""
    upgrade(engine)
    together, others = "b" * 64, ("v", "m", "r")
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        add_rows(connection)
        add(connection, tables.artifacts, {**ARTIFACT, "digest": "c" * 64})
        keys = ("name", "model", "recipe_digest")
        model = {"path": "", "digest": DIGEST, "size_bytes": 7}
        manifest = {"digest": together, "size_bytes": 9, "files": [model]}
        row = dict(zip(keys, others, strict=True)) | {"digest": together, "created_at": NOW}
        add(connection, tables.variants, {**row, "name_order": 2, "manifest": manifest})
        for path, digest in (("", DIGEST), ("tokenizer.bin", "c" * 64)):
            add(connection, tables.variant_files, {"variant_id": 2, "path": path, "digest": digest})
    downgrade(engine, "0112")
    with engine.connect() as connection:
        rows = connection.execute(sa.select(tables.variants.c["name", "digest", "manifest"])).all()
        assert sorted(tuple(row) for row in rows) == [
            ("v", DIGEST, {}),
            (f"v/{together[:8]}", DIGEST, {"digest": DIGEST, "size_bytes": 7}),
        ]
    upgrade(engine)
    with engine.connect() as connection:
        files = connection.execute(sa.select(tables.variant_files)).all()
        assert sorted(tuple(row) for row in files) == [(1, "", DIGEST), (2, "", DIGEST)]


def test_a_port_of_an_adb_server_becomes_its_address_and_back(engine: Engine) -> None:
    _move_adb_ports(engine)


@pytest.mark.long
def test_a_port_of_an_adb_server_becomes_its_address_and_back_on_postgresql(
    postgres: PostgresServer,
) -> None:
    with postgres.database("migrated") as name, opened_engine(postgres.url(name)) as engine:
        _move_adb_ports(engine)


def _move_adb_ports(engine: Engine) -> None:
    """Take hosts of each kind to the schema before addresses, and back."""
    upgrade(engine)
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        for host, address in (
            ("port", "'tcp:127.0.0.1:5037'"),
            ("socket", "'localfilesystem:/agent/adb/socket'"),
            ("none", "NULL"),
        ):
            connection.exec_driver_sql(
                "INSERT INTO hosts (host_id, state, auto_admit, credential_hash, adb_address, created_at)"
                f" VALUES ('{host}', 'active', false, '{host}', {address}, 0)"
            )
    downgrade(engine, "0107")
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT host_id, adb_port FROM hosts ORDER BY host_id")
        assert [tuple(row) for row in rows] == [("none", None), ("port", 5037), ("socket", None)]
    upgrade(engine)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT host_id, adb_address FROM hosts ORDER BY host_id")
        after = [("none", None), ("port", "tcp:127.0.0.1:5037"), ("socket", None)]
        assert [tuple(row) for row in rows] == after


def test_devices_that_have_facts_are_grouped_as_these_say(engine: Engine) -> None:
    _group_devices(engine)


@pytest.mark.long
def test_devices_that_have_facts_are_grouped_as_these_say_on_postgresql(postgres: PostgresServer) -> None:
    with postgres.database("migrated") as name, opened_engine(postgres.url(name)) as engine:
        _group_devices(engine)


def _group_devices(engine: Engine) -> None:
    """Take devices with facts of several releases, and one without any, to the schema before, and back."""
    upgrade(engine)
    facts = {
        "phone": {"device_model": "Pixel 8", "soc": "Tensor G3", "android": None, "virtual": False},
        "early": {"device_model": "virtual phone", "soc": None, "android": "14"},
        "simulated": {"device_model": "virtual phone", "virtual": True},
        "unknown": None,
    }
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        add_rows(connection)
        for number, (device_id, own) in enumerate(facts.items(), 1):
            if own is not None:
                row = {"facts_id": number, "device_id": device_id, "facts_digest": DIGEST, "taken_at": NOW}
                add(connection, tables.device_facts, {**row, "facts": own})
            known = {"device_id": device_id, "facts_id": None if own is None else number}
            add(connection, tables.devices, DEVICE, **known)
    downgrade(engine, "0113")
    upgrade(engine)
    with engine.connect() as connection:
        columns = tables.devices.c["device_id", "device_model", "soc", "android", "virtual"]
        rows = {row[0]: tuple(row[1:]) for row in connection.execute(sa.select(columns)).all()}
    assert {device_id: rows[device_id] for device_id in facts} == {
        "phone": ("Pixel 8", "Tensor G3", None, False),
        "early": ("virtual phone", None, "14", False),
        "simulated": ("virtual phone", None, None, True),
        "unknown": (None, None, None, None),
    }


def test_samples_are_the_same_for_a_release_that_compresses_them(engine: Engine) -> None:
    _compress_samples(engine)


@pytest.mark.long
def test_samples_are_the_same_for_a_release_that_compresses_them_on_postgresql(
    postgres: PostgresServer,
) -> None:
    with postgres.database("migrated") as name, opened_engine(postgres.url(name)) as engine:
        _compress_samples(engine)


def _compress_samples(engine: Engine) -> None:
    upgrade(engine)
    samples_ns = (13_000, 12_000, 2**62, 0, 14_000)
    packed = encode_samples(samples_ns)
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        add_rows(connection)
        add(connection, tables.attempts, ATTEMPT)
        add(connection, tables.measurements, MEASUREMENT, samples=packed)
    downgrade(engine, "0115")
    with engine.connect() as connection:
        (old,) = connection.exec_driver_sql("SELECT packed_samples_ns FROM analysis_samples").scalars()
    # Zig-zag varints of 13000, -1000 and so on.
    assert zlib.decompress(bytes(old)[1:]).startswith(b"\x90\xcb\x01" + b"\xcf\x0f")
    upgrade(engine)
    with engine.connect() as connection:
        (new,) = connection.execute(sa.select(tables.measurements.c.samples)).scalars()
        rows = connection.exec_driver_sql("SELECT sample_ns FROM analysis_samples ORDER BY iteration")
        assert tuple(rows.scalars()) == decode_samples(new) == samples_ns


def test_matrices_of_an_older_release_have_their_number_of_cells(engine: Engine) -> None:
    upgrade(engine)
    template = {"slots": [{}, {}, {}], "parts": [{"slots": None}, {"slots": [0, 2]}]}
    expanding = {"priority": 0, "variant_ids": [], "program_ids": [], "body": packed(template)}
    with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
        add_rows(connection)
        add(connection, tables.matrices, MATRIX, created_at=NOW)
        add(connection, tables.job_templates, expanding, matrix_id=2)
    downgrade(engine, "0120")
    upgrade(engine)
    with engine.connect() as connection:
        counts = connection.exec_driver_sql("SELECT cell_count FROM matrices ORDER BY matrix_id").scalars()
        assert list(counts) == [1, 5]


def packed(template: dict[str, object]) -> bytes:
    return zlib.compress(json.dumps(template).encode())


@pytest.mark.long
def test_who_may_read_a_view_may_read_the_one_that_replaces_it(postgres: PostgresServer) -> None:
    role = f"reader_{os.getpid()}"
    with postgres.database("migrated") as name, opened_engine(postgres.url(name)) as engine:
        upgrade(engine)
        downgrade(engine, "0115")
        postgres.execute(f'CREATE ROLE "{role}"')
        try:
            with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
                connection.exec_driver_sql(f'GRANT SELECT ON analysis_samples TO "{role}"')
            upgrade(engine)
            with engine.connect() as connection:
                granted = "SELECT has_table_privilege(%s, %s, 'SELECT')"
                of_samples = connection.exec_driver_sql(granted, (role, "analysis_samples")).scalar_one()
                of_others = connection.exec_driver_sql(granted, (role, "analysis_speedups")).scalar_one()
                assert (of_samples, of_others) == (True, False)
        finally:
            with engine.connect().execution_options(farm_writes=True) as connection, connection.begin():
                connection.exec_driver_sql(f'DROP OWNED BY "{role}"')
            postgres.execute(f'DROP ROLE "{role}"')
