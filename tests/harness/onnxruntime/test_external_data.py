"""ONNX Runtime reads weights beside a model where both are links, as on a device."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.cli.files.local_variants import manifest_of_file
from farm.harness.base.adapter import model_files

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(find_spec, ("onnx", "onnxruntime"))), reason="onnx or onnxruntime is not installed"
    ),
]

#: Writes a product with a matrix of ones, whose values are in `net.onnx.data`.
WRITE = """
import sys, numpy, onnx
from onnx import helper, numpy_helper
float32, place = onnx.TensorProto.FLOAT, sys.argv[1]
weights = numpy_helper.from_array(numpy.ones((64, 64), numpy.float32), "w")
ends = [helper.make_tensor_value_info(name, float32, [1, 64]) for name in "xy"]
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weights])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, place, save_as_external_data=True, location="net.onnx.data", size_threshold=0)
"""
RUN = """
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(float(session.run(None, {"x": numpy.ones((1, 64), numpy.float32)})[0].sum()))
"""


def python(code: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "ORT_DISABLE_TELEMETRY": "1"},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.stdout


def test_weights_are_found_beside_the_link_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    python(WRITE, path)
    manifest = manifest_of_file(path)
    assert [file.path for file in manifest.files] == ["", "net.onnx.data"]
    cache, work = tmp_path / "cache", tmp_path / "work"
    cache.mkdir()
    for file in manifest.files:
        path.with_name(file.path or path.name).rename(cache / file.digest)
    for planned in model_files(manifest):
        link = work / planned.path
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(cache / planned.digest)
    assert python(RUN, work / model_files(manifest)[0].path) == "4096.0\n"
