"""A file that cannot be read is refused for a reason, whatever it holds."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.errors import InputTooLarge, InvalidInput
from farm.harness.external.recognition import read_external_file
from farm.harness.external.results import MAX_IMPORT_BYTES, MAX_RESULTS, MAX_SAMPLES, UNITS_OF_DIFFERENCES
from farm.harness.registry import get_harness, harness_names
from tests.harness.external.samples import (
    AI_HUB,
    BENCHMARK_MODEL,
    EXECUTORCH_V3,
    FILES,
    LLAMA_BENCH,
    MLPERF,
    json_bytes,
    json_lines,
)


def refusal(content: bytes | str) -> str:
    with pytest.raises(InvalidInput) as refused:
        read_external_file(content.encode() if isinstance(content, str) else content)
    assert refused.value.hint
    return refused.value.message


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"hello\n", "no format is recognized in it"),
        (b"\x00\xff\x01\x80" * 100, "the file is neither text nor a result of benchmark_model"),
        (b"[]", "the list is empty"),
        (b"{}", "no format of JSON is recognized in it: its first object has "),
        (b"[1, 2]", "the document[0] is not an object"),
        (b'{"a": 1, "b": []}', "no format of JSON is recognized in it: its first object has a, b"),
        (b"[" * 100_000, "the document is nested more than 32 levels deep"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "the document is nested more than 32 levels deep"),
        (json_bytes(AI_HUB)[:-40], "the document is not JSON at line 1, column "),
        (b'{"execution_summary": {}}', "execution_summary.estimated_inference_time is not a number"),
        (b'{"execution_summary": {"estimated_inference_time": NaN}}', "NaN is not a number of JSON"),
        (
            b'{"execution_summary": {"estimated_inference_time": 1e999}}',
            "is not a number that can be measured",
        ),
        (b'{"execution_summary": {"estimated_inference_time": true}}', "is not a number"),
        (b'{"execution_summary": {"estimated_inference_time": ' + b"9" * 5000 + b"}}", "is not JSON"),
        (b'{"execution_summary": {"estimated_inference_time": -1}}', "-1 is not a measured value"),
        (b'{"execution_summary": {"estimated_inference_time": 0}}', "0 us is no measured time"),
    ],
)
def test_the_reason_names_what_is_wrong(content: bytes, reason: str) -> None:
    assert reason.replace("the document[0]", "[0]") in refusal(content)


def changed(document: dict[str, Any], **fields: object) -> bytes:
    return json_bytes([document | fields])


def test_a_reason_names_the_place_in_the_document() -> None:
    assert refusal(changed(LLAMA_BENCH[0], avg_ts="fast")) == "[0].avg_ts is not a number"
    assert refusal(changed(LLAMA_BENCH[0], avg_ts=None)) == "[0].avg_ts is not a number"
    assert refusal(changed(LLAMA_BENCH[0], samples_ns=[1, None])) == "[0].samples_ns is not a number"
    assert refusal(changed(LLAMA_BENCH[0], samples_ns={})) == "[0].samples_ns is not a list of numbers"
    assert refusal(changed(LLAMA_BENCH[0], n_prompt=-1)) == "[0].n_prompt is not a number of things"
    assert refusal(changed(LLAMA_BENCH[0], model_filename=5)) == "[0].model_filename is not a text"
    assert refusal(json_bytes(MLPERF | {"results": [5]})) == "[0].results[0] is not an object"
    assert refusal(json_bytes(MLPERF | {"build_info": "5.0"})) == "[0].build_info is not an object"
    assert refusal(json_lines(LLAMA_BENCH[0])[:-1] + b"\n{broken\n").startswith("line 2 is not JSON")


def test_texts_that_no_terminal_or_database_takes_are_refused() -> None:
    assert "control characters" in refusal(changed(LLAMA_BENCH[0], cpu_info="a\0b"))
    assert "control characters" in refusal(changed(LLAMA_BENCH[0], cpu_info="a\x1b[31mb"))
    assert "control characters" in refusal(changed(LLAMA_BENCH[0], cpu_info="\ud800"))
    assert "more than 500 characters" in refusal(changed(LLAMA_BENCH[0], cpu_info="a" * 501))


def test_records_of_another_version_are_refused() -> None:
    assert "only those of v3" in refusal(changed(EXECUTORCH_V3[0], schema_version="v2"))


def test_a_file_is_bounded_in_bytes_records_and_samples() -> None:
    with pytest.raises(InputTooLarge, match="bytes are more than"):
        read_external_file(b"a" * (MAX_IMPORT_BYTES + 1))
    app = {"actualValue": 1, "benchmarkModel": {}, "deviceInfo": {}, "metric": "m"}
    assert "entries" in refusal(json_bytes([app] * (MAX_RESULTS + 1)))
    assert "lines" in refusal(json_lines(*[app] * (MAX_RESULTS + 1)))
    few = {"n_prompt": 1, "n_gen": 0, "avg_ts": 1}
    many = [few | {"avg_ns": 1} for _ in range(MAX_RESULTS // 2 + 1)]
    assert f"{MAX_RESULTS + 2} results are more than" in refusal(json_bytes(many))
    long = few | {"samples_ts": [1] * (MAX_SAMPLES + 1)}
    assert "samples are in one file" in refusal(json_bytes([long]))


def test_a_log_that_is_cut_off_has_no_result() -> None:
    for lines in range(1, len(BENCHMARK_MODEL.splitlines()) - 1):
        assert refusal("\n".join(BENCHMARK_MODEL.splitlines()[:lines]))


def test_a_log_of_a_run_that_failed_has_its_reason() -> None:
    log = (
        "INFO: Running benchmark for at least 1 iterations\nERROR: Node number 3 (CONV_2D) failed to prepare."
    )
    assert "did not end well" in refusal(log)


@pytest.mark.parametrize("name", harness_names())
@given(data=st.binary(max_size=300))
def test_no_adapter_fails_on_garbage_in_a_log(name: str, data: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_external_file(data, harness=get_harness(name))


@given(data=st.binary(max_size=400))
def test_garbage_is_refused_or_read_and_never_an_error(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        read_external_file(b"\xff" + data)
    with suppress(InvalidInput):
        assert read_external_file(data).results


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(name for name in FILES if name.endswith((".json", ".jsonl"))))
@given(data=st.data())
def test_any_value_in_the_place_of_another_is_read_or_refused(name: str, data: st.DataObject) -> None:
    document = json.loads(FILES[name].splitlines()[0])
    place: Any = document
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            place[key] = data.draw(_VALUES)
            break
        place = inner
    with suppress(InvalidInput):
        file = read_external_file(json.dumps(document).encode())
        # Memory may be a difference: what a step took more, or gave back.
        assert all(result.value >= 0 for result in file.results if result.unit not in UNITS_OF_DIFFERENCES)
