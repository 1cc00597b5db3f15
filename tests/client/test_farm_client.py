"""The client against real HTTP servers: the farm's own API, and servers that answer nonsense."""

import os
import socket
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from farm.client.farm_client import FarmClient
from farm.client.responses import ProblemError, VariantError, error_class_by_code
from farm.client.upload import CHUNK_BYTES
from farm.core import errors
from farm.core.base.ids import AttemptId, Digest, MatrixId, VariantId, digest_of
from farm.core.errors import (
    Blame,
    DeviceError,
    DeviceOffline,
    FarmBusy,
    FarmError,
    FarmFault,
    FarmUnreachable,
    HostError,
    InvalidInput,
    LimitReached,
    MatrixInvalid,
    NotFound,
    VariantInvalid,
)
from farm.core.models.variant import Format, Manifest, Precision, Recipe, TensorSpec
from tests.support.farm.api_server import problem, scripted_server, served_farm
from tests.support.farm.http_farm import served


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[FarmClient]:
    with served_farm(tmp_path / "data") as url, FarmClient(url) as client:
        yield client


def a_model_file(folder: Path) -> tuple[Path, Manifest]:
    path = folder / "tiny.pt"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data.pkl", "constants.pkl", "version", "code/__torch__.py"):
            archive.writestr(f"tiny/{name}", "x")
    return path, Manifest(
        model="tiny",
        recipe=Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT),
        digest=digest_of(path.read_bytes()),
        size_bytes=path.stat().st_size,
        backends=("cpu",),
        inputs=(TensorSpec(shape=(1, 3), dtype="float32"),),
        recipe_digest=digest_of(b"recipe"),
    )


def test_a_new_farm_says_who_it_is_and_lists_nothing_but_its_own_programs(farm: FarmClient) -> None:
    assert farm.is_healthy()
    assert farm.farm().wire_version == 1
    assert farm.devices() == []
    assert farm.variants() == []
    assert list(farm.matrices()) == []
    assert list(farm.speedups()) == []
    assert "speed_benchmark_torch" in {program.name for program in farm.programs()}


def test_a_file_is_uploaded_in_pieces_with_progress_and_only_once(farm: FarmClient, tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(os.urandom(2 * CHUNK_BYTES + 17))
    digest = digest_of(path.read_bytes())
    first: list[int] = []
    again: list[int] = []
    assert not farm.has_blob(digest)
    farm.upload(path, digest, progress=first.append)
    assert farm.has_blob(digest)
    farm.upload(path, digest, progress=again.append)
    assert first == [CHUNK_BYTES, CHUNK_BYTES, 17]
    assert again == [2 * CHUNK_BYTES + 17]


def test_a_file_that_is_not_what_its_digest_says_is_refused(farm: FarmClient, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"other bytes")
    with pytest.raises(errors.DigestMismatch):
        farm.upload(path, digest_of(b"bytes"))
    assert not farm.has_blob(digest_of(b"bytes"))


def test_a_registered_variant_is_listed_with_its_manifest(farm: FarmClient, tmp_path: Path) -> None:
    path, manifest = a_model_file(tmp_path)
    farm.upload(path, manifest.digest)
    view = farm.register_variant(manifest)
    stated = {
        "inputs_unread": "torchscript files do not state their inputs",
        "macs_uncounted": "torchscript files do not show their operators",
    }
    assert view.manifest == replace(manifest, bundled_inputs=False, **stated)
    assert farm.register_variant(manifest).variant_id == view.variant_id
    assert farm.variants() == [view]


def test_a_registered_variant_is_renamed_and_gets_other_inputs(farm: FarmClient, tmp_path: Path) -> None:
    path, manifest = a_model_file(tmp_path)
    farm.upload(path, manifest.digest)
    view = farm.register_variant(manifest)
    inputs = (TensorSpec(shape=(4, -1), dtype="int64"),)
    changed = farm.change_variant(view.variant_id, model="other", inputs=inputs)
    assert (changed.name, changed.manifest.inputs) == ("other/float32/torchscript", inputs)
    assert farm.change_variant(view.variant_id) == changed
    with pytest.raises(errors.NotFound):
        farm.change_variant(VariantId(99))


def test_a_file_that_is_no_model_is_refused_as_a_variant(farm: FarmClient, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("not a model")
    digest = digest_of(path.read_bytes())
    manifest = a_model_file(tmp_path)[1]
    values = {name: getattr(manifest, name) for name in manifest.__dataclass_fields__}
    farm.upload(path, digest)
    with pytest.raises(VariantInvalid):
        farm.register_variant(Manifest(**{**values, "digest": digest, "size_bytes": path.stat().st_size}))


def test_what_does_not_exist_is_not_found(farm: FarmClient) -> None:
    with pytest.raises(NotFound):
        farm.matrix(MatrixId(99))
    with pytest.raises(NotFound):
        farm.jobs(MatrixId(99))
    with pytest.raises(NotFound):
        farm.attempt(AttemptId(99))
    with pytest.raises(NotFound):
        list(farm.speedups(matrix_id=MatrixId(99)))
    with pytest.raises(NotFound, match="no device `phone-1`"):
        list(farm.speedups(device="phone-1"))
    with pytest.raises(NotFound, match="no model `mobilenet_v2`"):
        list(farm.speedups(model="mobilenet_v2"))


def test_a_matrix_that_is_none_is_refused_with_the_problem_as_cause(farm: FarmClient) -> None:
    with pytest.raises(MatrixInvalid) as caught:
        farm.submit_matrix({"name": "x", "harnes": "y"})
    assert isinstance(caught.value.__cause__, ProblemError)
    assert caught.value.__cause__.problem.code == "matrix.invalid"


def test_a_digest_that_is_none_is_the_users_fault(farm: FarmClient) -> None:
    with pytest.raises(InvalidInput):
        farm.has_blob(Digest("0"))


def test_every_code_of_the_error_tree_has_a_class_that_bears_it() -> None:
    by_code = error_class_by_code()
    ours = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, FarmError)]
    assert {kind.code for kind in ours} <= set(by_code)
    assert all(by_code[kind.code] is kind for kind in ours)


def test_a_problem_document_becomes_the_error_with_its_code_message_and_hint() -> None:
    with (
        scripted_server({"GET /api/v1/devices": problem("device.offline", "device", status=503)}) as url,
        FarmClient(url) as farm,
        pytest.raises(DeviceOffline) as caught,
    ):
        farm.devices()
    assert caught.value.message == "device.offline happened"
    assert caught.value.hint == "do otherwise"


@pytest.mark.parametrize(
    ("blame", "kind"),
    [
        (Blame.USER, InvalidInput),
        (Blame.VARIANT, VariantError),
        (Blame.DEVICE, DeviceError),
        (Blame.HOST, HostError),
        (Blame.FARM, FarmFault),
        ("nobody we know", FarmFault),
    ],
)
def test_an_unknown_code_falls_back_to_its_blame(blame: str, kind: type[FarmError]) -> None:
    with (
        scripted_server({"GET /api/v1/devices": problem("from.the_future", blame)}) as url,
        FarmClient(url) as farm,
        pytest.raises(FarmError) as caught,
    ):
        farm.devices()
    assert type(caught.value) is kind


@pytest.mark.parametrize("answer", [(502, "<html>Bad Gateway</html>"), (200, "<html>"), (200, [{"a": 1}])])
def test_an_answer_that_no_farm_gives_is_a_fault_that_names_the_address(answer: tuple[int, object]) -> None:
    with (
        scripted_server({"GET /api/v1/devices": answer}) as url,
        FarmClient(url) as farm,
        pytest.raises(FarmFault, match=f"{url}/api/v1/devices"),
    ):
        farm.devices()


def test_an_address_where_something_else_serves_is_the_users_fault() -> None:
    with (
        scripted_server({"GET /api/v1/devices": (404, "<html>Not Found</html>")}) as url,
        FarmClient(url) as farm,
        pytest.raises(InvalidInput, match="404"),
    ):
        farm.devices()


def test_a_connection_that_breaks_means_that_the_farm_is_unreachable() -> None:
    with scripted_server({}) as url, FarmClient(url) as farm, pytest.raises(FarmUnreachable):
        farm.devices()


def test_what_only_reads_is_sent_again_once_where_a_connection_is_cut_off() -> None:
    asked = []

    class CutOff(BaseHTTPRequestHandler):
        def answer(self) -> None:
            asked.append(self.command)
            if asked.count(self.command) == 1:
                self.close_connection = True
                return
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"[]")

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), CutOff) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with FarmClient(f"http://127.0.0.1:{server.server_address[1]}") as farm:
                assert farm.devices() == []
                with pytest.raises(FarmUnreachable):
                    farm._post(list, "/matrices/plan", {})
        finally:
            server.shutdown()
            thread.join()
    assert asked == ["GET", "GET", "POST"]


def test_a_port_where_no_one_listens_means_that_the_farm_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        with FarmClient(url) as farm, pytest.raises(FarmUnreachable, match=url) as caught:
            farm.devices()
        assert "farm up" in caught.value.hint


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with FarmClient(url, answer_s=0.05) as farm, pytest.raises(FarmUnreachable, match="in time"):
            farm.devices()


@pytest.mark.parametrize("url", ["", "127.0.0.1:8470", "ftp://127.0.0.1", "http://", "http://[::1"])
def test_an_address_that_is_none_is_the_users_fault(url: str) -> None:
    with pytest.raises(InvalidInput):
        FarmClient(url)


@pytest.mark.parametrize(
    "address",
    ["http://ann:{}@farm.lab", "http://ann:{}@", "ftp://ann:{}@farm.lab", "http://ann:{}/@farm.lab"],
)
def test_an_address_with_a_password_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(InvalidInput, match="no name and no password") as refused:
        FarmClient(address.format("s3cr3t"))
    assert "s3cr3t" not in f"{refused.value} {refused.value.hint} {refused.value.__cause__!r}"
    assert "farm login" in refused.value.hint


class _Reluctant:
    """Answers that there are too many calls, so many times, and then with a document."""

    def __init__(self, refusals: int, wait_s: int = 0, status: int = 429) -> None:
        self.refusals, self.wait_s, self.status, self.bodies = refusals, wait_s, status, list[bytes]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.bodies.append((await receive())["body"])
        is_refused = len(self.bodies) <= self.refusals
        _, document = (
            problem("limit.reached", "user", status=429)
            if self.status == 429
            else problem("farm.busy", "farm", status=self.status)
        )
        response = JSONResponse(
            document if is_refused else {"done": "yes"},
            status_code=self.status if is_refused else 200,
            headers={"Retry-After": str(self.wait_s)},
        )
        await response(scope, receive, send)


def test_a_call_that_is_one_too_many_is_made_again_once_the_farm_takes_it() -> None:
    app = _Reluctant(2)
    with served(app, lifespan="off") as (url, _), FarmClient(url) as client:
        assert client._post(dict, "/matrices", {"a": 1}) == {"done": "yes"}
    assert app.bodies == [b'{"a":1}'] * 3


def test_a_farm_that_never_takes_it_is_not_asked_without_end() -> None:
    app = _Reluctant(1000)
    with served(app, lifespan="off") as (url, _), FarmClient(url) as client, pytest.raises(LimitReached):
        client._post(dict, "/matrices", {})
    assert len(app.bodies) == 5


def test_a_farm_that_has_no_room_for_minutes_is_not_waited_for() -> None:
    app = _Reluctant(1, wait_s=300)
    with served(app, lifespan="off") as (url, _), FarmClient(url) as client, pytest.raises(LimitReached):
        client._post(dict, "/matrices", {})
    assert len(app.bodies) == 1


def test_a_busy_farm_is_asked_again_by_what_can_take_effect_once_only() -> None:
    app = _Reluctant(2, status=503)
    with served(app, lifespan="off") as (url, _), FarmClient(url) as client:
        assert client._get(dict, "/farm") == {"done": "yes"}
        app.bodies.clear()
        assert client._post_once(dict, "/matrices", {}, lost_hint="look") == {"done": "yes"}
        assert len(app.bodies) == 3
        app.bodies.clear()
        with pytest.raises(FarmBusy):
            client._post(dict, "/storage/sweep", {})
    assert len(app.bodies) == 1
