"""The program for phones: built for arm64, it serves TVM's client under an emulator."""

import asyncio
import os
import shutil
import sys
from asyncio import StreamReader, StreamWriter
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.bundles.build import build_bundle
from farm.bundles.emulator import EMULATOR, started_command, write_system_files
from farm.bundles.recipes.wheels import TVM
from farm.cli.devices.live.phone import connect_process
from farm.cli.devices.live.timing import LiveTiming, TimingRequest, declared_shapes, measure
from farm.cli.devices.live.tracker import PhoneTracker
from farm.variants.build import build_variants
from farm.variants.model_zoo import recipes_of
from farm.variants.sources.source import parse_source
from tests.e2e.runtimes.built.test_built_for_tvm import INPUT, NETS, installed_here, this_compiler

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(find_spec("tvm") is None, reason="apache-tvm is not installed"),
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed"),
    pytest.mark.skipif(shutil.which(EMULATOR) is None, reason="there is no qemu-user-static"),
    pytest.mark.skipif(
        "BENCHFARM_BUILDS" not in os.environ,
        reason="downloads and builds a minute and more: BENCHFARM_BUILDS=1",
    ),
]


@pytest.mark.anyio
async def test_the_program_for_phones_serves_tvms_client(tmp_path: Path) -> None:
    bundle = await asyncio.to_thread(build_bundle, TVM, tmp_path, print, interpreter=this_compiler)
    (tmp_path / "nets.py").write_text(NETS)
    source = parse_source("nets:small", inputs=[INPUT], folder=tmp_path)
    recipes = recipes_of(["float32"], runtimes=["tvm"], targets=["arm64-v8a-untuned"])
    [library] = await asyncio.to_thread(
        lambda: list(build_variants(source, recipes, tmp_path / "out", interpreter=installed_here))
    )
    write_system_files(tmp_path / "system")
    work = tmp_path / "work"
    work.mkdir()

    async def serve(reader: StreamReader, writer: StreamWriter, seconds: int) -> None:
        command = started_command(TVM, bundle.folder, tmp_path / "system", [f"--serve={seconds}"])
        words = ["env", "-C", str(work), *command]
        await connect_process(words, os.environ, reader, writer, print, longest_s=seconds + 60.0)

    tracker = PhoneTracker("arm", serve, lambda: 600.0, about={}, say=print)
    server = await asyncio.start_server(tracker.serve, "127.0.0.1", 0)
    try:
        request = TimingRequest(
            library=library.path,
            tracker=f"127.0.0.1:{server.sockets[0].getsockname()[1]}",
            key="arm",
            inputs=declared_shapes([INPUT]),
            number=1,
            repeat=2,
            wait_s=60,
            deadline_s=300,
        )
        timing: LiveTiming = await asyncio.to_thread(measure, request, Path(sys.executable), None)
    finally:
        server.close()
        await tracker.close()
    assert len(timing.times_ns) == 2
    assert min(timing.times_ns) > 0
