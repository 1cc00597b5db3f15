"""`farm doctor` tells of certificates and access tokens before they expire."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from farm.cli.admin.expiry_checks import WARN_WITHIN, check_certificate
from farm.cli.admin.machine_checks import check_expiry
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.operations.diagnostic import Severity
from farm.core.operations.role import Role
from farm.core.operations.sign_in import Identity
from farm.database.engine import Database, sqlite_url
from farm.database.transaction import bind_tx
from farm.services.access.people import sign_in_person
from farm.services.access.tokens import issue_access_token
from farm.wire.documents.access import AccessRequest
from tests.support.database.migrated_database import put_migrated

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY_S = 24 * 3600


def config_with_certificate(folder: Path, until: datetime) -> FarmConfig:
    """Settings that name a certificate of the test's own."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(until - timedelta(days=90)).not_valid_after(until)
    certificate = builder.sign(key, hashes.SHA256())
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return FarmConfig(data_dir=folder, tls_cert=folder / "cert.pem", tls_key=folder / "key.pem")


@pytest.mark.parametrize(
    ("left", "level", "said"),
    [
        (WARN_WITHIN + timedelta(seconds=1), Severity.OK, "valid until 2026-03-15"),
        (WARN_WITHIN, Severity.WARNING, "expires at 2026-03-15"),
        (timedelta(0), Severity.PROBLEM, "expired at 2026-03-01"),
    ],
)
def test_a_certificate_is_told_of_before_and_after_it_expires(
    tmp_path: Path, left: timedelta, level: Severity, said: str
) -> None:
    (found,) = check_certificate(config_with_certificate(tmp_path, NOW + left), NOW)
    assert found.level is level
    assert said in found.message


def test_a_file_without_a_certificate_is_a_problem_and_a_farm_without_tls_has_none(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("none")
    config = FarmConfig(data_dir=tmp_path, tls_cert=tmp_path / "cert.pem", tls_key=tmp_path / "key.pem")
    (found,) = check_certificate(config, NOW)
    assert found.level is Severity.PROBLEM
    assert check_certificate(FarmConfig(data_dir=tmp_path), NOW) == []


def test_tokens_that_expire_within_two_weeks_are_named_with_how_to_replace_them(tmp_path: Path) -> None:
    config, now = FarmConfig(data_dir=tmp_path), SystemClock().now()
    put_migrated(config.database_path)
    database = Database(sqlite_url(config.database_path))
    issue = bind_tx(issue_access_token, now=now, actor="user:root")
    requests = (("ci", 13 * DAY_S), ("later", 15 * DAY_S), ("always", None))
    tokens = [
        database.write(issue, AccessRequest(name=name, role=Role.VIEWER, valid_s=valid_s))
        for name, valid_s in requests
    ]
    # A sign-in lasts twelve hours, and is no reason to do anything.
    ann = Identity(issuer="https://idp.example", subject="1", called="ann", role=Role.VIEWER)
    database.write(bind_tx(sign_in_person, now=now), ann)
    database.close()
    (found,) = check_expiry(config)
    assert found.message.startswith(f"{tokens[0].token_id} of ci expires at ")
    assert found.hint == f"farm token rotate {tokens[0].token_id}"


def test_a_farm_without_a_database_has_nothing_that_expires(tmp_path: Path) -> None:
    assert check_expiry(FarmConfig(data_dir=tmp_path)) == []
