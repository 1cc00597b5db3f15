"""The protobuf of benchmark_model, against the encoder of the protobuf package where it is installed."""

import pytest

from farm.harness.external.benchmark_result import find_benchmark_result
from farm.harness.external.results import Statistic
from tests.harness.external.samples import (
    benchmark_result,
    float_field,
    message_field,
    varint,
    varint_field,
)


def test_all_numbers_of_the_message_are_read() -> None:
    file = find_benchmark_result(benchmark_result())
    assert file is not None
    found = {(result.metric, result.statistic): (result.value, result.unit) for result in file.results}
    assert found == {
        ("inference", Statistic.MEAN): (5.5, "ms"),
        ("inference", Statistic.MEDIAN): (5.25, "ms"),
        ("inference", Statistic.P5): (5.125, "ms"),
        ("inference", Statistic.P95): (6.5, "ms"),
        ("load_time", Statistic.VALUE): (200.0, "ms"),
        ("first_inference", Statistic.VALUE): (20.0, "ms"),
        ("warm_up", Statistic.MEAN): (5.75, "ms"),
        ("init_footprint", Statistic.VALUE): (2048, "kB"),
        ("overall_footprint", Statistic.VALUE): (4096, "kB"),
        ("peak_mem", Statistic.VALUE): (12.5, "MB"),
    }
    assert (file.results[0].minimum, file.results[0].maximum, file.results[0].deviation) == (5.0, 7.0, 0.25)
    assert file.results[0].sample_count == 120
    assert dict(file.results[0].settings) == {"name": "tiny"}


def test_fields_of_later_versions_are_skipped() -> None:
    later = message_field(9, b"new") + varint_field(8, 300) + varint(7 << 3 | 1) + bytes(8)
    assert find_benchmark_result(benchmark_result() + later) == find_benchmark_result(benchmark_result())


def test_a_float_has_only_the_digits_that_it_holds() -> None:
    file = find_benchmark_result(message_field(2, float_field(1, 9.97905922)))
    assert file is not None
    assert file.results[0].value == 9.979059


@pytest.mark.parametrize("cut", range(1, len(benchmark_result()) - 1))
def test_a_cut_message_is_none_or_has_only_what_is_whole(cut: int) -> None:
    file = find_benchmark_result(benchmark_result()[:cut])
    whole = find_benchmark_result(benchmark_result())
    assert whole is not None
    known = {(result.metric, result.statistic, result.value) for result in whole.results}
    assert file is None or {(r.metric, r.statistic, r.value) for r in file.results} <= known


def test_a_message_without_a_mean_is_none() -> None:
    assert find_benchmark_result(message_field(2, float_field(2, 5.0))) is None
    assert find_benchmark_result(message_field(2, varint_field(1, 5))) is None


def test_the_protobuf_package_writes_what_is_read() -> None:
    descriptors = pytest.importorskip("google.protobuf.descriptor_pb2")
    pool_module = pytest.importorskip("google.protobuf.descriptor_pool")
    factory = pytest.importorskip("google.protobuf.message_factory")
    file = descriptors.FileDescriptorProto(name="r.proto", package="t", syntax="proto2")
    field_types = descriptors.FieldDescriptorProto
    schema = {
        "Latency": {1: ("avg_ms", field_types.TYPE_FLOAT), 5: ("median_ms", field_types.TYPE_FLOAT)},
        "Memory": {1: ("init_footprint_kb", field_types.TYPE_INT64)},
        "Misc": {2: ("num_runs", field_types.TYPE_INT32)},
    }
    for name, numbered in schema.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in numbered.items():
            message.field.add(name=field, number=number, type=kind, label=field_types.LABEL_OPTIONAL)
    result = file.message_type.add(name="Result")
    for number, name in ((2, "Latency"), (3, "Memory"), (4, "Misc")):
        result.field.add(
            name=name.lower(),
            number=number,
            type=field_types.TYPE_MESSAGE,
            type_name=f".t.{name}",
            label=field_types.LABEL_OPTIONAL,
        )
    pool = pool_module.DescriptorPool()
    pool.Add(file)
    made = factory.GetMessageClass(pool.FindMessageTypeByName("t.Result"))()
    made.latency.avg_ms, made.latency.median_ms = 3.5, 3.25
    made.memory.init_footprint_kb = -12
    made.misc.num_runs = 70_000
    read = find_benchmark_result(made.SerializeToString())
    assert read is not None
    assert [(r.metric, r.value, r.sample_count) for r in read.results] == [
        ("inference", 3.5, 70_000),
        ("inference", 3.25, 70_000),
        ("init_footprint", -12, None),
    ]
