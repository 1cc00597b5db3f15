"""Measure a small language model in three number formats by llama.cpp on a virtual phone: `make demo-llm`.

    python examples/llm/demo.py [FOLDER]

It builds llama-bench, makes the models itself, with random weights, starts a farm, and runs one matrix. What
cannot run here is named, with the reason.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml
from build_llama_bench import VERSION, build
from model import HEADS, INNER, LAYERS, TYPES, VOCABULARY, WIDTH, write

from farm.cli.farm.demo import farm_process, wait_for_devices
from farm.cli.farm.demo_table import COMPARED_HEADS, compared, table
from farm.cli.files.local_variants import add_variant, manifest_of_file
from farm.cli.matrices.matrix import follow
from farm.cli.shell.address import connect_to
from farm.cli.shell.output import err
from farm.client.farm_client import FarmClient
from farm.core.base.units import duration_text, size_text
from farm.wire.documents.matrices.matrices import CellView, MatrixView, SpeedupView

HERE = Path(__file__).parent
ELSEWHERE = (
    "LiteRT-LM, ONNX Runtime GenAI, ExecuTorch's llama_main, MNN's llm_bench: the farm has no adapter for"
    " them",
    "llama.cpp on OpenCL, Vulkan, Hexagon: it needs hardware that is not here",
)
HEADS_OF_TABLE = ("test", "format", "size", "tokens/s", "peak memory", "time", *COMPARED_HEADS)
LEGEND = f"""
A llama of {LAYERS} layers x {WIDTH}, {INNER} inside, {HEADS} heads, {VOCABULARY} words.
Its weights are random: what it would write is nothing.
llama-bench of llama-cpp-python {VERSION}, built here; one thread.
On a virtual phone: these are times of this machine's CPU.
prefill: a prompt of so many tokens at once. decode: so many tokens, one by one.
time: the median of one repetition, to which speedup and verdict belong.
Load time and time to first token: the tool prints none.
"""


def make_models(folder: Path) -> dict[str, Path]:
    """Return the file of each number format, written where it is not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {precision: folder / f"random-{precision}.gguf" for precision in TYPES}
    for precision, path in files.items():
        if not path.is_file():
            unfinished = path.with_suffix(".unfinished")
            write(unfinished, precision)
            unfinished.rename(path)
    return files


def run_matrix(farm: FarmClient, program: Path, files: Mapping[str, Path]) -> MatrixView:
    """Register program and models, and run the matrix."""
    command = [sys.executable, "-m", "farm.cli.shell.main", "harness", "add", "llama-bench", str(program)]
    subprocess.run(command, env={**os.environ, "FARM_URL": farm.url}, check=True, capture_output=True)
    for precision, path in files.items():
        add_variant(farm, path, manifest_of_file(path, model="random", precision=precision))
    matrix_id = farm.submit_matrix(yaml.safe_load((HERE / "matrix.yaml").read_text())).matrix_id
    return follow(farm, matrix_id, leaving="The farm of this demo ends with it.")


def rows(
    cells: Sequence[CellView], speedups: Mapping[int, SpeedupView], files: Mapping[str, Path]
) -> Iterator[list[str]]:
    """Yield the row of each cell: prefill first, then decode."""
    for cell in sorted(cells, key=lambda cell: int(cell.settings["n_gen"] or 0)):
        generated, precision = cell.settings["n_gen"], str(cell.precision)
        values = {metric.name: metric.level.median for metric in cell.metrics}
        rate = values.get("decode_rate" if generated else "prefill_rate")
        speedup = speedups.get(cell.cell_id)
        yield [
            f"decode {generated}" if generated else f"prefill {cell.settings['n_prompt']}",
            f"{precision} (A/A)" if speedup is not None and speedup.aa else precision,
            size_text(files[precision].stat().st_size),
            "-" if rate is None else f"{rate:.4g}",
            "unknown" if "memory_peak_rss" not in values else size_text(values["memory_peak_rss"]),
            "-" if cell.value_ns is None else duration_text(cell.value_ns),
            *compared(speedup),
        ]


def main() -> None:
    """Run everything, and print the table."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/llm").resolve()
    err().print("building llama-bench, where it is not there yet: some minutes", highlight=False)
    program = build(folder, os.cpu_count() or 1)
    files = make_models(folder / "models")
    began_s = time.monotonic()
    with farm_process(folder / "farm", virtual=1) as url, connect_to(url) as farm:
        wait_for_devices(farm, 1, err())
        matrix = run_matrix(farm, program, files)
        speedups = {row.cell_id: row for row in farm.speedups(matrix_id=matrix.matrix_id)}
        lines = list(rows(list(farm.cells(matrix.matrix_id)), speedups, files))
    took_s = time.monotonic() - began_s
    reasons = [f"not run: {reason}" for reason in ELSEWHERE]
    sys.stdout.write(
        "\n".join([table(HEADS_OF_TABLE, lines), LEGEND, *reasons, f"It took {took_s:.0f} s, built.", ""])
    )


if __name__ == "__main__":
    main()
