"""Bundles on a phone: each file once in the cache, and at its place in the folder of the run."""

import shutil
import stat
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agents.adb.client import AdbDevice
from agents.device.device_cache import ensure_cached
from agents.device.paths import cache_folder, cache_path, run_folder
from agents.device.run.collect import CollectedRun, collect_run
from agents.device.run.run_control import clean_run, link_command, link_lines, start_run, wait_run
from farm.core.base.ids import Digest, digest_of
from farm.core.programs.bundle import MAX_FILES, Bundle, BundleFile, command_words, plan_files
from farm.core.runs.plan import PlanFile, RunPlan, fill_argv, fill_env

pytestmark = pytest.mark.anyio
NOW = datetime(2024, 5, 6, tzinfo=UTC)
LocalPath = Callable[[Digest], Awaitable[Path]]
SHARED = b"shared data\n"


@pytest.fixture
def host_cache(tmp_path: Path) -> Path:
    folder = tmp_path / "host"
    folder.mkdir()
    return folder


@pytest.fixture
def local_path(host_cache: Path) -> LocalPath:
    async def path(digest: Digest) -> Path:
        return host_cache / digest

    return path


def bundle(
    host_cache: Path,
    content_by_path: Mapping[str, bytes],
    env: Mapping[str, str] | None = None,
    command: str = "${program} ${arguments}",
) -> Bundle:
    """A bundle whose first file is started; its files are on the host."""
    files = []
    for path, content in content_by_path.items():
        (host_cache / digest_of(content)).write_bytes(content)
        files.append(
            BundleFile(
                path=path,
                digest=digest_of(content),
                size_bytes=len(content),
                executable=content.startswith((b"#!", b"\x7fELF")),
            )
        )
    return Bundle(files=tuple(files), entry=files[0].path, env=env or {}, command=tuple(command.split()))


def cached(work_root: str) -> list[Path]:
    return list(Path(cache_folder(work_root)).iterdir())


def is_there(path: str) -> bool:
    return Path(path).exists()


async def run(
    device: AdbDevice, work_root: str, fence: int, made: Bundle, *arguments: str, local_path: LocalPath
) -> CollectedRun:
    """What a run of a bundle leaves, the way an agent runs it."""
    plan = RunPlan(
        harness="test",
        backend="cpu",
        files=plan_files(made),
        argv=command_words(made, arguments),
        env=made.env,
        timeout_s=60,
    )
    paths = (await ensure_cached(device, plan.files, local_path)).path_by_name
    work = run_folder(work_root, fence)
    argv = fill_argv(plan, work=work, path_by_name=paths)
    env = fill_env(plan, work=work, path_by_name=paths)
    await start_run(device, fence, argv, env, plan.timeout_s, plan.files)
    await wait_run(device, fence, deadline_s=60)
    return await collect_run(device, fence, limit_bytes=4096, now=NOW)


async def test_a_program_finds_its_files_beside_itself_and_its_environment(
    device: AdbDevice, work_root: str, host_cache: Path, local_path: LocalPath
) -> None:
    script = b"""#!/bin/sh
cat "$(dirname "$0")/data/a b.txt" "$PWD/lib/it's.txt" -- -n
"$TOOL" "$@"
"""
    made = bundle(
        host_cache,
        {
            "bin/bench": script,
            "data/a b.txt": b"never\n",
            "bin/data/a b.txt": SHARED,
            "lib/it's.txt": b"quoted\n",
            "-n": b"dash\n",
            "tools/$HOME/tool": b'#!/bin/sh\necho "$# $1"\n',
        },
        env={"TOOL": "${work}/tools/$$HOME/tool"},
        command="env LANG=C ${program} --fast ${arguments}",
    )
    found = await run(device, work_root, 1, made, "x y", local_path=local_path)
    assert found.stderr == b""
    assert found.stdout.decode().splitlines() == ["shared data", "quoted", "dash", "2 --fast"]


async def test_a_file_that_two_bundles_share_is_on_the_phone_once_and_executable_where_one_needs_it(
    device: AdbDevice, work_root: str, host_cache: Path, local_path: LocalPath
) -> None:
    first = bundle(host_cache, {"bench": b"#!/bin/sh\ncat x\n", "x": SHARED, "again/x": SHARED})
    second = bundle(host_cache, {"other": b"#!/bin/sh\ncat deep/er/x\n", "deep/er/x": SHARED})
    for fence, each in ((1, first), (2, second)):
        found = await run(device, work_root, fence, each, local_path=local_path)
        assert found.stdout == SHARED
    assert [path.name for path in cached(work_root) if path.read_bytes() == SHARED] == [digest_of(SHARED)]
    programs = [path for path in cached(work_root) if path.stat().st_mode & stat.S_IXUSR]
    assert {path.read_bytes()[:2] for path in programs} == {b"#!"}


async def test_cleaning_a_run_takes_its_links_and_leaves_the_cache(
    device: AdbDevice, work_root: str, host_cache: Path, local_path: LocalPath
) -> None:
    made = bundle(host_cache, {"bench": b"#!/bin/sh\ncat lib/x\n", "lib/x": SHARED})
    await run(device, work_root, 1, made, local_path=local_path)
    await clean_run(device, 1)
    assert not is_there(run_folder(work_root, 1))
    assert is_there(cache_path(work_root, digest_of(SHARED)))


async def test_starting_twice_leaves_the_links_of_a_run_that_goes_on(
    device: AdbDevice, work_root: str, host_cache: Path, local_path: LocalPath
) -> None:
    files = plan_files(bundle(host_cache, {"bench": b"#!/bin/sh\n", "lib/x": SHARED}))
    await ensure_cached(device, files, local_path)
    link = Path(run_folder(work_root, 1)) / "lib/x"
    inodes = set()
    for _ in range(2):
        await start_run(device, 1, ["sleep", "60"], {}, 60, files)
        inodes.add(link.lstat().st_ino)
    assert len(inodes) == 1
    await clean_run(device, 1)


async def test_the_largest_bundle_is_verified_and_linked(
    device: AdbDevice, work_root: str, host_cache: Path, local_path: LocalPath
) -> None:
    folder = "long folder name " * 8 + "end"
    contents = {f"{folder}/{number}": b"#!%d" % number for number in range(MAX_FILES - 1)}
    made = bundle(host_cache, {"bench": b"#!/bin/sh\ncat */* | wc -c\n", **contents})
    assert len(link_lines(plan_files(made))) > 2**16, "more than a command line of adb holds"
    shutil.copytree(host_cache, cache_folder(work_root))
    found = await run(device, work_root, 1, made, local_path=local_path)
    assert int(found.stdout) == sum(map(len, contents.values()))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
async def test_a_binary_loads_the_library_of_its_bundle(
    device: AdbDevice, work_root: str, host_cache: Path, local_path: LocalPath, tmp_path: Path
) -> None:
    (tmp_path / "answer.c").write_text("int answer(void) { return 42; }\n")
    (tmp_path / "bench.c").write_text(
        '#include <stdio.h>\nint answer(void);\nint main(void) { printf("%d\\n", answer()); }\n'
    )
    compiled("-shared", "-fPIC", "-o", "libanswer.so", "answer.c", folder=tmp_path)
    compiled("-o", "bench", "bench.c", "-L.", "-lanswer", folder=tmp_path)
    contents = {
        "bench": (tmp_path / "bench").read_bytes(),
        "lib/libanswer.so": (tmp_path / "libanswer.so").read_bytes(),
    }
    lost = await run(device, work_root, 1, bundle(host_cache, contents), local_path=local_path)
    assert b"libanswer.so" in lost.stderr
    made = bundle(host_cache, contents, env={"LD_LIBRARY_PATH": "${work}/lib"})
    found = await run(device, work_root, 2, made, local_path=local_path)
    assert found.stdout == b"42\n"


def compiled(*words: str, folder: Path) -> None:
    subprocess.run(["cc", *words], cwd=folder, check=True)


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "mksh"])
def test_every_shell_leaves_the_rest_of_its_input_to_the_next_command(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    file = PlanFile(name="x", digest=digest_of(b"x"), size_bytes=1, path="a folder/back\\slash")
    done = subprocess.run(
        [shell, "-c", f"{link_command('/phone')} && cat"],
        input=link_lines([file]) + "the\nrest",
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "the\nrest"
    assert (tmp_path / file.path).readlink() == Path(cache_folder("/phone")) / file.digest
