"""Two runtimes write the same tokens by the files of the example: both are the network that they claim."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.farm.processes import CHECKOUT

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(find_spec, ("onnx", "onnxruntime_genai", "_mnncengine"))),
        reason="onnx, onnxruntime-genai or MNN is not installed (make installs them)",
    ),
]

EXAMPLE = CHECKOUT / "examples" / "llm"
PROMPT = list(range(300, 340))
#: More could differ by rounding: MNN's embeddings are bfloat16.
TOKENS = 12
BY_GENAI = """
import json, sys
import onnxruntime_genai as genai
folder, prompt, count = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
model = genai.Model(folder)
parameters = genai.GeneratorParams(model)
parameters.set_search_options(max_length=len(prompt) + count)
generator = genai.Generator(model, parameters)
generator.append_tokens(prompt)
for _ in range(count):
    generator.generate_next_token()
print("tokens", json.dumps([int(token) for token in generator.get_sequence(0)[len(prompt):]]))
"""
BY_MNN = """
import json, sys
import MNN.llm as llm
folder, prompt, count = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
model = llm.create(f"{folder}/config.json")
model.set_config({"precision": "high", "reuse_kv": False, "thread_num": 1})
model.load()
model.generate_init()
print("tokens", json.dumps([int(token) for token in model._c_obj.generate(prompt, count)]))
"""


def tokens(folder: Path, writer: str, names: dict[str, str], program: str) -> list[int]:
    """What a runtime writes behind the prompt, in a process of its own."""
    words = [sys.executable, str(EXAMPLE / writer), str(folder), "--tiny", "f32"]
    subprocess.run(words, check=True, timeout=120)
    for name, wanted in names.items():
        (folder / name).rename(folder / wanted)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), json.dumps(PROMPT), str(TOKENS)],
        env={**os.environ, "ORT_DISABLE_TELEMETRY": "1"},
        check=True,
        timeout=120,
        capture_output=True,
        text=True,
    )
    [line] = [line for line in done.stdout.splitlines() if line.startswith("tokens ")]
    found: list[int] = json.loads(line.removeprefix("tokens "))
    return found


def test_mnn_and_genai_write_the_same(tmp_path: Path) -> None:
    by_genai = tokens(tmp_path / "genai", "genai_file.py", {"random-f32.onnx": "model.onnx"}, BY_GENAI)
    names = {"random-f32.mnn": "llm.mnn", "random-f32.mnn.weight": "llm.mnn.weight"}
    by_mnn = tokens(tmp_path / "mnn", "mnn_file.py", names, BY_MNN)
    assert len(by_genai) == TOKENS
    assert by_mnn == by_genai
    # The network says something about each place.
    assert len(set(by_genai)) > TOKENS // 2
