"""Measure one small language model by five runtimes on a virtual phone: `make demo-llm`.

    python examples/llm/demo.py [FOLDER]

It builds llama-bench, makes the models itself, with random weights, starts a farm, and runs a matrix by each
runtime. What cannot run here is named, with the reason.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import executorch_file
import genai_file
import gguf_file
import litertlm_file
import mnn_file
import yaml
from build_llama_bench import VERSION, build
from network import SIZES

from farm.cli.farm.demo import farm_process, wait_for_devices
from farm.cli.farm.demo_table import COMPARED_HEADS, compared, table
from farm.cli.files.local_variants import add_variant, manifest_of_file
from farm.cli.matrices.matrix import follow
from farm.cli.shell.address import connect_to
from farm.cli.shell.output import err
from farm.client.farm_client import FarmClient
from farm.core.base.units import duration_text, size_text
from farm.wire.documents.matrices.matrices import CellView
from farm.wire.documents.results.speedups import SpeedupView

HERE = Path(__file__).parent
HARNESSES = HERE.parents[1] / "harnesses" / "llm"
#: Scripts that import a wheel, which is for this machine only.
SCRIPTS = ("litert_lm_advanced_main", "llama_main", "model_benchmark", "llm_bench")
ELSEWHERE = ("all five on OpenCL, Vulkan, Hexagon or an NPU: they need hardware that is not here",)
LEGEND = f"""
One llama: {SIZES.layers} layers x {SIZES.width}, {SIZES.inner} inside, {SIZES.heads} heads.
Its weights are random: what it would write is nothing. All files have the same weights.
llama-bench of llama-cpp-python {VERSION}, built here; LiteRT-LM of the wheel litert-lm-api; ExecuTorch's
runner of the wheel executorch, on XNNPACK; GenAI of the wheel onnxruntime-genai; the engine of the wheel
MNN; one thread each.
On a virtual phone: these are times of this machine's CPU.
prefill: a prompt of 256 tokens at once. decode: 64 tokens, one by one.
first: no caches are there. cold: a new process finds them. warm: again in the same process.
time: the median of one repetition, to which speedup and verdict belong; of GenAI the mean of one token.
The tables are not compared: llama-bench samples nothing, and the others do.
ExecuTorch's clock has steps of 1 ms, and its peak memory includes Python and torch.
The peak memory of GenAI and of MNN includes Python, and GenAI's clock the calls from it.
Load time: llama-bench and GenAI print none; of MNN it is the mean of three, in steps of 10 ms.
Time to first token: llama-bench and MNN print none.
"""
Row = tuple[str, ...]


@dataclass(frozen=True)
class Runtime:
    """A runtime with its tool, its files and its table."""

    harness: str
    matrix: str
    suffix: str
    precisions: Sequence[str]
    write: Callable[[Path, str], None]
    heads: Row
    #: The cells of a row before those of the comparison.
    describe: Callable[[CellView, Mapping[str, float | None], str], Row]
    #: Rows are in the order of this setting's values.
    order: tuple[str, Sequence[object]]
    #: Files that each model needs beside it, by name.
    beside: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)
    #: Those that each has of its own, by name: how they end behind the name of the model.
    own: Mapping[str, str] = field(default_factory=dict)


def _llama_cpp_row(cell: CellView, values: Mapping[str, float | None], precision: str) -> Row:
    generated = cell.settings["n_gen"]
    rate = values.get("decode_rate" if generated else "prefill_rate")
    test = f"decode {generated}" if generated else f"prefill {cell.settings['n_prompt']}"
    return test, precision, _rate(rate), _size(values.get("memory_peak_rss"))


def _regime_row(cell: CellView, values: Mapping[str, float | None], precision: str) -> Row:
    return (
        str(cell.settings["regime"]),
        precision,
        _milliseconds(values.get("load_time")),
        _milliseconds(values.get("time_to_first_token")),
        _rate(values.get("prefill_rate")),
        _rate(values.get("decode_rate")),
        _size(values.get("memory_peak_rss")),
    )


def _mnn_row(_cell: CellView, values: Mapping[str, float | None], precision: str) -> Row:
    return (
        precision,
        _milliseconds(values.get("load_time")),
        _rate(values.get("prefill_rate")),
        _rate(values.get("decode_rate")),
        _size(values.get("memory_peak_rss")),
    )


RUNTIMES = (
    Runtime(
        harness="llama-bench",
        matrix="llama_cpp.yaml",
        suffix="gguf",
        precisions=tuple(gguf_file.TYPES),
        write=gguf_file.write,
        heads=("test", "format", "tokens/s", "peak memory"),
        describe=_llama_cpp_row,
        order=("n_gen", (0, 64)),
    ),
    Runtime(
        harness="litert_lm_advanced_main",
        matrix="litert_lm.yaml",
        suffix="litertlm",
        precisions=litertlm_file.PRECISIONS,
        write=litertlm_file.write,
        heads=("regime", "format", "load", "first token", "prefill/s", "decode/s", "peak memory"),
        describe=_regime_row,
        order=("regime", ("first", "cold", "warm")),
    ),
    Runtime(
        harness="llama_main",
        matrix="executorch.yaml",
        suffix="pte",
        precisions=executorch_file.PRECISIONS,
        write=executorch_file.write,
        heads=("regime", "format", "load", "first token", "prefill/s", "decode/s", "peak memory"),
        describe=_regime_row,
        # Without caches on a CPU, a first start is a cold one.
        order=("regime", ("cold", "warm")),
        beside={executorch_file.TOKENIZER: executorch_file.tokenizer},
    ),
    Runtime(
        harness="model_benchmark",
        matrix="genai.yaml",
        suffix="onnx",
        precisions=genai_file.PRECISIONS,
        write=genai_file.write,
        heads=("regime", "format", "load", "first token", "prefill/s", "decode/s", "peak memory"),
        describe=_regime_row,
        order=("regime", ("cold", "warm")),
        beside=genai_file.BESIDE,
    ),
    Runtime(
        harness="llm_bench",
        matrix="mnn.yaml",
        suffix="mnn",
        precisions=mnn_file.PRECISIONS,
        write=mnn_file.write,
        heads=("format", "load", "prefill/s", "decode/s", "peak memory"),
        describe=_mnn_row,
        order=("n_gen", (64,)),
        beside=mnn_file.BESIDE,
        own={mnn_file.WEIGHTS: mnn_file.WEIGHTS_ENDING},
    ),
)


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else duration_text(value * 1e6)


def _size(value: float | None) -> str:
    return "unknown" if value is None else size_text(value)


def _bytes_of(runtime: Runtime, path: Path) -> int:
    """Return the size of a model with its weights."""
    return sum(
        each.stat().st_size for each in (path, *(Path(f"{path}{end}") for end in runtime.own.values()))
    )


def make_models(folder: Path, runtime: Runtime) -> dict[str, Path]:
    """Return the file of each number format, written where it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {precision: folder / f"random-{precision}.{runtime.suffix}" for precision in runtime.precisions}
    for precision, path in files.items():
        if not path.is_file():
            unfinished = path.with_suffix(".unfinished")
            runtime.write(unfinished, precision)
            for ending in runtime.own.values():
                Path(f"{unfinished}{ending}").rename(f"{path}{ending}")
            unfinished.rename(path)
    for name, content in runtime.beside.items():
        (folder / name).write_bytes(content())
    return files


def measure(farm: FarmClient, runtime: Runtime, program: Path, files: Mapping[str, Path]) -> str:
    """Register program and models, run the matrix, and return its table."""
    command = [sys.executable, "-m", "farm.cli.shell.main", "harness", "add", runtime.harness, str(program)]
    if runtime.harness in SCRIPTS:
        command += ["--abi", "x86_64"]
    subprocess.run(command, env={**os.environ, "FARM_URL": farm.url}, check=True, capture_output=True)
    for precision, path in files.items():
        beside = [str(path.with_name(name)) for name in runtime.beside]
        beside += [f"{name}={path}{ending}" for name, ending in runtime.own.items()]
        manifest = manifest_of_file(path, files=beside, model="random", precision=precision)
        add_variant(farm, path, manifest, files=beside)
    matrix_id = farm.submit_matrix(yaml.safe_load((HERE / "matrices" / runtime.matrix).read_text())).matrix_id
    follow(farm, matrix_id, leaving="The farm of this demo ends with it.")
    speedups = {row.cell_id: row for row in farm.speedups(matrix_id=matrix_id)}
    return table_of(runtime, list(rows(runtime, list(farm.cells(matrix_id)), speedups, files)))


def rows(
    runtime: Runtime,
    cells: Sequence[CellView],
    speedups: Mapping[int, SpeedupView],
    files: Mapping[str, Path],
) -> Iterator[Row]:
    """Yield the row of each cell."""
    setting, values_in_order = runtime.order
    for cell in sorted(cells, key=lambda cell: list(values_in_order).index(cell.settings[setting])):
        precision, speedup = str(cell.precision), speedups.get(cell.cell_id)
        values = {metric.name: metric.level.median for metric in cell.metrics}
        name = f"{precision} (A/A)" if speedup is not None and speedup.aa else precision
        yield (
            *runtime.describe(cell, values, name),
            size_text(_bytes_of(runtime, files[precision])),
            "-" if cell.value_ns is None else duration_text(cell.value_ns),
            *compared(speedup),
        )


def table_of(runtime: Runtime, lines: Sequence[Row]) -> str:
    """Return the table of a runtime below its name."""
    heads = (*runtime.heads, "file", "time", *COMPARED_HEADS)
    return "\n".join([f"{runtime.harness}:", table(heads, lines), ""])


def main() -> None:
    """Run everything, and print the tables."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/llm").resolve()
    err().print("building llama-bench, where it is not there yet: some minutes", highlight=False)
    scripts = {name: HARNESSES / name for name in SCRIPTS}
    programs = {"llama-bench": build(folder, os.cpu_count() or 1), **scripts}
    files = {runtime.harness: make_models(folder / "models", runtime) for runtime in RUNTIMES}
    began_s = time.monotonic()
    with farm_process(folder / "farm", virtual=1) as url, connect_to(url) as farm:
        wait_for_devices(farm, 1, err())
        tables = [
            measure(farm, runtime, programs[runtime.harness], files[runtime.harness]) for runtime in RUNTIMES
        ]
    took_s = time.monotonic() - began_s
    reasons = [f"not run: {reason}" for reason in ELSEWHERE]
    sys.stdout.write("\n".join([*tables, LEGEND, *reasons, f"It took {took_s:.0f} s, built.", ""]))


if __name__ == "__main__":
    main()
