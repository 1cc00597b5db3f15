"""A pass from end to end: farm, agent, adb server, virtual phone. A script plays the driver's lines."""

import platform
from pathlib import Path

import pytest

from agents.host.config import AgentConfig
from agents.virtual.pool import VirtualDeviceHandle
from farm.api.context import Context
from farm.core.base.ids import Digest, MatrixId, digest_of
from farm.core.models.variant import Format, Manifest, Precision, Recipe, TensorSpec
from farm.database.transaction import bind_tx
from farm.services.files.programs import inspect_program, register_program
from farm.services.files.registration import register_variant
from farm.services.results.placements import list_placements
from farm.store.files.artifacts import put_artifact
from farm.wire.documents.files.programs import ProgramRegistration
from farm.wire.documents.matrices.matrix import matrix_spec
from tests.agents.link.test_real_farm import Calls, farm_app, healthy, with_token
from tests.support.agents.fake_farm import comes_true, living, serving
from tests.support.farm.direct_calls import submit_matrix
from tests.support.farm.service_fixture import ANN, model_file

pytestmark = [pytest.mark.long, pytest.mark.anyio]

#: Of this machine's phones: a script for any would be taken after the farm's own program.
ABI = {"aarch64": "arm64-v8a"}.get(platform.machine(), platform.machine())
#: What the Android binary prints; what NNAPI's runtime logs, and only while it is asked to.
PROGRAM = """#!/bin/sh
iter=1
for word; do case $word in --iter=*) iter=${word#--iter=} ;; esac; done
if [ "$(getprop debug.nn.vlog)" = all ]; then
    for at in 0 1 2; do
        log -t ExecutionPlan "ModelBuilder::findBestDeviceForEachOperation(CONV_2D:$at) = 0 (google-edgetpu)"
    done
    log -t ExecutionPlan 'ModelBuilder::findBestDeviceForEachOperation(SOFTMAX:3) = 1 (nnapi-reference)'
fi
echo 'Main runs.'
at=0
while [ $at -lt $iter ]; do
    echo 'PyTorchObserver {"type": "NET", "unit": "us", "metric": "latency", "value": "500"}'
    at=$((at + 1))
done
echo 'Main run finished. Microseconds per iter: 500. Iters per second: 2000'
"""


def uploaded(context: Context, content: bytes) -> Digest:
    digest = digest_of(content)
    context.blobs.put([content], digest)
    context.database.write(bind_tx(put_artifact, now=context.clock.now()), digest, len(content))
    return digest


def submitted(context: Context) -> MatrixId:
    """A matrix of one NNAPI file, whose program is the script."""
    now = context.clock.now()
    registration = ProgramRegistration.model_validate(
        {
            "name": "speed_benchmark_torch",
            "files": [{"path": "sbt", "digest": uploaded(context, PROGRAM.encode()), "executable": True}],
            "entry": "sbt",
            "abi": ABI,
        }
    )
    inspection = inspect_program(registration, context.blobs)
    context.database.write(bind_tx(register_program, now=now, actor="user"), inspection)
    content = model_file("torchscript", marker="nnapi")
    manifest = Manifest(
        model="mobilenet_v2",
        recipe=Recipe(precision=Precision.FLOAT32, format=Format.TORCHSCRIPT, target="nnapi"),
        digest=uploaded(context, content),
        size_bytes=len(content),
        backends=("nnapi",),
        inputs=(TensorSpec(shape=(1, 3, 224, 224), dtype="float32"),),
        recipe_digest=digest_of(b"nnapi"),
    )
    context.database.write(bind_tx(register_variant, now=now), manifest, ANN)
    axes = {
        "model": "mobilenet_v2",
        "precision": "float32",
        "format": "torchscript",
        "target": "nnapi",
        "backend": "nnapi",
    }
    spec = {
        "name": "placed",
        "harness": "speed_benchmark_torch",
        "axes": axes,
        "settings": {"iter": 5},
        "devices": {"virtual": True},
        "rounds": 2,
    }
    return context.database.write(bind_tx(submit_matrix, now=now, actor="user"), matrix_spec(spec))


def measured(context: Context) -> list[tuple[str, str]]:
    """Quality and proof, round by round."""
    query = "SELECT quality, proof FROM measurements WHERE accepted ORDER BY round"
    rows = context.database.read(lambda connection: connection.exec_driver_sql(query).all())
    return [(row.quality, row.proof) for row in rows]


async def test_an_nnapi_run_is_proven_by_its_pass_and_the_next_one_by_that(
    config: AgentConfig, phone: VirtualDeviceHandle, port: int, tmp_path: Path
) -> None:
    app = farm_app(tmp_path / "farm", Calls())
    async with serving(app, port, lifespan="on"), living(with_token(config, app)):
        context: Context = app.state.context
        await healthy(config, phone.serial)
        submitted(context)
        await comes_true(lambda: len(measured(context)) == 2, "both rounds are measured")
        (view,) = context.database.read(list_placements)
        (first, proof), (second, earlier) = measured(context)
    assert (view.words, view.accelerator, view.backend) == ("npu 3/4, cpu 1", "npu", "nnapi")
    assert (first, second) == ("valid", "valid")
    assert "findBestDeviceForEachOperation(CONV_2D:0) = 0 (google-edgetpu)" in proof
    assert "shown after attempt" not in proof
    assert "shown after attempt" in earlier
    assert "[debug.nn.vlog]: []" in (phone.state / "properties").read_text()
