"""Fuzzers: random changes of good texts and files, given to everything that reads what comes from outside.

Each runs for a time, with a seed. A reader may refuse what it gets, by the errors that it documents; anything
else that it raises is found, and so is a read that takes longer than `SLOW_S` seconds of CPU.
"""

import io
import json
import time
import traceback
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

from pydantic import BaseModel, ValidationError

from farm.blobs.inspection import check_model_file, completed_manifest, inspect_program_file
from farm.core.base.ids import digest_of
from farm.core.errors import FarmError
from farm.core.models.variant import Format, Manifest, Precision, Recipe
from farm.wire.agents import protocol, report_batch
from tests.phone.adb.phone_samples import SAMPLES
from tests.security.attack.fuzzed_calls import CallSource
from tests.support.farm.service_fixture import model_file
from tests.support.harness.readers import Reader, entry_points, readers

#: CPU seconds of one read of a text of at most `_MOST` characters or bytes.
SLOW_S = 5.0
_MOST = 50_000
_MOST_SHOWN = 300
_OUTPUTS = Path(__file__).parents[1] / "support" / "harness" / "outputs"
_MATRIX = """\
name: nightly
harness: speed_benchmark_torch
axes:
  model: [mobilenet_v2, resnet18]
  precision: &p [float32, int8-core]
  format: lite
  threads: [1, 4]
exclude:
  - {precision: int8-core, threads: 1}
settings: {iter: 200, warmup: 20}
baseline: {precision: float32}
devices: {soc: "SM8*", tags: [lab]}
gates: {battery_level_min: 0.3}
rounds: 5
"""
_TOKENS = (
    *("\x00", "\r\n", "\n", "\t", "\x1b[31m", "�", "\ud7ff", "é\u0301", "٣", '"', "'", "{", "}", "[", "]"),
    *(":", ",", "=", "-", "- ", "%", "&a", "*a", "!!python/object:x", "<<: ", "|", ">", "#", "$", "\\"),
    *("0", "-1", "1e999", "nan", "inf", "9" * 400, str(2**63), "0x", "1.", "null", "true", "../", "~" * 50),
)


@dataclass(slots=True, kw_only=True)
class Fuzzing:
    """What one fuzzer did."""

    name: str
    seed: str
    reads: int = 0
    #: By reader, with the text's beginning.
    found: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return a line, and one for each finding."""
        lines = [f"{self.name}: {self.reads} reads, seed {self.seed}, {len(self.found)} found"]
        return "\n".join((*lines, *(f"  {name}: {text}" for name, text in self.found.items())))


class _Raised:
    """What a block raises is recorded and goes no further, unless the process is to end."""

    what = ""

    def __enter__(self) -> "_Raised":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        last = traceback.extract_tb(frames)[-1]
        self.what = f"{error!r} at {Path(last.filename).name}:{last.lineno}"
        return True


#: Makes one read of something random; returns the reader's name, and what to call.
Draw = Callable[[Random], tuple[str, Callable[[], object], str]]


def fuzz(name: str, *, seed: str, seconds: float) -> Fuzzing:
    """Run one of `FUZZERS` for a time."""
    with TemporaryDirectory() as folder:
        return fuzz_by(FUZZERS[name](Path(folder)), name=name, seed=seed, seconds=seconds)


def fuzz_by(draw: Draw, *, name: str, seed: str, seconds: float) -> Fuzzing:
    """Make random reads for a time, and one at least."""
    random, done = Random(seed), Fuzzing(name=name, seed=seed)
    until_s = time.monotonic() + seconds
    while done.reads == 0 or time.monotonic() < until_s:
        reader, read, shown = draw(random)
        began_s = time.process_time()
        with _Raised() as raised:
            read()
        if raised.what:
            done.found.setdefault(reader, f"{raised.what} by {shown[:_MOST_SHOWN]!r}")
        if (took_s := time.process_time() - began_s) > SLOW_S:
            done.found.setdefault(reader, f"{took_s:.1f} s by {shown[:_MOST_SHOWN]!r}")
        done.reads += 1
    return done


def mutated(text: str, random: Random, others: Sequence[str]) -> str:
    """Return a text with a few random changes, of which some join it with others."""
    for _ in range(random.randint(1, 6)):
        first = random.randint(0, len(text))
        last = min(len(text), first + random.choice((0, 1, 2, 10, 100, 1000)))
        match random.randrange(6):
            case 0:
                text = text[:first] + text[last:]
            case 1:
                text = text[:first] + random.choice(_TOKENS) + text[last:]
            case 2:
                text = text[:first] + text[first:last] * random.choice((2, 3, 50)) + text[last:]
            case 3:
                other = random.choice(others)
                cut = random.randint(0, len(other))
                text = text[:first] + other[cut : cut + 500] + text[last:]
            case 4:
                text = text[:first] + chr(random.choice((random.randrange(128), random.randrange(0xD7FF))))
                text += text[last:]
            case _:
                text = text[:first] if random.random() < 0.3 else text
    return text[:_MOST]


def mutated_bytes(content: bytes, random: Random) -> bytes:
    """Return bytes with a few random changes."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 8)):
        place = random.randint(0, len(changed))
        match random.randrange(5):
            case 0 if changed:
                changed[min(place, len(changed) - 1)] = random.randrange(256)
            case 1:
                changed[place : place + 4] = random.choice(
                    (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f")
                )
            case 2:
                del changed[place : place + random.choice((1, 8, 100))]
            case 3:
                changed[place:place] = random.randbytes(random.choice((1, 4, 100)))
            case _:
                if random.random() < 0.2:
                    del changed[place:]
    return bytes(changed[:_MOST])


def _texts(of: Mapping[str, Reader], samples: Sequence[str]) -> Draw:
    names = sorted(of)

    def draw(random: Random) -> tuple[str, Callable[[], object], str]:
        name, text = random.choice(names), mutated(random.choice(samples), random, samples)
        return name, partial(of[name], text), text

    return draw


def _output(_: Path) -> Draw:
    samples = [path.read_text() for path in sorted(_OUTPUTS.rglob("*.*"))]
    return _texts(
        {name: read for name, read in readers().items() if name.startswith("farm.harness.")}, samples
    )


def _devices(_: Path) -> Draw:
    of_devices = {name: read for name, read in readers().items() if not name.startswith("farm.harness.")}
    return _texts(of_devices, [sample.text for sample in SAMPLES.values()])


def _documents(_: Path) -> Draw:
    """Matrices, definitions, tokens, ranges, patterns and all else that people and files fill."""
    of_outputs = readers()
    of_people = {name: read for name, read in entry_points().items() if name not in of_outputs}
    return _texts(of_people, [_MATRIX, "bytes 0-9/100", "bfu_" + "a" * 43, "soc:SM8*", "a=1.5 ms"])


def _imports(_: Path) -> Draw:
    """Files of results that others measured."""
    of_imports = {name: read for name, read in readers().items() if name.startswith("farm.harness.external.")}
    samples = [path.read_text() for path in sorted(_OUTPUTS.rglob("*.json*"))]
    return _texts(
        of_imports, [*samples, "model,latency_ms\nresnet18,1.5\n", '[{"model": "a", "ms": [1, 2.5]}]']
    )


def _files(folder: Path) -> Draw:
    """Model files and programs, as uploads bring them."""
    samples = {
        Format.TORCHSCRIPT: model_file("torchscript", marker="a"),
        Format.LITE: model_file("lite", marker="b"),
        Format.TFLITE: b"\x1c\0\0\0TFL3" + bytes(64),
        Format.GGUF: b"GGUF\x03\0\0\0" + bytes(64),
        Format.NCNN: b"7767517\n2 1\nInput in 0 1 data\nReLU relu 1 1 data out\n",
        Format.ONNX: b'\x08\x07\x12\x04test:\x10\n\x0e\n\x01x\x12\x01y"\x04Relu',
        Format.EXECUTORCH: b"\x1c\0\0\0ET12" + bytes(64),
    }
    path = folder / "file"

    def draw(random: Random) -> tuple[str, Callable[[], object], str]:
        format, content = random.choice(sorted(samples.items()))
        content = _recompressed(content, random) if content.startswith(b"PK") else content
        path.write_bytes(mutated_bytes(content, random))
        return f"model file {format}", partial(_inspect, path, format), repr(path.read_bytes()[:_MOST_SHOWN])

    return draw


def _recompressed(content: bytes, random: Random) -> bytes:
    """Return an archive with the same records, compressed in one of the ways."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as source,
        zipfile.ZipFile(out, "w", random.choice((0, 8, 12, 14))) as to,
    ):
        for record in source.infolist():
            to.writestr(record.filename, source.read(record))
    return out.getvalue()


def _inspect(path: Path, format: Format) -> None:
    manifest = Manifest(
        model="a",
        recipe=Recipe(precision=Precision.FLOAT32, format=format),
        digest=digest_of(b""),
        size_bytes=path.stat().st_size,
        backends=("cpu",),
        inputs=(),
        recipe_digest=digest_of(b"recipe"),
    )
    try:
        inspect_program_file(path, ["--flag"])
        if check_model_file(path) is format:
            completed_manifest(path, manifest)
    except FarmError:
        return


def _messages(_: Path) -> Draw:
    """What agents send, as JSON: drawn from the schemas, with hostile values, and changed as text."""
    kinds = [
        kind
        for module in (protocol, report_batch)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, BaseModel) and kind.__module__ == module.__name__
    ]
    schemas = {kind: kind.model_json_schema(ref_template="#/components/schemas/{model}") for kind in kinds}

    def draw(random: Random) -> tuple[str, Callable[[], object], str]:
        kind = random.choice(kinds)
        schema = schemas[kind]
        description: dict[str, Any] = {"paths": {}, "components": {"schemas": schema.get("$defs", {})}}
        text = json.dumps(CallSource(description, random).value(schema))
        if random.random() < 0.5:
            text = mutated(text, random, [text])
        return f"{kind.__module__}.{kind.__name__}", partial(_validate, kind, text), text

    return draw


def _validate(kind: type[BaseModel], text: str) -> None:
    try:
        message = kind.model_validate_json(text.encode("utf-8", "surrogatepass"))
    except (ValidationError, FarmError):
        return
    # What was taken can be sent on.
    message.model_dump_json()


#: By name; each gets a folder of its own.
FUZZERS: Mapping[str, Callable[[Path], Draw]] = {
    "output of harnesses": _output,
    "facts of devices": _devices,
    "documents of people": _documents,
    "imported results": _imports,
    "uploaded files": _files,
    "messages of agents": _messages,
}
