"""ONNX Runtime GenAI, really run by our `model_benchmark`: the peak of memory is that of this program."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(find_spec, ("onnx", "onnxruntime_genai"))),
        reason="onnx or onnxruntime-genai is not installed (make installs them)",
    ),
]
ROOT = Path(__file__).parents[4]
#: Of the process that is replaced; the program on its tiny model has less.
EARLIER_BYTES = 600_000_000
REPLACED = f"import os, sys; held = b'1' * {EARLIER_BYTES}; os.execv(sys.executable, sys.argv[1:])"


def test_the_peak_of_memory_leaves_out_the_process_that_was_replaced(tmp_path: Path) -> None:
    example = ROOT / "examples" / "llm" / "genai_file.py"
    subprocess.run([sys.executable, str(example), str(tmp_path), "--tiny", "f32"], check=True, timeout=120)
    # The program takes a folder with the name that the configuration has for the model.
    (tmp_path / "random-f32.onnx").rename(tmp_path / "model.onnx")
    script = ROOT / "harnesses" / "llm" / "model_benchmark"
    command = [sys.executable, "-c", REPLACED, sys.executable, str(script), "-i", str(tmp_path)]
    command += ["-l", "20", "--use_random_tokens", "-g", "4", "-r", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    peak = re.search(r"Peak working set size: (\d+) bytes", done.stdout)
    assert peak is not None, done.stdout
    assert 20_000_000 < int(peak[1]) < EARLIER_BYTES
