"""The protobuf of LiteRT-LM's benchmark: it says what the text says, and is read first."""

import base64
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.runs.measurement import RunFailure
from farm.harness.base.output_lines import plain_lines
from farm.harness.llm.litert_lm.benchmark_info import BenchmarkInfo, MalformedInfo, benchmark_infos
from farm.harness.llm.litert_lm.metrics_proto import metrics_infos
from tests.harness.external.samples import message_field, varint_field
from tests.support.harness import tool_samples as sample

NAME = "litert_lm_advanced_main"
WARM = sample.output("litert_lm_warm")
TEXTS = "The tallest building is tall.\n" * 6
MS = 1000


def turn(us: int, tokens: int) -> bytes:
    return varint_field(1, us) + varint_field(2, tokens)


def phase(name: str, us: int) -> bytes:
    return message_field(2, message_field(1, name.encode()) + varint_field(2, us))


def metrics(info: BenchmarkInfo) -> bytes:
    """What the tool writes where it prints such an iteration."""
    phases = b"".join(phase(f"Init {name}", round(ms * MS)) for name, ms in info.phases_ms.items())
    turns = (
        message_field(number, turn(round(each.duration_ns / 1e3), each.tokens))
        for number, each in ((4, info.prefill), (5, info.decode))
    )
    asked = message_field(1, varint_field(2, 64))
    return message_field(1, asked + phases + b"".join(turns) + message_field(6, turn(41, 9)))


PRINTED = benchmark_infos(plain_lines(WARM))
WRITTEN = b"".join(map(metrics, PRINTED))


def printed_file(content: bytes) -> str:
    """As the command prints it behind the tool's output."""
    encoded = base64.encodebytes(content).decode()
    return f"\nbenchfarm_file metrics.pb\n{encoded}benchfarm_file_end\n"


def test_file_and_text_agree() -> None:
    found = metrics_infos(WRITTEN)
    assert len(found) == len(PRINTED) == 6
    for written, printed in zip(found, PRINTED, strict=True):
        assert written.phases_ms == pytest.approx(printed.phases_ms)
        assert written.load_ms == pytest.approx(188.73)
        assert (written.prefill.tokens, written.decode.tokens) == (9, 64)
        # In steps of 1 us.
        assert written.decode.duration_ns == pytest.approx(printed.decode.duration_ns, abs=500)
        assert written.first_token_ns == pytest.approx(printed.first_token_ns, abs=1000)


def test_the_command_asks_for_the_file_and_prints_it() -> None:
    plain, asked = (sample.plan(NAME, metric_proto_file_path=value).argv for value in (False, True))
    assert not any("metric" in word for word in plain)
    assert "--metric_proto_file_path=metrics.pb" in asked
    assert "metrics.pb" in asked[2]


def test_the_file_is_read_before_the_text() -> None:
    without_times = WARM.replace("BenchmarkInfo:", "Something:")
    assert isinstance(sample.read(NAME, TEXTS, stderr=without_times), RunFailure)
    found = sample.reading(
        NAME, TEXTS + printed_file(WRITTEN), stderr=without_times, metric_proto_file_path=True
    )
    assert found.samples_ns == (98283000, 99418000, 97964000, 98992000, 98152000)


def test_the_text_stands_in_for_a_file_that_was_not_written() -> None:
    found = sample.reading(NAME, TEXTS, stderr=WARM, metric_proto_file_path=True)
    assert found.samples_ns[0] == 98282891


def test_what_a_model_writes_is_no_file_of_a_run_that_did_not_ask_for_one() -> None:
    found = sample.reading(NAME, TEXTS + printed_file(b"\x0a\xff"), stderr=WARM)
    assert found.samples_ns[0] == 98282891


def test_the_file_is_no_part_of_the_generated_text() -> None:
    found = sample.reading(NAME, TEXTS + printed_file(WRITTEN), stderr=WARM, metric_proto_file_path=True)
    assert found.generation is not None
    assert found.generation.text_sha256 == sha256(TEXTS.encode()).hexdigest()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x0a\xff", "the file of metrics is none"),
        (message_field(1, message_field(4, turn(10, 9))), "0 decode turns"),
        (message_field(1, message_field(4, turn(10, 9)) + message_field(5, turn(0, 9))), "9 tokens in 0 s"),
        (message_field(1, phase("\x00", 1) + message_field(2, message_field(1, b"\xff"))), "none"),
    ],
)
def test_a_file_that_is_no_list_of_whole_iterations_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(MalformedInfo, match=reason):
        metrics_infos(content)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        infos = metrics_infos(content)
    except MalformedInfo:
        return
    assert all(info.decode.duration_ns > 0 for info in infos)
