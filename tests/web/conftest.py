"""A farm with results, whose pages are served on loopback."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from sqlalchemy.engine import Engine

from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.ids import MatrixId
from farm.core.devices.condition import Condition
from farm.core.runs.evidence import Evidence
from farm.database.transaction import bind_tx
from farm.services.results.interchange.imports import keep_import, read_import, withdraw_import
from farm.web.app import create_app_with_pages
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.results.imports import ImportRequest
from tests.harness.external.samples import FILES
from tests.services.checks.test_in_run_findings import FULL, trace_of
from tests.support.farm.changes import recorded_change
from tests.support.farm.http_farm import served
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, ended, good_evidence, plan_of, torch_output

#: A name as a submitter might try: every page that shows it must show these characters.
HOSTILE = "<script>alert(1)</script>\"'&"


WARM = Condition(taken_at=datetime(2026, 1, 2, tzinfo=UTC), battery_c=31.5, skin_c=33.25)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFarm:
    """A served farm, and what is in it."""

    url: str
    http: httpx.Client
    engine: Engine
    #: Finished with five rounds; its candidate is twice as quick.
    finished: MatrixId
    #: Half of it failed.
    broken: MatrixId
    #: Still queued.
    queued: MatrixId


def import_results(farm: FarmRig) -> None:
    """Import three files of others: of another model, of a model of the farm, and one that is withdrawn."""
    keep = bind_tx(keep_import, now=farm.clock.now(), actor="user:ann")
    for name, model, device in (
        ("executorch_v3.json", None, None),
        ("ai_hub.json", "mobilenet_v2", "virtual-1"),
        ("xctest.log", None, None),
    ):
        asked = ImportRequest.model_construct(name=name, content=FILES[name], model=model, device=device)
        farm.write(keep, read_import(asked, None))
    withdraw = bind_tx(withdraw_import, now=farm.clock.now(), actor="user:ben")
    farm.write(withdraw, 3, f"of another phone {HOSTILE}")


def fill(folder: Path) -> tuple[MatrixId, MatrixId, MatrixId]:
    """Measure matrices on two devices through the farm's services."""
    farm = FarmRig(folder)
    noise = random.Random(5)

    def answer(assignment: Assignment) -> Evidence:
        plan = plan_of(assignment)
        if plan.harness == "device_check":
            return good_evidence(assignment)
        quick = 0.5 if "int8" in str(variants.get(plan.files[-1].digest)) else 1.0
        iterations = int(plan.settings["iter"])
        base = 20_000 * quick * noise.gauss(1, 0.01)
        evidence = ended(assignment, torch_output([base * noise.gauss(1, 0.01) for _ in range(iterations)]))
        # The second device reports no temperatures, and samples nothing of itself.
        if assignment.device_id != "virtual-1":
            return evidence
        return replace(evidence, before=WARM, after=WARM, trace=trace_of(FULL, FULL, FULL))

    def fail(assignment: Assignment) -> Evidence:
        plan = plan_of(assignment)
        if plan.harness != "device_check" and "int8" in str(variants.get(plan.files[-1].digest)):
            return ended(assignment, "", code=1, stderr="terminate: no kernel\n")
        return answer(assignment)

    try:
        host = farm.host()
        for device in ("virtual-1", "virtual-2"):
            host.plug_in(device)
        made = [farm.variant(), farm.variant("int8-core")]
        variants = {variant.manifest.digest: variant.name for variant in made}
        host.earn_health()
        finished = farm.submit(name="two precisions")
        host.run(answer)
        compute_points(farm)
        recorded_change(farm)
        broken = farm.submit(name=HOSTILE)
        host.run(fail)
        queued = farm.submit(name="waits")
        import_results(farm)
    finally:
        farm.close()
    return finished, broken, queued


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageFarm]:
    """A farm that nothing changes."""
    folder = tmp_path_factory.mktemp("pages")
    finished, broken, queued = fill(folder)
    app = create_app_with_pages(FarmConfig(data_dir=folder), SystemClock())
    with served(app) as (url, _), httpx.Client(base_url=url, trust_env=False, timeout=30) as http:
        engine = app.state.context.database.engine
        yield PageFarm(url=url, http=http, engine=engine, finished=finished, broken=broken, queued=queued)


class Elements(HTMLParser):
    """Collects what a strict policy forbids, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.inline: list[str] = []
        self.text: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag == "script" and not names.get("src"):
            self.inline.append("script")
        if tag == "style":
            self.inline.append("style")
        self.inline += [name for name in names if name == "style" or name.startswith("on")]
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.open.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(html: str) -> Elements:
    elements = Elements()
    elements.feed(html)
    return elements


def words_of(answer: httpx.Response) -> str:
    return " ".join(" ".join(parsed(answer.text).text).split())
