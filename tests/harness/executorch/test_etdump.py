"""ETDump: operators and calls of delegates in files written by hand from its schema."""

import base64
import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.evidence import Evidence, ExitRecord, PassEvidence
from farm.core.runs.measurement import Reading
from farm.core.runs.placement import Accelerator, Placement, resolve_actual_backend
from farm.harness.base.tool_harness import RESULT_FILES
from farm.harness.executorch.etdump import ETDUMP, etdump, with_etdump
from farm.harness.executorch.placement import executorch_placement
from farm.harness.registry import get_harness
from tests.support.harness import tool_samples as sample
from tests.support.models.flatbuffer_samples import Item, buffer, number, shared, table, text, vector

NAME = "executor_runner"
RAN = "Method uses backend XnnpackBackend\nModel executed successfully 50 time(s) in 100 ms.\n"
NAMES_ONE = executorch_placement("Method uses backend XnnpackBackend")


def event(name: str, us: int, *, identifier: str | int | None = None, at: int = 0) -> Item:
    """One event of so many microseconds, at an instruction; the identifier is that of a delegate."""
    start = 10**12
    fields: dict[int, Item | bytes] = {
        1: number("i", 0),
        2: number("i", at),
        6: number("Q", start),
        7: number("Q", start + us * 1000),
    }
    if name:
        fields[0] = text(name)
    if isinstance(identifier, str):
        fields[4] = text(identifier)
    elif identifier is not None:
        fields[3] = number("i", identifier)
    return table({0: table(fields)})


def dump(*blocks: Sequence[Item], is_sized: bool = True) -> bytes:
    runs = [table({0: text("Execute"), 3: vector(events)}) for events in blocks]
    content = buffer(table({0: number("I", 0), 1: vector(runs)}), b"ED00")
    return struct.pack("<I", len(content)) + content if is_sized else content


def inference(times: int = 1) -> list[Item]:
    """Two calls of a delegate, one with three operators, and two kernels of the CPU."""
    return [
        event("", 10 * times, identifier="Convolution (NHWC, F32) IGEMM #1"),
        event("", 20 * times, identifier="Convolution (NHWC, F32) IGEMM #2"),
        event("", 1 * times, identifier=12),
        event("DELEGATE_CALL", 35 * times),
        event("native_call_softmax.out", 4 * times, at=1),
        event("OPERATOR_CALL", 5 * times, at=1),
        event("DELEGATE_CALL", 7 * times, at=2),
        event("native_call_view_copy.out", 2 * times, at=3),
        event("OPERATOR_CALL", 3 * times, at=3),
        event("Method::execute", 60 * times),
    ]


LOADING = [event("Method::init", 900), event("Program::load_method", 1000)]
ALLOCATION = table({1: table({1: number("Q", 64)})})
#: An empty block, as upstream's runner has some, and a first inference that takes ten times as long.
DUMP = dump(LOADING, [], inference(10), [], [*inference(1), ALLOCATION], inference(3))


def reading(data: bytes, *, code: int = 0, backend: str = "xnnpack", log: str = RAN) -> Reading:
    content = base64.encodebytes(data).decode()
    further = PassEvidence(
        name=RESULT_FILES,
        exit=ExitRecord(code=code, duration_s=1.0),
        stdout=f"\nbenchfarm_file {ETDUMP}\n{content}benchfarm_file_end\n",
    )
    ended = ExitRecord(code=0, duration_s=1.0)
    evidence = Evidence(fence=1, exit=ended, stderr=log, passes=(further,))
    found = get_harness(NAME).parse(sample.plan(NAME, backend, profile=True), evidence)
    assert isinstance(found, Reading)
    return found


def shares(placement: Placement | None) -> list[tuple[str, int | None, int | None]]:
    assert placement is not None
    return [(share.by, share.nodes, share.partitions) for share in placement.shares]


def test_an_etdump_is_made_in_a_pass_of_its_own_and_never_in_the_run() -> None:
    planned = sample.plan(NAME, "xnnpack", profile=True, num_executions=1000)
    assert "etdump_path" not in " ".join(planned.argv)
    [traced] = planned.passes
    assert traced.name == RESULT_FILES
    assert f"--etdump_path=${{work}}/{ETDUMP}" in traced.argv
    assert "--num_executions=4" in traced.argv
    assert not sample.plan(NAME, "xnnpack").passes


@pytest.mark.parametrize("backend", ["qnn", "neuropilot", "enn"])
def test_runners_of_chip_makers_whose_times_may_be_cycles_have_no_such_pass(backend: str) -> None:
    assert not sample.plan(NAME, backend, profile=True).passes


@pytest.mark.parametrize("is_sized", [True, False])
def test_times_are_of_one_inference_and_leave_the_first_one_out(is_sized: bool) -> None:
    found = etdump(dump(LOADING, inference(10), inference(1), inference(3), is_sized=is_sized))
    assert found is not None
    assert [(each.operator, each.count, each.ms) for each in found.operators] == [
        ("DELEGATE_CALL", 2, 0.084),
        ("Convolution (NHWC, F32) IGEMM", 2, 0.06),
        ("softmax.out", 1, 0.008),
        ("view_copy.out", 1, 0.004),
        ("debug id 12", 1, 0.002),
    ]


def test_a_single_inference_is_all_there_is() -> None:
    found = etdump(dump(LOADING, inference(10)))
    assert found is not None
    assert [each.ms for each in found.calls] == [0.42]


def test_operators_become_metrics_and_the_delegate_has_its_name() -> None:
    found = reading(DUMP)
    assert sample.metrics(found) == pytest.approx(
        {
            "op XnnpackBackend x2": 0.084,
            "op Convolution (NHWC, F32) IGEMM x2": 0.06,
            "op softmax.out x1": 0.008,
            "op view_copy.out x1": 0.004,
            "op debug id 12 x1": 0.002,
        }
    )
    assert (found.actual_backend, found.accelerator) == ("xnnpack", Accelerator.CPU)
    assert "ETDump: XnnpackBackend x2 (Convolution (NHWC, F32) IGEMM x2, debug id 12 x1)" in found.proof
    assert "ETDump: portable x2 (softmax.out x1, view_copy.out x1)" in found.proof


def test_nothing_is_read_of_a_pass_that_failed() -> None:
    assert not sample.metrics(reading(DUMP, code=1))


def test_only_the_slowest_operators_become_metrics() -> None:
    kernels = [event(f"native_call_op{at}.out", at + 1) for at in range(40)]
    data = dump([*kernels, event("Method::execute", 900)])
    assert list(sample.metrics(reading(data))) == [f"op op{at}.out x1" for at in range(39, 27, -1)]
    found = etdump(data)
    assert found is not None
    assert len(found.kernels) == 40


def test_placement_counts_the_operators_that_a_table_of_inspector_counts() -> None:
    head = "event_block_name  event_name  avg (ms)  is_delegated_op  delegate_backend_name\n"
    inside = ["Convolution IGEMM #1", "Convolution IGEMM #2", "debug id 12"]
    rows = [f"Execute  {name}  0.1  True  XnnpackBackend\n" for name in inside]
    kernels = ["native_call_softmax.out", "OPERATOR_CALL", "native_call_view_copy.out", "OPERATOR_CALL"]
    rows += [f"Execute  {name}  0.1  False\n" for name in ["DELEGATE_CALL", *kernels]]
    printed = executorch_placement(head + "".join(rows))
    found = with_etdump(NAMES_ONE, etdump(DUMP))
    assert printed is not None
    assert found is not None
    assert [share[:2] for share in shares(printed)] == [share[:2] for share in shares(found)]
    assert printed.total_nodes == found.total_nodes == 5
    for backend in ("xnnpack", "cpu", "vulkan"):
        first, second = (resolve_actual_backend(each, backend) for each in (printed, found))
        assert (first.backend, first.accelerator) == (second.backend, second.accelerator)


def test_calls_without_operators_are_uncounted_nodes_that_the_cpu_does_not_outnumber() -> None:
    kernels = [event("native_call_add.out", 1) for _ in range(9)]
    traced = etdump(dump([event("DELEGATE_CALL", 50), *kernels, event("Method::execute", 70)]))
    found = with_etdump(executorch_placement("Method uses backend VulkanBackend"), traced)
    assert shares(found) == [("VulkanBackend", None, 1), ("portable", 9, None)]
    assert found is not None
    assert found.total_nodes is None
    assert resolve_actual_backend(found, "vulkan").accelerator is Accelerator.GPU


@pytest.mark.parametrize("text", ["Method uses backend XnnpackBackend", ""])
def test_a_delegate_that_is_never_called_is_a_fallback(text: str) -> None:
    traced = etdump(dump([event("native_call_add.out", 1), event("Method::execute", 70)]))
    found = with_etdump(executorch_placement(text), traced)
    assert shares(found) == [("portable", 1, None)]
    assert found is not None
    assert [text in warning for warning in found.warnings] == ([True] if text else [])
    assert resolve_actual_backend(found, "xnnpack").backend == "cpu"


@pytest.mark.parametrize(
    "text",
    ["", "delegates: XnnpackBackend\ndelegates: VulkanBackend", "Backend FooBackend is not registered"],
)
def test_calls_prove_nothing_where_the_log_does_not_say_of_which_delegate(text: str) -> None:
    logged = executorch_placement(text)
    assert with_etdump(logged, etdump(DUMP)) == logged
    found = reading(DUMP, log=f"{text}\nModel executed successfully 50 time(s) in 100 ms.\n")
    assert sample.metrics(found)["op DELEGATE_CALL x2"] == pytest.approx(0.084)


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"ED00", b"\0\0\0\0ED00", b"\0" * 8 + b"ED00", DUMP[4:40], b"\xff" * 400),
        dump(),
        dump(LOADING, inference()[:-1]),
        dump([event("Method::execute", 70)]),
        dump([event("", -5, identifier="a"), event("Method::execute", 70)]),
    ],
    ids=lambda data: f"{len(data)} bytes",
)
def test_what_is_no_etdump_of_an_inference_yields_none(data: bytes) -> None:
    assert etdump(data) is None


def test_an_event_that_ends_a_day_later_or_before_it_starts_is_left_out() -> None:
    events = [event("native_call_a.out", 90_000_000_000), event("native_call_b.out", -1)]
    found = etdump(dump([*events, event("native_call_c.out", 5), event("Method::execute", 70)]))
    assert found is not None
    assert [each.operator for each in found.operators] == ["c.out"]


def test_blocks_that_share_a_long_list_of_events_are_not_gone_through_again_and_again() -> None:
    block = table({3: vector([event("native_call_a.out", 5), event("Method::execute", 70)])})
    assert etdump(buffer(table({1: shared(3, block)}), b"ED00")) is not None
    # 400 million events in 160 kB.
    block = table({3: shared(20_000, event("Method::execute", 70))})
    assert etdump(buffer(table({1: shared(20_000, block)}), b"ED00")) is None


@given(at=st.integers(0, len(DUMP) - 1), value=st.integers(0, 255), end=st.integers(0, len(DUMP)))
def test_no_damage_raises_and_every_time_is_finite(at: int, value: int, end: int) -> None:
    damaged = bytes([*DUMP[:at], value, *DUMP[at + 1 :]])
    for data in (damaged, damaged[:end]):
        found = etdump(data)
        if found is not None:
            assert all(0 <= each.ms < 1e9 and each.count > 0 for each in found.operators)
            with_etdump(NAMES_ONE, found)
