"""Commands print the documents that docs/json.md lists."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.architecture.docs.json_shapes import SHAPES
from tests.cli.matrices.test_matrix import MATRIX, Measured, document, measured, original

__all__ = ["measured", "original"]
#: These wait for an agent, which this farm has not.
WAITING = {
    "run",
    "compare A B",
    "matrix submit FILE --watch",
    "matrix rerun ID --watch",
    "rerun ATTEMPT",
    "bisect",
}


def test_every_listed_command_prints_its_documents(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(MATRIX)
    (job, *_) = document(capsys, "matrix", "jobs", measured.done)
    ids = {
        "matrix": measured.done,
        "job": job["job_id"],
        "attempt": job["attempts"][0],
        "cell": next(iter(measured.cells.values())),
        "device": "phone-1",
        "host": "bench-1",
    }
    names = {
        "harness": "speed_benchmark_torch",
        "variant": "mobilenet_v2/float32/torchscript",
        "matrix": "small",
    }

    def words(command: str) -> list[object]:
        first, *rest = command.split()
        noun = rest[0] if first == "explain" else first
        replaced: dict[str, Any] = {
            "ID": ids.get(noun),
            "NAME": names.get(noun),
            "FILE": file,
            "MODEL": "mobilenet_v2",
            "ATTEMPT": ids["attempt"],
            "CHANGE": measured.change,
            "STATE": "acknowledged",
            "TEXT": "seen",
        }
        replaced |= {"MODEL": "mobilenet_v2", "GROUP": "soc"}
        return [replaced.get(word, word) for word in command.split()]

    for command, shape in SHAPES.items():
        if command not in WAITING:
            printed = document(capsys, *words(command))
            read = TypeAdapter(shape).validate_python(printed)
            # Nothing is printed that the type has not, and nothing left out.
            assert TypeAdapter(shape).dump_python(read, mode="json") == printed, command
