"""Compare the runtimes that run on this machine, with one network, on a virtual phone: `make demo-runtimes`.

    python examples/runtimes/demo.py [FOLDER]

It makes the network itself, with random weights, writes it for each runtime that is installed, starts a farm,
and runs two matrices: one whose blocks hold all runtimes side by side, and one that compares int8 with
float32 within each. What cannot run here is named, with the reason.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from network import OUTPUTS, SIDE, network, ones

from farm.cli.farm.demo import farm_process, wait_for_devices
from farm.cli.farm.demo_table import COMPARED_HEADS, compared, table
from farm.cli.matrices.matrix import follow
from farm.cli.shell.address import connect_to
from farm.cli.shell.output import err
from farm.client.farm_client import FarmClient
from farm.core.base.units import duration_text, size_text
from farm.wire.documents.matrices.matrices import CellView, MatrixView

HERE = Path(__file__).parent
RUNNER = HERE.parents[1] / "harnesses" / "compiled" / "executor_runner" / "build.py"
FLOAT32 = "float32"
#: The writer and the files of each runtime and its numbers; the sizes of files add up.
FILES: Mapping[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("onnxruntime", FLOAT32): ("onnx", ("net.onnx",)),
    ("litert", FLOAT32): ("tflite", ("net.tflite",)),
    ("litert-builtin", FLOAT32): ("tflite", ("net.tflite",)),
    ("executorch-xnnpack", FLOAT32): ("executorch", ("net-xnnpack.pte",)),
    ("executorch-portable", FLOAT32): ("executorch", ("net-portable.pte",)),
    ("ncnn", FLOAT32): ("ncnn", ("net.param", "net.bin")),
    ("mnn", FLOAT32): ("mnn", ("net.mnn",)),
    ("tvm", FLOAT32): ("tvm", ("net.so",)),
    ("torchscript", FLOAT32): ("torch", ("net.pt",)),
    ("torch-lite", FLOAT32): ("torch", ("net.ptl",)),
    ("onnxruntime", "int8"): ("onnx", ("net-int8.onnx",)),
    ("litert", "int8"): ("tflite", ("net-int8.tflite",)),
    ("executorch-xnnpack", "int8"): ("executorch", ("net-xnnpack-int8.pte",)),
    ("torch-lite", "int8"): ("torch", ("net-int8.ptl",)),
    ("onnxruntime", "int8-signed"): ("onnx", ("net-int8-signed.onnx",)),
    ("litert", "int8-dynamic"): ("tflite", ("net-int8-dynamic.tflite",)),
    ("torch-lite", "int8-qnnpack"): ("torch", ("net-int8.ptl",)),
}
#: Paths of execution that are known to be slow on a PC, and what to take instead.
SLOW_PATHS: Mapping[tuple[str, str], str] = {
    ("litert-builtin", FLOAT32): "LiteRT without its XNNPACK delegate",
    ("executorch-portable", FLOAT32): "portable kernels are for reference; lower the program for XNNPACK",
    ("tvm", FLOAT32): "nothing tuned its loops",
    ("onnxruntime", "int8-signed"): "signed activations in QLinear operators; take unsigned ones and QDQ",
    ("litert", "int8-dynamic"): "dynamic range quantizes activations in each run; quantize statically",
    ("torch-lite", "int8-qnnpack"): "the engine qnnpack is for phones; x86 is torch's choice here",
}
#: Runtimes and harnesses that the farm has adapters for, and that are not in the table.
ELSEWHERE = (
    "QNN, GPU delegates: they need hardware that is not here",
    "NNAPI: `make demo-nnapi` runs it, by a library on the CPU",
    "static int8 of ncnn, MNN and TVM: nothing here makes such a file of this network",
)
#: What shows where a run was placed, in its output; the first that matches counts.
PLACEMENTS = (
    (re.compile(r"Created TensorFlow Lite (\w+) delegate for CPU"), r"\1"),
    (re.compile(r"Method uses backend (\w+)"), r"\1"),
    (re.compile(r"delegate calls: 0"), "portable kernels"),
    (re.compile(r"^placed on: (.+)$", re.MULTILINE), r"\1"),
)
OWN_KERNELS = "its own kernels"
_OUTPUT = re.compile(r"^OutputX 0: tensor\(sizes=\[[^\]]*\], \[([^\]]*)\]\)", re.MULTILINE)


def write_bundle(folder: Path) -> Iterator[str]:
    """Write the program with the files of every runtime that is installed; yield what is not, and why."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "loop", folder / "loop")
    for writer in dict.fromkeys(writer for writer, _ in FILES.values()):
        command = [sys.executable, "-W", "ignore", str(HERE / "files.py"), writer, str(folder)]
        # Else ONNX Runtime writes a device id into the user's cache folder.
        environment = {**os.environ, "ORT_DISABLE_TELEMETRY": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"{writer}: {_last_line(done.stderr)}"
    command = [sys.executable, str(RUNNER), str(folder)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        for file in folder.glob("*.pte"):
            file.unlink()
        yield f"executor_runner: {_last_line(built.stderr)}"


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it printed nothing"])[-1]


def written(bundle: Path) -> list[tuple[str, str]]:
    """Return the runtimes, with their numbers, whose files are all there."""
    return [key for key, (_, names) in FILES.items() if all((bundle / name).is_file() for name in names)]


def register(farm: FarmClient, bundle: Path) -> None:
    """Register the program with its files as a harness."""
    command = [sys.executable, "-m", "farm.cli.shell.main", "harness", "add", "runtimes_loop"]
    given = ["--definition", str(HERE / "definition.yaml"), "--entry", "loop", "--abi", "x86_64"]
    environment = {**os.environ, "FARM_URL": farm.url}
    subprocess.run([*command, str(bundle), *given], env=environment, check=True, capture_output=True)


def run_matrix(farm: FarmClient, file: str, there: Collection[tuple[str, str]]) -> MatrixView:
    """Run a matrix of this folder with what is there."""
    matrix_id = farm.submit_matrix(reduced(yaml.safe_load((HERE / file).read_text()), there)).matrix_id
    return follow(farm, matrix_id, leaving="The farm of this demo ends with it.")


def reduced(spec: Mapping[str, Any], there: Collection[tuple[str, str]]) -> dict[str, Any]:
    """Return a matrix without the runtimes that are missing, and with a baseline that is not."""
    runtimes = [name for name in spec["axes"]["runtime"] if (name, FLOAT32) in there]
    cells = [cell for cell in spec.get("include", ()) if (cell["runtime"], cell["numbers"]) in there]
    made = {**spec, "axes": {**spec["axes"], "runtime": runtimes}}
    if "include" in spec:
        made["include"] = cells
    if "runtime" in spec["baseline"]:
        made["baseline"] = {"runtime": runtimes[0]}
    return made


def outputs_by_label(farm: FarmClient, matrix: MatrixView) -> dict[str, str]:
    """Return what one run of each cell printed."""
    texts: dict[str, str] = {}
    for job in farm.jobs(matrix.matrix_id):
        if job.label not in texts and job.outcome == "succeeded":
            evidence = farm.attempt(job.attempts[-1]).evidence or {}
            texts[job.label] = f"{evidence.get('stdout', '')}\n{evidence.get('stderr', '')}"
    return texts


def placement(text: str) -> str:
    """Return the software that computed, by the line of the run that shows it."""
    for pattern, shown in PLACEMENTS:
        if (match := pattern.search(text)) is not None:
            return match.expand(shown)
    return OWN_KERNELS


def fidelity(text: str, expected: Sequence[float]) -> str:
    """Return the largest difference between the outputs on the phone and torch's on this machine."""
    match = _OUTPUT.search(text)
    values = [] if match is None else [float(word) for word in match[1].split(",")]
    if len(values) != len(expected):
        return "unknown"
    return f"{max(abs(a - b) for a, b in zip(values, expected, strict=True)):.0e}"


def rows(farm: FarmClient, matrix: MatrixView, bundle: Path) -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Yield the row of each cell, in the order of the matrix, with its runtime and numbers."""
    expected = network()(ones()).flatten().tolist()
    speedups = {row.cell_id: row for row in farm.speedups(matrix_id=matrix.matrix_id)}
    texts = outputs_by_label(farm, matrix)
    for cell in farm.cells(matrix.matrix_id):
        key = _key(cell)
        values = {metric.name: metric.level.median for metric in cell.metrics}
        speedup, text = speedups.get(cell.cell_id), texts.get(cell.label, "")
        numbers = f"{key[1]} (A/A)" if speedup is not None and speedup.aa else key[1]
        yield (
            key,
            [
                key[0],
                numbers,
                size_text(sum((bundle / name).stat().st_size for name in FILES[key][1])),
                fidelity(text, expected),
                placement(text),
                "unknown" if "load_time" not in values else duration_text(values["load_time"] * 1e6),
                "unknown" if "memory_peak_rss" not in values else size_text(values["memory_peak_rss"]),
                "-" if cell.value_ns is None else duration_text(cell.value_ns),
                *compared(speedup),
            ],
        )


def _key(cell: CellView) -> tuple[str, str]:
    return str(cell.settings["runtime"]), str(cell.settings["numbers"])


HEADS = ("runtime", "numbers", "size", "error", "placement", "load", "memory", "time", *COMPARED_HEADS)
LEGEND = f"""
One network of random weights, 1x3x{SIDE}x{SIDE} to {OUTPUTS} outputs, one thread.
On a virtual phone: these are times of this machine's CPU.
float32 is compared with the baseline, int8 with float32 of its own runtime, in rounds of a second matrix.
error: the largest difference to torch's float32 outputs, on an input of ones.
load: as each runtime times it.
memory: the peak of the process, with Python and what it imports; ExecuTorch's is a C++ program.
"""


def main() -> None:
    """Run everything, and print the table."""
    began_s = time.monotonic()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/runtimes").resolve()
    bundle = folder / "bundle"
    shutil.rmtree(bundle, ignore_errors=True)
    missing = list(write_bundle(bundle))
    there = written(bundle)
    runtimes = dict.fromkeys(name for name, _ in there)
    err().print(f"wrote the network for {', '.join(runtimes)}", highlight=False)
    with farm_process(folder / "farm", virtual=1) as url, connect_to(url) as farm:
        wait_for_devices(farm, 1, err())
        register(farm, bundle)
        both = [run_matrix(farm, file, there) for file in ("matrix.yaml", "int8.yaml")]
        side_by_side, quantized = (list(rows(farm, matrix, bundle)) for matrix in both)
    # float32 is in the first matrix already.
    shown = [*side_by_side, *(row for row in quantized if row[0][1] != FLOAT32)]
    slow = [f"slow path: {' '.join(key)}: {SLOW_PATHS[key]}" for key, _ in shown if key in SLOW_PATHS]
    reasons = [f"not run: {reason}" for reason in (*missing, *ELSEWHERE)]
    took = f"It took {time.monotonic() - began_s:.0f} s."
    lines = [table(HEADS, [line for _, line in shown]), LEGEND, *slow, *reasons, took, ""]
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    main()
