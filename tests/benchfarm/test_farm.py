"""Devices, matrices and runs by the Python client, against the farm's own API."""

import asyncio
import inspect
import traceback
from collections import ChainMap
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
import yaml

from benchfarm import AsyncFarm, Farm, FarmError, FarmUnreachable, InvalidInput, NotFound, SelectorEmpty
from benchfarm.asynchronous import AsyncRun, _OnThread
from benchfarm.progress import wait_with_progress
from benchfarm.run import Run
from farm.core.base.ids import MatrixId
from farm.wire.documents.matrices.matrices import MatrixView
from tests.benchfarm.conftest import MeasuredFarm

SPEC: dict[str, Any] = {
    "name": "from a notebook",
    "harness": "speed_benchmark_torch",
    "axes": {
        "model": "mobilenet_v2",
        "precision": ["float32", "int8-core"],
        "format": "torchscript",
        "backend": "cpu",
    },
    "baseline": {"precision": "float32"},
    "devices": [{"device": "virtual-1"}],
    "rounds": 5,
}


class InterruptedClient:
    """A farm during whose answer the user presses Ctrl-C."""

    url = "http://farm.lab"

    def matrix(self, _: MatrixId) -> MatrixView:
        raise KeyboardInterrupt


def test_the_farm_is_found_as_the_commands_find_it(
    measured: MeasuredFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARM_URL", measured.farm.url)
    with Farm() as farm:
        assert farm.url == measured.farm.url
        assert [device.device_id for device in farm.devices()] == ["virtual-1", "virtual-2"]


@pytest.mark.parametrize(
    ("selectors", "names"),
    [
        (("virtual-1",), ["virtual-1"]),
        (("virtual:true device:*1",), ["virtual-1"]),
        (("virtual:true host:bench-1",), ["virtual-1", "virtual-2"]),
        (("device:virtual-2", "device:virtual-1"), ["virtual-1", "virtual-2"]),
    ],
)
def test_selectors_are_those_of_a_matrix(
    measured: MeasuredFarm, selectors: tuple[str, ...], names: list[str]
) -> None:
    assert [device.device_id for device in measured.farm.devices(*selectors)] == names


@pytest.mark.parametrize("selectors", [("soc:*",), ("virtual-1", "virtual-2")])
def test_devices_are_selected_by_one_request_however_many_there_are(
    measured: MeasuredFarm, monkeypatch: pytest.MonkeyPatch, selectors: tuple[str, ...]
) -> None:
    """It and the list of devices: no device is asked for by itself."""
    sent: list[str] = []
    send = httpx.Client.send

    def noted(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        sent.append(request.url.path)
        return send(client, request, **options)

    monkeypatch.setattr(httpx.Client, "send", noted)
    found = measured.farm.devices(*selectors)
    assert [device.device_id for device in found] == ["virtual-1", "virtual-2"]
    assert sent == ["/api/v1/device_selection", "/api/v1/devices"]


def test_a_selector_that_fits_nothing_says_what_there_is(measured: MeasuredFarm) -> None:
    with pytest.raises(SelectorEmpty, match=r"no device fits the selector \{soc: SM8"):
        measured.farm.devices("soc:SM8*")
    with pytest.raises(InvalidInput, match="devices have no 'sok'") as refused:
        measured.farm.devices("sok:SM8*")
    assert refused.value.hint == "did you mean `soc`?"


def test_a_dictionary_a_text_and_a_path_are_the_same_matrix(measured: MeasuredFarm, tmp_path: Path) -> None:
    path = tmp_path / "matrix.yaml"
    path.write_text(yaml.safe_dump(SPEC))
    runs = [measured.farm.submit(matrix) for matrix in (SPEC, yaml.safe_dump(SPEC), path, str(path))]
    assert len({run.id for run in runs}) == 4
    assert {(run.name, run.view.jobs) for run in runs} == {("from a notebook", 10)}
    assert measured.farm.plan(path).jobs == 10


def test_a_matrix_that_is_to_stand_is_planned_and_not_submitted(measured: MeasuredFarm) -> None:
    standing = {**SPEC, "schedule": "0 2 * * *"}
    plans = [measured.farm.plan(matrix) for matrix in (standing, yaml.safe_dump(standing))]
    assert {(plan.cells, plan.standing is not None) for plan in plans} == {(2, True)}
    with pytest.raises(InvalidInput, match="schedule") as refused:
        measured.farm.submit(yaml.safe_dump(standing))
    assert "`farm matrix stand FILE`" in refused.value.hint


def test_a_submission_with_the_same_key_is_the_same_matrix(measured: MeasuredFarm) -> None:
    first = measured.farm.submit(SPEC, key="nightly-2026-11-23")
    assert measured.farm.submit(SPEC, key="nightly-2026-11-23").id == first.id


def test_a_run_can_be_cancelled_and_measured_again(measured: MeasuredFarm) -> None:
    run = measured.farm.submit(SPEC)
    assert run.url == f"{measured.farm.url}/matrices/{run.id}"
    assert not run.is_finished
    assert run.cancel().is_done
    assert run.state == "cancelled"
    again = run.rerun()
    assert again.view.rerun_of == run.id
    assert again.refresh().state == "running"
    again.cancel()


def test_a_run_of_a_variant_takes_the_flags_of_its_harness(measured: MeasuredFarm) -> None:
    run = measured.farm.run(
        "mobilenet_v2/int8-core/torchscript",
        harness="speed_benchmark_torch",
        devices=measured.farm.devices("virtual-2"),
        settings={"iter": 7},
        rounds=2,
    )
    assert run.view.jobs == 2
    assert [cell.changed_settings["iter"] for cell in run.cells()] == [7]
    assert {cell.device_id for cell in run.cells()} == {"virtual-2"}
    run.cancel()


def test_a_run_declares_inputs_of_its_file(measured: MeasuredFarm) -> None:
    devices = measured.farm.devices("virtual-2")
    run = measured.farm.run(
        "mobilenet_v2/int8-core/torchscript", devices=devices, inputs=["1x3x96x96:float32"], rounds=1
    )
    assert [cell.changed_settings["input_dims"] for cell in run.cells()] == ["1,3,96,96"]
    run.cancel()


def test_the_harness_of_a_format_need_not_be_named_where_there_is_one(measured: MeasuredFarm) -> None:
    run = measured.farm.run("mobilenet_v2/float32/torchscript", rounds=1)
    assert run.view.harness == "speed_benchmark_torch"
    run.cancel()


def test_errors_have_code_hint_and_show_it_in_a_traceback(measured: MeasuredFarm) -> None:
    with pytest.raises(NotFound) as missing:
        measured.farm.matrix(999_999)
    assert missing.value.code == "not_found"
    assert missing.value.__notes__ == [f"hint: {missing.value.hint}"]
    with pytest.raises(InvalidInput, match="harness"):
        measured.farm.submit({"name": "nothing"})
    with pytest.raises(InvalidInput, match="has no time zone"):
        measured.farm.speedups(since=datetime(2026, 1, 1))  # noqa: DTZ001
    with pytest.raises(FarmUnreachable), Farm("http://127.0.0.1:9") as away:
        away.devices()
    with pytest.raises(NotFound) as missing_file:
        measured.farm.run("nofile.tflite")
    assert missing_file.value.__notes__ == [f"hint: {missing_file.value.hint}"]


def test_a_word_that_is_none_of_an_argument_says_which_there_are(measured: MeasuredFarm) -> None:
    with pytest.raises(InvalidInput, match="cause is not 'heat'") as cause:
        measured.farm.regressions(cause="heat")
    assert "file, " in cause.value.hint
    with pytest.raises(InvalidInput, match="by is not 'socs'") as by:
        measured.farm.group_speedups("socs")
    assert by.value.hint == "did you mean `soc`?"


def test_samples_of_a_cell_that_the_matrix_does_not_have_are_not_none(measured: MeasuredFarm) -> None:
    with pytest.raises(NotFound, match="has no cell 999"):
        measured.farm.samples(measured.finished, cell=999)
    (cell, *_) = measured.farm.matrix(measured.queued).cells()
    assert len(measured.farm.samples(measured.queued, cell=cell.cell_id)) == 0


def test_a_key_of_ones_own_is_one_matrix_however_it_is_begun(measured: MeasuredFarm) -> None:
    variant = "mobilenet_v2/int8-core/torchscript"
    begun = [measured.farm.run(variant, rounds=1, key="nightly-1") for _ in range(2)]
    again = [begun[0].rerun(key="nightly-1-again") for _ in range(2)]
    assert len({run.id for run in begun}) == 1
    assert len({run.id for run in again}) == 1
    assert begun[0].id != again[0].id
    for run in (begun[0], again[0]):
        run.cancel()


def test_a_failed_cell_leads_to_its_attempts(measured: MeasuredFarm) -> None:
    run = measured.farm.matrix(measured.finished)
    jobs = run.jobs()
    assert {(job.device_id, job.label) for job in jobs} == {
        (cell.device_id, cell.label) for cell in run.cells()
    }
    assert run.attempt(jobs[0].attempts[-1]).attempt_id == jobs[0].attempts[-1]


@pytest.mark.parametrize(("synchronous", "awaited"), [(Farm, AsyncFarm), (Run, AsyncRun)])
def test_everything_can_be_awaited(synchronous: type, awaited: type) -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(synchronous) <= public(awaited)
    for name in public(awaited):
        member = inspect.getattr_static(awaited, name)
        is_awaited = isinstance(member, _OnThread) or inspect.iscoroutinefunction(member)
        assert is_awaited or isinstance(member, property), name


def test_waiting_for_what_is_finished_returns_at_once(measured: MeasuredFarm) -> None:
    run = measured.farm.matrix(measured.finished).wait(progress=False)
    assert run.is_finished
    row = run.speedups()[0]
    assert run.explain(row.cell_id).speedup == row


def test_a_wait_ends_after_its_time_and_the_matrix_goes_on(measured: MeasuredFarm) -> None:
    run = measured.farm.matrix(measured.queued)
    with pytest.raises(TimeoutError, match="has not finished within 0 s; it goes on"):
        run.wait(timeout_s=0, progress=False)
    assert run.refresh().state == "running"


def test_ctrl_c_detaches_and_says_how_to_go_on(
    measured: MeasuredFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    view = measured.farm.matrix(measured.queued).view
    client: Any = InterruptedClient()
    with pytest.raises(KeyboardInterrupt):
        wait_with_progress(client, view, timeout_s=None, shows=False)
    printed = capsys.readouterr().err
    assert f"Detached: matrix {view.matrix_id} continues." in printed
    assert f"Farm().matrix({view.matrix_id}).wait()" in printed


def test_the_same_calls_can_be_awaited(measured: MeasuredFarm) -> None:
    async def ask() -> None:
        async with AsyncFarm(measured.farm.url) as farm:
            run = await farm.matrix(measured.finished)
            assert (await run.wait()).state == "finished"
            speedups, results = await asyncio.gather(run.speedups(), farm.results(measured.finished))
            assert speedups.rows == measured.farm.speedups(matrix=measured.finished).rows
            assert results.rows == measured.farm.results(measured.finished).rows
            with pytest.raises(TimeoutError):
                await (await farm.matrix(measured.queued)).wait(timeout_s=0.1)
            with pytest.raises(FarmError):
                await farm.matrix(999_999)
            begun = await farm.submit(SPEC)
            assert (await begun.cancel()).is_done

    asyncio.run(ask())


def test_no_device_is_not_every_device(measured: MeasuredFarm) -> None:
    with pytest.raises(SelectorEmpty, match="`devices` is empty"):
        measured.farm.run("mobilenet_v2/float32/torchscript", devices=[])


@pytest.mark.parametrize(
    "call", [lambda farm: farm.matrix(999_999), lambda _: Farm("http://127.0.0.1:1").whoami()]
)
def test_a_traceback_is_the_line_of_the_caller_with_the_error_and_its_hint(
    measured: MeasuredFarm, call: Callable[[Farm], object]
) -> None:
    with pytest.raises(FarmError) as raised:
        call(measured.farm)
    lines = "".join(traceback.format_exception(raised.value)).splitlines()
    assert len(lines) < 20
    assert lines[-1].startswith("hint: ")


@pytest.mark.parametrize(
    ("call", "message", "expected"),
    [
        (lambda farm: farm.matrix("first"), "matrix_id cannot be 'first'", "int"),
        (lambda farm: farm.run(5), "path cannot be 5", "str | Path | Sequence[str | Path] | None"),
        (lambda farm: farm.run("net", backend=5), "backend cannot be 5", "str | Sequence[str]"),
        (lambda farm: farm.run("net", rounds="5"), "rounds cannot be '5'", "int"),
        (lambda farm: farm.run("net", inputs="1x3"), "inputs cannot be '1x3'", "Sequence[str]: ['1x3']"),
        (lambda farm: farm.run("net", devices=[5]), "devices cannot be [5]", "str | DeviceView"),
        (lambda farm: farm.submit(None), "matrix cannot be None", "Mapping[str, Any] | str | Path"),
        (lambda farm: farm.submit([1]), "matrix cannot be [1]", "Mapping[str, Any] | str | Path"),
        (lambda farm: farm.variants.add(5), "path cannot be 5", "str | Path"),
        (lambda farm: farm.variants.add("a", backends="cpu"), "backends cannot be 'cpu'", "Sequence[str]: "),
        (lambda farm: farm.devices(5), "selectors cannot be 5", "str"),
        (lambda farm: farm.speedups(since=5), "since cannot be 5", "datetime | str | None"),
        (lambda farm: farm.regressions(cause=5), "cause cannot be 5", "ChangeCause | str | None"),
        (lambda farm: farm.matrix(1).wait(timeout_s="1h"), "timeout_s cannot be '1h'", "float | None"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named_with_those_that_it_may_have(
    measured: MeasuredFarm, call: Callable[[Farm], object], message: str, expected: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        call(measured.farm)
    assert refused.value.message == message
    assert refused.value.hint.startswith(f"it is {expected}")


def test_an_argument_that_a_call_does_not_have_is_refused_with_those_that_it_takes(
    measured: MeasuredFarm,
) -> None:
    with pytest.raises(InvalidInput, match="unexpected keyword argument 'rounds'") as refused:
        measured.farm.samples(1, rounds=3)  # type: ignore[call-arg]
    assert refused.value.hint == "it takes matrix, cell"


def test_numbers_and_lists_of_other_libraries_are_taken(measured: MeasuredFarm) -> None:
    numpy = pytest.importorskip("numpy")
    assert measured.farm.matrix(numpy.int64(measured.finished)).id == measured.finished
    spec = MappingProxyType({**SPEC, "axes": ChainMap(SPEC["axes"]), "rounds": numpy.int64(5)})
    assert measured.farm.plan(spec).jobs == measured.farm.plan(SPEC).jobs
    run = measured.farm.run(
        "mobilenet_v2/float32/torchscript", devices=numpy.array(["virtual-1"]), rounds=numpy.int64(1)
    )
    assert [cell.device_id for cell in run.cells()] == ["virtual-1"]
    run.cancel()


@pytest.mark.parametrize(
    ("filters", "message", "hint"),
    [
        ({"device": "virtual-9"}, "no device `virtual-9`", "known here: virtual-1, virtual-2"),
        ({"model": "mobilnet_v2"}, "no model `mobilnet_v2`", "did you mean `mobilenet_v2`?"),
        ({"harness": "speed_benchmark"}, "no harness `speed_benchmark`", "speed_benchmark_torch"),
        ({"variant": "int8-crore"}, "no series has `int8-crore` in its name", "did you mean `int8-core`?"),
    ],
)
def test_a_history_of_what_the_farm_does_not_have_is_not_found(
    measured: MeasuredFarm, filters: dict[str, str], message: str, hint: str
) -> None:
    with pytest.raises(NotFound) as missing:
        measured.farm.history(**filters)
    assert missing.value.message == message
    assert hint in missing.value.hint
