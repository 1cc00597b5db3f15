"""Programs and model files that stand in for torch where a test is about something else."""

from pathlib import Path
from typing import Any

from farm.core.base.ids import digest_of
from farm.core.models.variant import Format, Manifest, Recipe, TensorSpec
from tests.support.farm.service_fixture import model_file

#: Where stand-ins note each start, one fencing token a line; a phone's shell has its folder in HOME.
STARTS = "data/starts"

_START = r"""#!/bin/sh
# Prints what speed_benchmark_torch prints, without running anything.
echo "$BENCHFARM_RUN" >>"$HOME/starts"
for word; do
  case $word in
  --iter=*) iter=${word#*=} ;;
  --model=*) model=${word#*=} ;;
  esac
done
echo "Starting benchmark."
echo "Running warmup runs."
echo "Main runs."
"""

#: As long as the samples say at most: what took longer than its process is not believed.
_SAMPLES = r"""
sleep "$(awk -v iter="$iter" -v base="$base" -v spread="$spread" 'BEGIN {
  printf "%.3f", iter * base * (1 + spread) / 1e6
}')"
awk -v iter="$iter" -v base="$base" -v spread="$spread" -v seed="$seed" 'BEGIN {
  srand(seed)
  for (i = 0; i < iter; i++) {
    us = int(base * (1 + spread * (2 * rand() - 1)))
    total += us
    printf "PyTorchObserver {\"type\": \"NET\", \"unit\": \"us\", "
    printf "\"metric\": \"latency\", \"value\": \"%d\"}\n", us
  }
  printf "Main run finished. Microseconds per iter: %g. ", total / iter
  printf "Iters per second: %g\n", iter * 1e6 / total
}'
"""


def steady_program(seconds: float) -> bytes:
    """Takes its time, then prints equal samples."""
    return f"{_START}sleep {seconds}\nbase=1000 spread=0 seed=1\n{_SAMPLES}".encode()


def waiting_program(go: Path) -> bytes:
    """Prints equal samples once the file is there."""
    return f"{_START}until [ -e {go} ]; do sleep 0.1; done\nbase=1000 spread=0 seed=1\n{_SAMPLES}".encode()


def unsteady_program(*, noisy_every: int = 0, short_every: int = 0) -> bytes:
    """Small files are quick; samples differ from run to run; in some they scatter wildly, or one is missing.

    Args:
        noisy_every: the runs whose fencing token this number divides scatter; 0 for none.
        short_every: those whose fencing token it divides lack a sample, and do not count; 0 for none.
    """
    runs = "[ $((BENCHFARM_RUN % {every})) -ne 0 ] || {change}\n"
    return (
        f"{_START}"
        'base=$(wc -c <"$model") spread=0.02 seed=$BENCHFARM_RUN\n'
        # Of a real network, whose file has megabytes, a few milliseconds, too.
        '[ "$base" -lt 100000 ] || base=$((base / 10000))\n'
        + (runs.format(every=noisy_every, change="spread=0.9") if noisy_every else "")
        + (runs.format(every=short_every, change="iter=$((iter - 1))") if short_every else "")
        + f"{_SAMPLES}"
    ).encode()


def failing_program(script: str) -> bytes:
    """Starts as others do, then does what the script says."""
    return f"{_START}{script}\n".encode()


def stand_in_model(precision: str) -> tuple[Manifest, bytes]:
    """A model file that runs nowhere, with its manifest."""
    content = model_file("torchscript", marker=precision)
    return _manifest(content, precision), content


def matrix_spec(**changes: Any) -> dict[str, Any]:
    """A matrix of both precisions on every virtual phone, for stand-in programs."""
    return {
        "name": "stand-ins",
        "harness": "speed_benchmark_torch",
        "axes": {
            "model": "mobilenet_v2",
            "precision": ["float32", "int8-core"],
            "format": "torchscript",
            "backend": "cpu",
        },
        "settings": {"iter": 10},
        "devices": {"virtual": True},
        "rounds": 5,
        "baseline": {"precision": "float32"},
        **changes,
    }


def _manifest(content: bytes, precision: str) -> Manifest:
    return Manifest(
        model="mobilenet_v2",
        recipe=Recipe(precision=precision, format=Format.TORCHSCRIPT),
        digest=digest_of(content),
        size_bytes=len(content),
        backends=("cpu",),
        inputs=(TensorSpec(shape=(1, 3, 224, 224), dtype="float32"),),
        recipe_digest=digest_of(precision.encode()),
    )
