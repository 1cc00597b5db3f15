"""llama-bench on a virtual phone, from `farm harness add` to placement and metrics.

The program prints what the real one printed here: building that takes minutes (`make demo-llm` does it).
"""

import subprocess
import sys
from pathlib import Path

import pytest

from farm.blobs.inspection import check_model_file
from farm.cli.files.local_variants import manifest_of_file
from farm.core.errors import VariantInvalid
from farm.core.models.variant import Format
from tests.core.models.llm.test_gguf import gguf
from tests.support.farm.processes import CHECKOUT, FarmProcess
from tests.support.harness.tool_samples import output

pytestmark = pytest.mark.long

#: It runs a file of the right beginning only, and only with the words of the plan.
PROGRAM = """#!/bin/sh
[ "$1 $(head -c 4 "$2")" = "-m GGUF" ] || { echo "error: failed to load model '$2'" >&2; exit 1; }
shift 2
[ "$*" = "-o jsonl -r 5 -p 512 -n 128 -t 1 -ngl 0 -dev none" ] || { echo "unexpected: $*" >&2; exit 2; }
# A process that took less than its iterations is not believed.
sleep 1
cat <<'END'
RECORDS
END
"""


def test_the_models_of_the_example_are_whole_and_have_as_many_weights_as_llama_cpp_counts(
    tmp_path: Path,
) -> None:
    pytest.importorskip("gguf")
    model = CHECKOUT / "examples" / "llm" / "gguf_file.py"
    subprocess.run([sys.executable, str(model), str(tmp_path)], check=True, timeout=120)
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["random-f16.gguf", "random-q4_0.gguf", "random-q8_0.gguf"]
    for path in files:
        assert check_model_file(path) is Format.GGUF
        # As `model_n_params` of the real tool.
        assert manifest_of_file(path, precision="x").parameters == 23_075_328
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(VariantInvalid, match="not a whole model file"):
            check_model_file(path)


def test_a_gguf_file_is_measured_with_its_rates_and_the_proof_of_the_cpu(
    farm: FarmProcess, tmp_path: Path
) -> None:
    program, model = tmp_path / "llama-bench", tmp_path / "net.gguf"
    program.write_text(PROGRAM.replace("RECORDS", output("llama_bench").strip()))
    model.write_bytes(gguf())
    farm.cli("harness", "add", "llama-bench", str(program), "--abi", "x86_64")
    farm.cli("variant", "add", str(model), "--model", "net", "--precision", "q4_0")
    axes = {"model": "net", "precision": "q4_0", "format": "gguf", "backend": "cpu"}
    matrix_id = farm.submit(
        {
            "name": "llm",
            "harness": "llama-bench",
            "axes": axes,
            "metrics": ["prefill_rate", "decode_rate"],
            "devices": {"virtual": True},
            "rounds": 1,
        }
    )
    assert farm.await_matrix(matrix_id, within_s=100).jobs_by_outcome == {"succeeded": 1}
    with farm.client() as client:
        [cell] = client.cells(matrix_id)
    assert cell.value_ns == 98_282_891
    assert {metric.name: round(metric.level.median) for metric in cell.metrics} == {
        "prefill_rate": 2137,
        "decode_rate": 1299,
    }
    [placed] = farm.cli("placement")
    assert (placed["accelerator"], placed["actual_backend"]) == ("cpu", "cpu")
    assert '"backends": "CPU"' in placed["proof"]
