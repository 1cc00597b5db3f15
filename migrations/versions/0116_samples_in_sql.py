"""Samples that a database decodes in SQL: no compression, and views that have one row an iteration."""

import re
import zlib
from collections.abc import Callable, Iterator

import sqlalchemy as sa
from alembic import op

revision = "0116"
down_revision = "0115"
branch_labels = None
depends_on = None

#: Measurements that are written together.
_BATCH = 2000
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_measurements = sa.table(
    "measurements", sa.column("measurement_id", _ID), sa.column("samples", sa.LargeBinary())
)

#: Both write the same rows; farm.core.runs.samples says how samples are packed. On SQLite, `read` consumes a byte a
#: row: it begins with a byte that is no part of a number, and ends at the checksum.
_SAMPLES_VIEWS = {
    "sqlite": """
        SELECT m.measurement_id, m.cell_id, c.device_id, s.key AS iteration, s.value AS sample_ns,
            AT(m.measured_at) AS measured_at
        FROM measurements m
        JOIN cells c ON c.cell_id = m.cell_id
        JOIN json_each((
            WITH RECURSIVE read(place, byte, shift, number, unit_ns, sample_ns, is_sample) AS (
                SELECT 1, 128, -7, 0, NULL, 0, FALSE
                UNION ALL
                SELECT place + 1,
                    (instr('123456789ABCDEF', substr(hex(substr(m.samples, place + 1, 1)), 1, 1)) << 4)
                        + instr('123456789ABCDEF', substr(hex(substr(m.samples, place + 1, 1)), 2, 1)),
                    CASE WHEN byte < 128 THEN 0 ELSE shift + 7 END,
                    CASE WHEN byte < 128 THEN 0 ELSE number | ((byte & 127) << shift) END,
                    CASE WHEN byte < 128 AND unit_ns IS NULL THEN number | (byte << shift) ELSE unit_ns END,
                    CASE
                        WHEN byte >= 128 OR unit_ns IS NULL THEN sample_ns
                        WHEN (number | (byte << shift)) & 1
                            THEN sample_ns + unit_ns * ~(((number | (byte << shift)) >> 1) & 9223372036854775807)
                        ELSE sample_ns + unit_ns * (((number | (byte << shift)) >> 1) & 9223372036854775807)
                    END,
                    byte < 128 AND unit_ns IS NOT NULL
                FROM read WHERE place <= length(m.samples) - 4
            )
            SELECT json_group_array(sample_ns) FROM read WHERE is_sample
        )) s
        WHERE m.accepted AND m.samples IS NOT NULL
    """,
    "postgresql": """
        SELECT m.measurement_id, m.cell_id, c.device_id, s.iteration, s.sample_ns, AT(m.measured_at) AS measured_at
        FROM measurements m
        JOIN cells c ON c.cell_id = m.cell_id
        CROSS JOIN LATERAL unpacked_samples(m.samples) s
        WHERE m.accepted AND m.samples IS NOT NULL
    """,
}
#: The concatenation copies the bytes once; else each `get_byte` would read all of a long value again.
_FUNCTION = """
    CREATE FUNCTION unpacked_samples(packed bytea) RETURNS TABLE (iteration bigint, sample_ns bigint)
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 50 AS $$
    DECLARE
        bytes bytea := packed || ''::bytea;
        byte bigint;
        shift integer := 0;
        number bigint := 0;
        unit_ns bigint;
    BEGIN
        iteration := 0;
        sample_ns := 0;
        FOR place IN 1 .. length(bytes) - 5 LOOP
            byte := get_byte(bytes, place);
            number := number | ((byte & 127) << shift);
            IF byte >= 128 THEN
                shift := shift + 7;
                CONTINUE;
            END IF;
            IF unit_ns IS NULL THEN
                unit_ns := number;
            ELSE
                sample_ns := sample_ns + unit_ns * (((number >> 1) & 9223372036854775807) # -(number & 1));
                RETURN NEXT;
                iteration := iteration + 1;
            END IF;
            number := 0;
            shift := 0;
        END LOOP;
    END
    $$
"""
_SPEEDUPS_VIEW = """
    SELECT p.matrix_id, p.cell_id, p.device_id, d.label AS device_label, p.series_id, p.baseline_series_id,
        s.model, s.recipe ->> 'precision' AS "precision", s.recipe ->> 'format' AS format, s.backend, s.settings,
        b.recipe ->> 'precision' AS baseline_precision, b.recipe ->> 'format' AS baseline_format,
        b.backend AS baseline_backend, b.settings AS baseline_settings, s.harness,
        p.baseline_ns / p.time_ns AS speedup, p.se_speedup AS {error}, p.rounds, p.left_out AS {left_out},
        p.baseline_ns, p.time_ns AS candidate_ns, p.replica > 1 AS aa, p.newest,
        AT(p.ended_at) AS measured_until
    FROM points p
    JOIN devices d ON d.device_id = p.device_id
    JOIN series s ON s.series_id = p.series_id
    JOIN series b ON b.series_id = p.baseline_series_id
"""
_PACKED_VIEW = """
    SELECT m.measurement_id, c.device_id, m.sample_count, m.samples AS packed_samples_ns
    FROM measurements m JOIN cells c ON c.cell_id = m.cell_id
    WHERE m.accepted AND m.samples IS NOT NULL
"""


def upgrade() -> None:
    _pack_again(_without_compression)
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_FUNCTION)
    _replace_view("analysis_samples", _SAMPLES_VIEWS[op.get_bind().dialect.name])
    _replace_view("analysis_speedups", _SPEEDUPS_VIEW.format(error="se_speedup", left_out="excluded"))


def downgrade() -> None:
    _replace_view("analysis_speedups", _SPEEDUPS_VIEW.format(error="log_error", left_out="left_out"))
    _replace_view("analysis_samples", _PACKED_VIEW)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION unpacked_samples(bytea)")
    _pack_again(_compressed)


def _replace_view(name: str, query: str) -> None:
    of_dialect = {
        "sqlite": r"strftime('%Y-%m-%dT%H:%M:%fZ', \1 / 1e6, 'unixepoch')",
        "postgresql": r"to_timestamp(\1 / 1e6)",
    }
    query = re.sub(r"AT\(([a-z_.]+)\)", of_dialect[op.get_bind().dialect.name], query)
    readers = _readers(name)
    op.execute(f"DROP VIEW {name}")
    op.get_bind().exec_driver_sql(f"CREATE VIEW {name} AS {query}")
    for reader in readers:
        op.execute(f"GRANT SELECT ON {name} TO {reader}")


def _readers(view: str) -> list[str]:
    """Return the roles that may read a view, and lose that with it."""
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return []
    grantees = connection.execute(
        sa.text(
            "SELECT grantee FROM information_schema.role_table_grants WHERE table_schema = current_schema()"
            " AND table_name = :view AND privilege_type = 'SELECT' AND grantee <> current_user"
        ),
        {"view": view},
    ).scalars()
    quote = connection.dialect.identifier_preparer.quote_identifier
    return [name if name == "PUBLIC" else quote(name) for name in grantees]


def _pack_again(packed: Callable[[bytes], bytes]) -> None:
    """Write all samples in another form."""
    connection, number = op.get_bind(), _measurements.c.measurement_id
    query = (
        sa.select(number, _measurements.c.samples)
        .where(_measurements.c.samples.is_not(None), number > sa.bindparam("after"))
        .order_by(number)
        .limit(_BATCH)
    )
    change = (
        sa.update(_measurements)
        .where(number == sa.bindparam("number"))
        .values(samples=sa.bindparam("packed"))
    )
    after = -1
    while rows := connection.execute(query, {"after": after}).all():
        connection.execute(
            change, [{"number": row.measurement_id, "packed": packed(bytes(row.samples))} for row in rows]
        )
        after = rows[-1].measurement_id


def _without_compression(packed: bytes) -> bytes:
    """Version 1 is zlib over differences in nanoseconds; version 2 has a unit before them, a checksum behind."""
    plain = b"\x02\x01" + zlib.decompress(packed[1:])
    return plain + zlib.crc32(plain).to_bytes(4)


def _compressed(packed: bytes) -> bytes:
    unit_ns, *numbers = _numbers(packed[1:-4])
    in_ns = (number * unit_ns if number % 2 == 0 else (number + 1) * unit_ns - 1 for number in numbers)
    return b"\x01" + zlib.compress(b"".join(map(_varint, in_ns)))


def _numbers(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield number
            number = shift = 0


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])
