"""Results of llama.cpp's `llama-bench -o json` and `-o jsonl`: one record for each test.

Its README (`tools/llama-bench` of ggml-org/llama.cpp) lists the fields.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from farm.harness.external.json_document import JsonRecord
from farm.harness.external.results import ExternalFile, ExternalResult, ImportFormat, Statistic
from farm.harness.llm.llama_cpp.output import bench_test_name

#: By its README.
_CLOCK = "processing of the prompt and generation of tokens, without tokenization and sampling"
_SETTINGS = (
    "model_type",
    "n_threads",
    "n_gpu_layers",
    "n_batch",
    "n_ubatch",
    "type_k",
    "type_v",
    "flash_attn",
    "gpu_info",
    "devices",
)


def is_llama_bench(first: JsonRecord) -> bool:
    """Tell whether the first record is one of these."""
    return all(name in first for name in ("n_prompt", "n_gen", "avg_ts"))


def llama_bench_file(records: Sequence[JsonRecord]) -> ExternalFile:
    """Return the time and the rate of each test.

    Raises:
        InvalidInput: a record has neither.
    """
    results = tuple(result for record in records for result in _results(record))
    return ExternalFile(format=ImportFormat.LLAMA_BENCH, results=results)


def _results(record: JsonRecord) -> Iterator[ExternalResult]:
    path = record.text("model_filename")
    commit, number = record.text("build_commit"), record.count("build_number")
    result = partial(
        ExternalResult,
        tool="llama-bench",
        tool_version=f"{commit} ({number})" if commit and number is not None else commit,
        model=path.replace("\\", "/").rsplit("/", 1)[-1] if path else None,
        device=record.text("cpu_info"),
        backend=record.text("backends"),
        clock_covers=_CLOCK,
        statistic=Statistic.MEAN,
        date=record.text("test_time"),
        settings=record.told(*_SETTINGS),
    )
    rate = record.number("avg_ts")
    if rate is None:
        raise record.wrong("avg_ts", "a number")
    time_ns = record.number("avg_ns")
    if time_ns is not None:
        samples = record.numbers("samples_ns")
        yield result(
            metric=f"{_test(record)} time",
            value=time_ns,
            unit="ns",
            deviation=record.number("stddev_ns"),
            samples=samples,
            sample_count=len(samples) or None,
        )
    samples = record.numbers("samples_ts")
    yield result(
        metric=f"{_test(record)} rate",
        value=rate,
        unit="tokens/s",
        deviation=record.number("stddev_ts"),
        samples=samples,
        sample_count=len(samples) or None,
    )


def _test(record: JsonRecord) -> str:
    tokens = (record.count(name) or 0 for name in ("n_prompt", "n_gen", "n_depth"))
    return bench_test_name(*tokens)
