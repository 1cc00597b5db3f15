"""Programs and model files that benchmarks run on phones; nothing here needs torch."""

import io
import re
import time
import zipfile
from hashlib import sha256
from statistics import median

from rig import HARNESS, FarmRig

from farm.core.base.ids import MatrixId, digest_of
from farm.core.models.variant import Format, Manifest, Precision, Recipe, TensorSpec

ITERATIONS, WARMUP = 20, 2
_BLOCK_BYTES = 1024 * 1024
_OBSERVED = re.compile(r'"metric": "latency", "value": "([0-9]+)"')

_OUTPUT = """
for us in samples:
    print('PyTorchObserver {"type": "NET", "unit": "us", "metric": "latency", "value": "%d"}' % us)
mean = sum(samples) / len(samples)
print("Main run finished. Microseconds per iter: %.6g. Iters per second: %.6g" % (mean, 1e6 / mean))
"""

#: The same work in each iteration, timed as harnesses do.
_WORKING = """#!/usr/bin/env benchfarm-python
import sys, time
from hashlib import sha256

flags = dict(word.lstrip("-").split("=", 1) for word in sys.argv[1:] if "=" in word)
block, times = bytes({block_bytes}), {times}
samples = []
for _ in range(int(flags["warmup"]) + int(flags["iter"])):
    began = time.perf_counter_ns()
    digest = sha256()
    for _ in range(times):
        digest.update(block)
    samples.append((time.perf_counter_ns() - began) // 1000)
samples = samples[int(flags["warmup"]):]
"""

#: It takes time but no CPU, so that any number of phones on one machine can be busy side by side.
_SCRIPTED = """#!/bin/sh
sleep {seconds}
i=0
while [ $i -lt {iterations} ]; do
  echo 'PyTorchObserver {{"type": "NET", "unit": "us", "metric": "latency", "value": "1000"}}'
  i=$((i + 1))
done
echo 'Main run finished. Microseconds per iter: 1000. Iters per second: 1000'
"""


def working_program(seconds: float) -> bytes:
    """Return a program with a fixed amount of work, which takes about this long on one core here."""
    times = max(1, round(seconds / (ITERATIONS + WARMUP) / _block_s()))
    return (_WORKING.format(block_bytes=_BLOCK_BYTES, times=times) + _OUTPUT).encode()


def scripted_program(seconds: float) -> bytes:
    """Return a program that sleeps, then prints a recorded output."""
    return _SCRIPTED.format(seconds=seconds, iterations=ITERATIONS).encode()


def _block_s() -> float:
    block, taken_s = bytes(_BLOCK_BYTES), []
    for _ in range(200):
        began_s = time.perf_counter()
        sha256(block)
        taken_s.append(time.perf_counter() - began_s)
    return median(taken_s)


def samples_us(stdout: str) -> list[int]:
    """Return the times of the iterations as the program printed them."""
    return [int(text) for text in _OBSERVED.findall(stdout)]


def register_model(rig: FarmRig) -> None:
    """Register a model file with valid records and a bundled input; the programs do not read it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in ("data.pkl", "constants.pkl", "code/__torch__.py", "version"):
            archive.writestr(zipfile.ZipInfo(f"model/{name}"), f"{name} get_all_bundled_inputs")
    content = out.getvalue()
    manifest = Manifest(
        model="stand-in",
        recipe=Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT),
        digest=rig.put_file(content),
        size_bytes=len(content),
        backends=("cpu",),
        inputs=(TensorSpec(shape=(1, 3, 224, 224), dtype="float32"),),
        recipe_digest=digest_of(b"stand-in"),
    )
    rig.farm.register_variant(manifest)


def submit(rig: FarmRig, *, rounds: int, host: str | None = None) -> MatrixId:
    """Submit one job a round on every phone, or on those of a host.

    Noisy results are accepted, so that nothing is repeated.
    """
    spec = {
        "name": "benchmark",
        "harness": HARNESS,
        "axes": {"model": "stand-in", "precision": "float32", "format": "torchscript", "backend": "cpu"},
        "settings": {"iter": ITERATIONS, "warmup": WARMUP},
        "devices": {"virtual": True} if host is None else {"host": host},
        "rounds": rounds,
        "noise_limit": 10.0,
    }
    return rig.farm.submit_matrix(spec).matrix_id


def submit_wide(rig: FarmRig, *, keys: int, host: str) -> MatrixId:
    """Submit one round of at least so many cells on every phone of a host."""
    threads = min(keys, 1000)
    spec = {
        "name": "wide",
        "harness": HARNESS,
        "axes": {
            "model": "stand-in",
            "precision": "float32",
            "format": "torchscript",
            "backend": "cpu",
            "pthreadpool_size": list(range(1, threads + 1)),
            "warmup": list(range(-(-keys // threads))),
        },
        "devices": {"host": host},
        "rounds": 1,
    }
    return rig.farm.submit_matrix(spec).matrix_id
