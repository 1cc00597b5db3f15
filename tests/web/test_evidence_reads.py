"""Readings of evidence on a farm with tokens: who, what and when, by API and by page."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from farm.api.context import Context
from farm.cli.shell.main import main
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.operations.role import Role
from farm.database.tables import events
from farm.database.transaction import bind_tx
from farm.services.access.tokens import issue_access_token
from farm.web.app import create_app_with_pages
from farm.wire.documents.access import AccessRequest
from tests.support.farm.http_farm import served
from tests.web.conftest import fill


@dataclass(frozen=True, slots=True)
class Readers:
    url: str
    context: Context

    def token(self, name: str) -> str:
        issue = bind_tx(issue_access_token, now=self.context.clock.now())
        return self.context.database.write(issue, AccessRequest(name=name, role=Role.VIEWER)).token

    def recorded(self) -> list[tuple[str, str, str]]:
        """Store what was noted; return the readings of the log."""
        self.context.evidence_reads()
        query = (
            sa.select(events.c.actor, events.c.kind, events.c.subject_id)
            .where(events.c.kind.in_(["attempt_evidence_read", "matrix_samples_read"]))
            .order_by(events.c.event_id)
        )
        return [
            (row.actor, row.kind, row.subject_id)
            for row in self.context.database.read(lambda connection: connection.execute(query).all())
        ]


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Readers]:
    folder: Path = tmp_path_factory.mktemp("farm")
    fill(folder)
    app = create_app_with_pages(FarmConfig(data_dir=folder, require_tokens=True), SystemClock())
    with served(app) as (url, _):
        yield Readers(url, app.state.context)


def test_each_reading_is_recorded_once_for_each_caller_by_api_and_page(readers: Readers) -> None:
    ann, ben = ({"Authorization": f"Bearer {readers.token(name)}"} for name in ("ann", "ben"))
    with httpx.Client(base_url=readers.url, trust_env=False, timeout=30) as http:
        for _ in range(3):
            assert http.get("/api/v1/attempts/3", headers=ann).status_code == 200
        assert http.get("/attempts/3/samples.csv", headers=ann).status_code == 200
        assert http.get("/api/v1/attempts/999999", headers=ann).status_code == 404
        assert http.get("/api/v1/matrices/1/samples", headers=ben).status_code == 200
        # What shows no evidence is not recorded.
        assert http.get("/api/v1/matrices/1", headers=ben).status_code == 200
        browser = readers.token("cleo")
        assert http.post("/login", data={"token": browser}).status_code == 303
        assert http.get("/attempts/4", headers={"Accept": "text/html"}).status_code == 200
        assert http.get("/attempts/5/samples.csv").status_code == 200
    seen = [
        ("user:ann", "attempt_evidence_read", "3"),
        ("user:ben", "matrix_samples_read", "1"),
        ("user:cleo", "attempt_evidence_read", "4"),
        ("user:cleo", "attempt_evidence_read", "5"),
    ]
    assert readers.recorded() == seen
    assert readers.recorded() == seen


def test_the_log_is_exported_whole_and_once(
    readers: Readers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_URL", readers.url)
    monkeypatch.setenv("FARM_TOKEN", readers.token("dora"))
    # Several pages of it.
    monkeypatch.setattr("farm.cli.events.events._MAX_LIMIT", 7)
    with pytest.raises(SystemExit) as left:
        main(["events", "--all", "--json"])
    assert left.value.code in (0, None)
    count = readers.context.database.read(
        lambda connection: connection.execute(sa.select(sa.func.count()).select_from(events)).scalar_one()
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines)) == count > 14
    with pytest.raises(SystemExit) as refused:
        main(["events", "--all", "--follow"])
    assert refused.value.code == 2
    assert "--all ends with the newest event" in capsys.readouterr().err
