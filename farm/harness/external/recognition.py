"""Recognition of the format of a file by its content."""

import codecs
import re
from collections.abc import Sequence
from typing import Any

from farm.core.errors import InputTooLarge, InvalidInput
from farm.harness.base.adapter import Harness
from farm.harness.external.benchmark_result import find_benchmark_result
from farm.harness.external.collected.ai_hub import ai_hub_file, is_ai_hub
from farm.harness.external.collected.leaderboard import is_leaderboard, leaderboard_file
from farm.harness.external.collected.mlperf_mobile import is_mlperf_mobile, mlperf_mobile_file
from farm.harness.external.collected.published import is_published, published_file
from farm.harness.external.executorch import executorch_file, is_executorch
from farm.harness.external.json_document import json_documents, record_list
from farm.harness.external.live_timing import is_live_timing, live_timing_file
from farm.harness.external.llama_bench import is_llama_bench, llama_bench_file
from farm.harness.external.results import MAX_IMPORT_BYTES, ExternalFile, checked_file
from farm.harness.external.tool_log import tool_log_file
from farm.harness.external.xctest import find_xctest
from farm.harness.registry import get_harness

_UNKNOWN_HINT = "docs/import.md lists the formats; a log of another tool needs --harness NAME"
#: Lines that only the output of one tool has; iOS's TestApp prints those of speed_benchmark_torch.
_LOG_LINES = {
    "speed_benchmark_torch": re.compile(r"Main runs? finished\."),
    "benchmark_model": re.compile(
        r"Inference timings in us|inference timings in us|Running benchmark for at least|Benchmarking failed"
        r"|BENCHMARK RESULTS"
    ),
}
_ENCODING_BY_MARK = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_external_file(data: bytes, *, harness: Harness | None = None) -> ExternalFile:
    """Return the results of a file: by its content, or by the adapter of the tool whose output it is.

    Raises:
        InputTooLarge: it has too many bytes.
        InvalidInput: it has no format that is known, or is not what that format says.
    """
    if len(data) > MAX_IMPORT_BYTES:
        raise InputTooLarge(
            f"{len(data)} bytes are more than the {MAX_IMPORT_BYTES} of one file",
            hint="split it, or cut the log",
        )
    if not data.strip():
        raise InvalidInput("the file is empty", hint="was it written to the end?")
    if harness is not None:
        return checked_file(tool_log_file(_log_text(data), harness))
    return checked_file(_recognized(data))


def _recognized(data: bytes) -> ExternalFile:
    text = find_text(data)
    unparsed: InvalidInput | None = None
    if text is not None and text.lstrip()[:1] in ("{", "["):
        try:
            documents = json_documents(text)
        except InvalidInput as error:
            # Loggers begin their lines with brackets, too.
            unparsed = error
        else:
            return _of_json(documents)
    message = find_benchmark_result(data)
    if message is not None:
        return message
    if text is None:
        raise InvalidInput("the file is neither text nor a result of benchmark_model", hint=_UNKNOWN_HINT)
    return _of_log(text, unparsed)


def _of_log(text: str, unparsed: InvalidInput | None) -> ExternalFile:
    measured = find_xctest(text)
    if measured is not None:
        return measured
    if is_published(text):
        return published_file(text)
    for name, line in _LOG_LINES.items():
        if line.search(text) is not None:
            return tool_log_file(text, get_harness(name))
    raise unparsed or InvalidInput("no format is recognized in it", hint=_UNKNOWN_HINT)


def _of_json(documents: Sequence[Any]) -> ExternalFile:
    records = record_list(documents)
    if not records:
        raise InvalidInput("the list is empty", hint="was it written to the end?")
    first = records[0]
    if is_executorch(first):
        return executorch_file(records)
    if is_llama_bench(first):
        return llama_bench_file(records)
    if is_leaderboard(first):
        return leaderboard_file(records)
    if len(records) == 1 and is_live_timing(first):
        return live_timing_file(first)
    if len(records) == 1 and is_mlperf_mobile(first):
        return mlperf_mobile_file(first)
    if len(records) == 1 and is_ai_hub(first):
        return ai_hub_file(first)
    names = ", ".join(sorted(first.fields)[:6])
    raise InvalidInput(
        f"no format of JSON is recognized in it: its first object has {names[:200]}", hint=_UNKNOWN_HINT
    )


def find_text(data: bytes) -> str | None:
    """Return the text of a file, also as PowerShell writes it; None for other bytes."""
    encoding = next((encoding for mark, encoding in _ENCODING_BY_MARK if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _log_text(data: bytes) -> str:
    """Return the text of a log; phones print bytes that are none, and these are replaced."""
    return find_text(data) or data.decode("utf-8", errors="replace").replace("\0", "")
