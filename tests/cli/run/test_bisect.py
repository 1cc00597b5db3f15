"""`farm bisect`: which versions it searches, what it compares, and how it goes on."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from farm.cli.files.local_variants import manifest_of_file
from farm.cli.run.bisect_search import BisectOptions, BisectSearch
from farm.cli.run.versions import find_version
from farm.client.farm_client import FarmClient
from farm.core.base.ids import Digest, MatrixId, VariantId, digest_of
from farm.core.devices.device import Health
from farm.core.models.variant import Format, Manifest, Precision, Recipe, TensorSpec, Variant
from farm.core.results.history.bisect import VersionResult
from farm.core.runs.evidence import Evidence
from farm.wire.agents.protocol import Assignment, ExchangeAnswer
from farm.wire.documents.devices import OperatorRequest
from farm.wire.documents.matrices.matrices import MatrixView
from farm.wire.documents.results.bisect import BisectComparison, BisectView
from tests.cli.run.test_run import run
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import ended, good_evidence, model_file, phone, plan_of, report_body
from tests.support.models import onnx_samples as onnx

HARNESS = "speed_benchmark_torch"
#: Microseconds of a start by digest of its file; None: it crashes.
Times = Mapping[Digest, float | None]


def registered(client: FarmClient, folder: Path, *, versions: int, model: str = "net") -> list[Variant]:
    """Versions of one name, in order."""
    made = []
    for number in range(versions):
        content = model_file("torchscript", marker=f"{model} {number}")
        file = folder / f"{model}-{number}.pt"
        file.write_bytes(content)
        client.upload(file, digest_of(content))
        manifest = Manifest(
            model=model,
            recipe=Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT),
            digest=digest_of(content),
            size_bytes=len(content),
            backends=("cpu",),
            inputs=(TensorSpec(shape=(1, 3, 8, 8), dtype="float32"),),
            recipe_digest=digest_of(content),
        )
        made.append(client.register_variant(manifest))
    return made


def evidence_by(times: Times) -> Callable[[Assignment], Evidence]:
    """Runs that take as long as their file says, with noise of 1 %."""
    random = Random(3)

    def evidence(assignment: Assignment) -> Evidence:
        plan = plan_of(assignment)
        if plan.harness == "device_check":
            return good_evidence(assignment)
        level = times[plan.file("model").digest]
        if level is None:
            return ended(assignment, "", code=134, stderr="terminate called")
        return good_evidence(assignment, sample_us=level * random.gauss(1.0, 0.01))

    return evidence


@contextmanager
def measuring(farm: HttpFarm, times: Times) -> Iterator[None]:
    """An agent with a phone that runs what it is given, beside the test."""
    agent, is_over, evidence = farm.enroll(), threading.Event(), evidence_by(times)

    def work() -> None:
        device = phone("phone-1")
        while not is_over.is_set():
            answer = agent.exchange(devices=(device,))
            if answer.status_code != 200:
                break
            for assignment in ExchangeAnswer.model_validate_json(answer.content).assignments:
                body = report_body(evidence(assignment))
                agent.post(f"/attempts/{assignment.attempt_id}/report", content=body)
                device = device.model_copy(update={"cleaned_fence": assignment.fence})

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        farm.stop_holding()
        thread.join()


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpFarm]:
    with http_farm(tmp_path / "data") as farm:
        monkeypatch.setenv("FARM_URL", farm.url)
        yield farm


@pytest.fixture
def client(farm: HttpFarm) -> Iterator[FarmClient]:
    with FarmClient(farm.url) as client:
        yield client


OPTIONS = BisectOptions(
    harness=HARNESS,
    settings={"iter": 3},
    backend="cpu",
    devices=("phone-1",),
    margin=0.02,
    rounds=40,
    timeout_s=60.0,
)


def search(client: FarmClient, versions: list[Variant]) -> tuple[BisectView, list[BisectComparison]]:
    told: list[BisectComparison] = []
    return BisectSearch(client, versions, OPTIONS, told.append, poll_s=0.05).run(), told


@pytest.mark.long
def test_the_version_that_is_slower_is_found_and_what_cannot_run_is_stepped_over(
    farm: HttpFarm, client: FarmClient, tmp_path: Path
) -> None:
    versions = registered(client, tmp_path, versions=9)
    times: dict[Digest, float | None] = {
        version.manifest.digest: 1000.0 if place < 6 else 1200.0 for place, version in enumerate(versions)
    }
    times[versions[4].manifest.digest] = None
    with measuring(farm, times):
        wait_for_phone(client)
        view, told = search(client, versions)
        again, told_again = search(client, versions)
    assert (view.outcome, view.last_good.place, view.first_bad.place) == ("found", 6, 7)
    assert view.first_bad.digest == versions[6].manifest.digest
    assert [row.version.place for row in told] == [9, 5, 3, 6, 7]
    assert [row.result for row in told] == [
        VersionResult.BAD,
        VersionResult.NOT_RUN,
        VersionResult.GOOD,
        VersionResult.GOOD,
        VersionResult.BAD,
    ]
    assert (told[1].reason or "").startswith("failed: program crashed (exit code 134, SIGABRT)")
    assert view.change is not None
    assert view.change.ci_high is not None
    assert view.change.ci_high < 1
    # The same search again is what was found, and measures nothing.
    assert again == view
    assert told_again == told
    assert len(list(client.matrices())) == len(told)


def wait_for_phone(client: FarmClient) -> None:
    """Wait until the phone has passed its check."""
    for _ in range(200):
        if any(device.health is Health.GOOD for device in client.devices()):
            return
        threading.Event().wait(0.05)
    raise AssertionError(client.devices())


class Interrupted(FarmClient):
    """A client whose user presses Ctrl-C as soon as something is watched."""

    def matrix(self, matrix_id: MatrixId) -> MatrixView:
        raise KeyboardInterrupt


@pytest.mark.long
def test_an_interrupted_search_goes_on_with_its_matrices_and_makes_cancelled_ones_again(
    farm: HttpFarm, client: FarmClient, tmp_path: Path
) -> None:
    versions = registered(client, tmp_path, versions=3)
    times = {version.manifest.digest: 1000.0 + 200 * (place > 1) for place, version in enumerate(versions)}
    with measuring(farm, times):
        wait_for_phone(client)
        client.change_device("phone-1", "cordon", OperatorRequest(by="ann"))
        with Interrupted(farm.url) as interrupted:
            for _ in range(2):
                with pytest.raises(KeyboardInterrupt):
                    search(interrupted, versions)
        # Nothing is doubled by a second command.
        (queued,) = client.matrices()
        client.cancel_matrix(queued.matrix_id)
        with Interrupted(farm.url) as interrupted, pytest.raises(KeyboardInterrupt):
            search(interrupted, versions)
        (again, _) = client.matrices()
        client.change_device("phone-1", "uncordon", OperatorRequest(by="ann"))
        view, told = search(client, versions)
    assert view.first_bad.place == 3
    assert told[0].matrix_id == again.matrix_id
    assert again.name == queued.name
    assert len(list(client.matrices())) == 3


@pytest.mark.long
def test_ends_that_do_not_differ_leave_nothing_to_find(
    farm: HttpFarm, client: FarmClient, tmp_path: Path
) -> None:
    versions = registered(client, tmp_path, versions=4)
    with measuring(farm, {version.manifest.digest: 1000.0 for version in versions}):
        wait_for_phone(client)
        view, told = search(client, versions)
    assert (view.outcome, len(told)) == ("same", 1)
    assert (view.last_good.place, view.first_bad.place) == (1, 4)


def listed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> list[str]:
    capsys.readouterr()
    assert run("bisect", "--dry-run", "--harness", HARNESS, *words) == 0, capsys.readouterr().err
    return [line.split()[1] for line in capsys.readouterr().out.splitlines()]


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    capsys.readouterr()
    assert run("bisect", "--harness", HARNESS, *words) == 2
    return " ".join(capsys.readouterr().err.split())


def test_versions_are_those_of_the_name_in_order_or_those_that_a_file_lists(
    farm: HttpFarm, client: FarmClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = [version.manifest.digest[:8] for version in registered(client, tmp_path, versions=5)]
    ends = ("--good", digests[1], "--bad", digests[4])
    assert listed(capsys, *ends) == digests[1:]
    assert listed(capsys, "--good", digests[1], "--bad", "net/float32/torchscript") == digests[1:]
    assert listed(capsys, "--good", tmp_path / "net-1.pt", "--bad", digests[4]) == digests[1:]
    file = tmp_path / "versions"
    file.write_text(f"# oldest first\n{digests[1]}\n\n{digests[3]}  # later\n{digests[4]}\n")
    assert listed(capsys, *ends, "--versions", file) == [digests[1], digests[3], digests[4]]


def test_a_file_is_the_version_that_has_the_files_beside_it_too(tmp_path: Path) -> None:
    path, weights = tmp_path / "m.onnx", tmp_path / "m.onnx.data"
    path.write_bytes(onnx.initializer(onnx.EXTERNAL))
    versions = []
    for number in (1, 2):
        weights.write_bytes(bytes([number]))
        versions.append(
            Variant(
                variant_id=VariantId(number),
                name="m",
                manifest=manifest_of_file(path),
                created_at=datetime(2026, 1, number, tzinfo=UTC),
            )
        )
    for number, version in enumerate(versions, start=1):
        weights.write_bytes(bytes([number]))
        assert find_version(versions, str(path)) is version


def test_a_version_is_that_of_its_first_registration_unless_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(onnx.model())
    manifest = manifest_of_file(path)
    first, again = (
        Variant(
            variant_id=VariantId(number),
            name=name,
            manifest=manifest,
            created_at=datetime(2026, 1, number, tzinfo=UTC),
        )
        for number, name in ((1, "m"), (2, f"m-{manifest.digest[:8]}"))
    )
    for word in (path, manifest.digest, manifest.digest[:8], "m"):
        assert find_version([first, again], str(word)) is first
    assert find_version([first, again], again.name) is again


def test_what_cannot_be_searched_is_refused_with_what_can(
    farm: HttpFarm, client: FarmClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = [version.manifest.digest[:8] for version in registered(client, tmp_path, versions=3)]
    (other,) = registered(client, tmp_path, versions=1, model="other")
    assert "--good is later than --bad" in refused(capsys, "--good", digests[2], "--bad", digests[0])
    unknown = tmp_path / "unknown.pt"
    unknown.write_bytes(model_file("torchscript", marker="never sent"))
    words = refused(capsys, "--good", unknown, "--bad", digests[2])
    assert f"the farm does not have this file hint: `farm variant add {unknown}`" in words
    assert "are the same file" in refused(capsys, "--good", digests[2], "--bad", digests[2])
    assert "there is no variant" in refused(capsys, "--good", "nothing", "--bad", digests[2])
    names = refused(capsys, "--good", digests[0], "--bad", other.manifest.digest[:8])
    assert "--versions FILE" in names
    file = tmp_path / "versions"
    ends = ("--good", digests[0], "--bad", digests[2], "--versions", file)
    file.write_text(f"{digests[0]}\nnothing\n")
    assert "line 2: there is no variant" in refused(capsys, *ends)
    file.write_text(f"{digests[0]}\n{unknown}\nnothing\n")
    words = refused(capsys, *ends)
    assert f"line 2: {unknown}: the farm does not have this file; line 3: there is no variant" in words
    assert "`farm variant add FILE`" in words
    file.write_text(f"{digests[0]}\n{digests[0]}\n")
    assert "is there before" in refused(capsys, *ends)
    file.write_text(f"{digests[0]}\n")
    assert "--bad" in refused(capsys, *ends)
    file.write_text(f"{digests[0]}\n{file}\n")
    assert "line 2: " in refused(capsys, *ends)
    assert "none cannot be read: No such file or directory hint: " in refused(
        capsys, *ends[:-1], tmp_path / "none"
    )
    assert "write it like 2%" in refused(capsys, *ends[:4], "--margin", "0.02")


@pytest.mark.long
def test_a_search_prints_a_line_for_each_comparison_and_its_end(
    farm: HttpFarm, client: FarmClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    versions = registered(client, tmp_path, versions=3)
    times = {version.manifest.digest: 1000.0 + 300 * (place > 1) for place, version in enumerate(versions)}
    words: tuple[Any, ...] = ("--good", versions[0].manifest.digest, "--bad", versions[2].manifest.digest)
    with measuring(farm, times):
        wait_for_phone(client)
        capsys.readouterr()
        assert run("bisect", *words, "--harness", HARNESS, "--", "--iter", "3") == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["3", "2"]
    assert lines[2].startswith(f"First bad version: 3, {versions[2].manifest.digest[:8]}")
    assert "good and bad differ on 1 of 1 device: phone-1" in lines[4]
    assert all(len(line) <= 80 for line in lines), lines
    assert "3 versions of net/float32/torchscript, 2 comparisons if all of them can run" in printed.err
    assert run("bisect", *words, "--harness", HARNESS, "--json", "--", "--iter", "3") == 0
    view = BisectView.model_validate(json.loads(capsys.readouterr().out))
    assert view.first_bad.digest == versions[2].manifest.digest
