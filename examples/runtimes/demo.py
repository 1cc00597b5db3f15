"""Compare the runtimes that run on this machine, with one network, on a virtual phone: `make demo-runtimes`.

    python examples/runtimes/demo.py [FOLDER]

It makes the network itself, with random weights, writes it for each runtime that is installed, starts a farm,
and runs one matrix, whose blocks hold all runtimes side by side. What cannot run here is named, with the
reason.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
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
from farm.wire.documents.matrices.matrices import CellView, MatrixView, SpeedupView

HERE = Path(__file__).parent
RUNNER = HERE.parents[1] / "harnesses" / "executor_runner" / "build.py"
#: The writer and the file of each runtime.
FILES = {
    "onnxruntime": ("onnx", "net.onnx"),
    "litert": ("tflite", "net.tflite"),
    "litert-builtin": ("tflite", "net.tflite"),
    "executorch-xnnpack": ("executorch", "net-xnnpack.pte"),
    "executorch-portable": ("executorch", "net-portable.pte"),
    "torchscript": ("torch", "net.pt"),
    "torch-lite": ("torch", "net.ptl"),
}
#: Runtimes and harnesses that the farm has adapters for, and that are not in the table.
ELSEWHERE = (
    "ncnn, MNN, TVM: this demo has no loop for them; `farm variant build` makes their files",
    "benchmark_model, QNN, GPU delegates: they need an Android binary, or hardware that is not here",
    "NNAPI: `make demo-nnapi` runs it, by a library on the CPU",
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
        command = [sys.executable, str(HERE / "network.py"), writer, str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"{writer}: {done.stderr.strip().splitlines()[-1]}"
    built = subprocess.run(
        [sys.executable, str(RUNNER), str(folder)], capture_output=True, text=True, check=False
    )
    if built.returncode:
        for file in folder.glob("*.pte"):
            file.unlink()
        yield f"executor_runner: {built.stderr.strip().splitlines()[-1]}"


def run_matrix(farm: FarmClient, bundle: Path, runtimes: Sequence[str]) -> MatrixView:
    """Register the bundle, and run the matrix with these runtimes."""
    command = [sys.executable, "-m", "farm.cli.shell.main", "harness", "add", "runtimes_loop"]
    given = ["--definition", str(HERE / "definition.yaml"), "--entry", "loop", "--abi", "x86_64"]
    environment = {**os.environ, "FARM_URL": farm.url}
    subprocess.run([*command, str(bundle), *given], env=environment, check=True, capture_output=True)
    spec: dict[str, Any] = yaml.safe_load((HERE / "matrix.yaml").read_text())
    spec["axes"]["runtime"] = list(runtimes)
    # The first, unless that is not installed.
    spec["baseline"]["runtime"] = runtimes[0]
    matrix_id = farm.submit_matrix(spec).matrix_id
    return follow(farm, matrix_id, leaving="The farm of this demo ends with it.")


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


def rows(
    cells: Sequence[CellView], speedups: Mapping[int, SpeedupView], texts: Mapping[str, str], bundle: Path
) -> Iterator[list[str]]:
    """Yield the row of each runtime, in the order of the matrix."""
    expected = network()(ones()).flatten().tolist()
    for cell in cells:
        runtime, text = str(cell.settings["runtime"]), texts.get(cell.label, "")
        values = {metric.name: metric.level.median for metric in cell.metrics}
        speedup = speedups.get(cell.cell_id)
        yield [
            f"{runtime} (A/A)" if speedup is not None and speedup.aa else runtime,
            size_text((bundle / FILES[runtime][1]).stat().st_size),
            fidelity(text, expected),
            placement(text),
            "unknown" if "load_time" not in values else duration_text(values["load_time"] * 1e6),
            "unknown" if "memory_peak_rss" not in values else size_text(values["memory_peak_rss"]),
            "-" if cell.value_ns is None else duration_text(cell.value_ns),
            *compared(speedup),
        ]


HEADS = ("runtime", "size", "error", "placement", "load", "peak memory", "time", *COMPARED_HEADS)
LEGEND = f"""
One network of random weights, 1x3x{SIDE}x{SIDE} to {OUTPUTS} outputs, float32, one thread.
On a virtual phone: these are times of this machine's CPU.
error: the largest difference to torch's outputs, on an input of ones.
load: as each runtime times it.
peak memory: of the process, with Python and what it imports; ExecuTorch's is a C++ program.
"""


def main() -> None:
    """Run everything, and print the table."""
    began_s = time.monotonic()
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/runtimes").resolve()
    shutil.rmtree(folder / "bundle", ignore_errors=True)
    missing = list(write_bundle(folder / "bundle"))
    runtimes = [name for name, (_, file) in FILES.items() if (folder / "bundle" / file).is_file()]
    err().print(f"wrote the network for {', '.join(runtimes)}", highlight=False)
    with farm_process(folder / "farm", virtual=1) as url, connect_to(url) as farm:
        wait_for_devices(farm, 1, err())
        matrix = run_matrix(farm, folder / "bundle", runtimes)
        speedups = {row.cell_id: row for row in farm.speedups(matrix_id=matrix.matrix_id)}
        lines = list(
            rows(
                list(farm.cells(matrix.matrix_id)),
                speedups,
                outputs_by_label(farm, matrix),
                folder / "bundle",
            )
        )
    took_s = time.monotonic() - began_s
    reasons = [f"not run: {reason}" for reason in (*missing, *ELSEWHERE)]
    sys.stdout.write("\n".join([table(HEADS, lines), LEGEND, *reasons, f"It took {took_s:.0f} s.", ""]))


if __name__ == "__main__":
    main()
