"""Bundles that are built here: once, whole or not at all, and started before they count."""

import fcntl
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from farm.bundles.build import RECIPES, build_bundle, recipe_for
from farm.bundles.commands import Say
from farm.bundles.emulator import EMULATOR, started_command, write_system_files
from farm.bundles.local_bundle import LocalBundle
from farm.bundles.recipes.wheels import EXECUTORCH
from farm.bundles.workshop import BundleRecipe, Start, Workshop
from farm.core.base.ids import digest_of
from farm.core.errors import InvalidInput, NotFound
from farm.core.programs.built_with import ProgramPart

PART = ProgramPart(name="source", version="1", digest=digest_of(b"source"), source="source.c")


class Bench:
    """A recipe that writes one file, and an emulator that starts what is built."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.builds = 0
        self.commands: list[list[str]] = []
        self.said: list[str] = []
        self.is_interrupted = False
        #: What starting the program prints, and its exit code.
        self.started = (0, "usage: tool\n", "")
        self.missing_tools: set[str] = set()
        #: What is beside the program's files while it is started.
        self.seen: list[str] = []
        self.recipe = BundleRecipe(
            name="tool",
            harness="llama-bench",
            abi="arm64-v8a",
            ingredients=("1",),
            build=self.write,
            entry="tool",
            tools={"apt-get": "run it on Debian"},
            start=Start(arguments=("--help",), exit_code=0, text="usage"),
        )

    def write(self, workshop: Workshop) -> Sequence[ProgramPart]:
        self.builds += 1
        (workshop.out / "tool").write_bytes(b"program")
        (workshop.scratch / "object.o").write_bytes(b"object")
        if self.is_interrupted:
            raise KeyboardInterrupt
        return [PART]

    def run(self, words: Sequence[str]) -> "CompletedProcess[str]":
        self.commands.append(list(words))
        self.seen = sorted(path.name for path in next(self.root.glob("tool-*/")).iterdir())
        return CompletedProcess(words, *self.started)

    @contextmanager
    def interpreter(self, say: Say) -> Iterator[Path]:
        yield Path("/python")

    def find_tool(self, name: str) -> str | None:
        return None if name in self.missing_tools else f"/usr/bin/{name}"

    def build(self) -> LocalBundle:
        return build_bundle(
            self.recipe,
            self.root,
            self.said.append,
            run=self.run,
            interpreter=self.interpreter,
            find_tool=self.find_tool,
        )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_bundle_is_built_once_and_started_once_before_it_counts(bench: Bench) -> None:
    built = bench.build()
    assert built.parts == (PART,)
    assert [path.name for path in built.folder.iterdir()] == ["tool"]
    [command] = bench.commands
    assert command[2:] == [
        *(EMULATOR, "-cpu", "max,sve=off", "-L", str(built.folder.parent / "system")),
        *(str(built.folder / "tool"), "--help"),
    ]
    assert bench.said == [f"starting it once under {EMULATOR}"]
    # A library that it finds in what is left of the build would be missing on a phone.
    assert bench.seen == ["files", "system"]
    assert bench.build() == built
    assert (bench.builds, len(bench.commands)) == (1, 1)
    assert sorted(path.name for path in built.folder.parent.iterdir()) == ["files", "parts.json"]


def test_other_ingredients_make_another_bundle(bench: Bench) -> None:
    first = bench.build()
    bench.recipe = BundleRecipe(
        name="tool",
        harness="llama-bench",
        abi="arm64-v8a",
        ingredients=("2",),
        build=bench.write,
        entry="tool",
        start=Start(arguments=("--help",), exit_code=0, text="usage"),
    )
    assert bench.build().folder != first.folder
    assert bench.builds == 2


def test_an_interrupted_build_is_done_again_from_the_beginning(bench: Bench) -> None:
    bench.is_interrupted = True
    with pytest.raises(KeyboardInterrupt):
        bench.build()
    bench.is_interrupted = False
    built = bench.build()
    assert bench.said[0] == "removing what an interrupted build left"
    assert bench.builds == 2
    assert not list(built.folder.parent.rglob("*.o"))


@pytest.mark.parametrize(
    "started",
    [
        (-4, "", "qemu: uncaught target signal 4 (Illegal instruction)\n"),
        (0, "something else\n", ""),
        (127, "", "error while loading shared libraries: libm.so.6\n"),
    ],
)
def test_what_does_not_start_is_no_bundle(bench: Bench, started: tuple[int, str, str]) -> None:
    good, bench.started = bench.started, started
    with pytest.raises(InvalidInput, match="does not start under") as caught:
        bench.build()
    assert (started[1] or started[2]).strip() in caught.value.message
    assert "nothing was registered" in caught.value.hint
    bench.started = good
    bench.build()
    assert bench.builds == 2


@pytest.mark.parametrize(
    ("tool", "hint"), [(EMULATOR, "apt install qemu-user-static"), ("apt-get", "run it on Debian")]
)
def test_a_missing_tool_is_told_before_anything_is_built(bench: Bench, tool: str, hint: str) -> None:
    bench.missing_tools = {tool}
    with pytest.raises(InvalidInput, match=f"there is no {tool}") as caught:
        bench.build()
    assert hint in caught.value.hint
    assert bench.builds == 0


def test_a_folder_that_cannot_be_written_is_named(bench: Bench) -> None:
    bench.root /= "file"
    bench.root.write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"cannot write .*file"):
        bench.build()


def test_who_finds_another_building_it_waits_and_uses_what_the_other_made(bench: Bench) -> None:
    built = bench.build()
    waiting = threading.Event()
    other = threading.Thread(
        target=lambda: build_bundle(
            bench.recipe,
            bench.root,
            lambda _: waiting.set(),
            run=bench.run,
            interpreter=bench.interpreter,
            find_tool=bench.find_tool,
        )
    )
    with Path(f"{built.folder.parent}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other.start()
        assert waiting.wait(60)
    other.join(60)
    assert not other.is_alive()
    assert bench.builds == 1


def test_a_bundle_with_its_own_loader_is_started_by_it(tmp_path: Path) -> None:
    command = started_command(EXECUTORCH, tmp_path, tmp_path / "system", ["--model_path=x"])
    assert command == [
        *(EMULATOR, "-cpu", "max,sve=off", "-L", f"{tmp_path}/system"),
        f"{tmp_path}/lib/ld-linux-aarch64.so.1",
        "--library-path",
        f"{tmp_path}/lib",
        f"{tmp_path}/executor_runner",
        "--model_path=x",
    ]


def test_a_started_program_reads_about_cpus_of_arm64(tmp_path: Path) -> None:
    write_system_files(tmp_path / "system")
    text = (tmp_path / "system" / "proc" / "cpuinfo").read_text()
    assert re.findall(r"^processor\t: (\d)$", text, re.MULTILINE) == ["0", "1"]
    assert text.count("CPU implementer") == 2
    for name in ("possible", "present"):
        assert (tmp_path / "system" / "sys" / "devices" / "system" / "cpu" / name).read_text() == "0-1\n"


def test_recipes_are_found_by_name_for_the_abi_that_they_build_for() -> None:
    for name, recipe in RECIPES.items():
        assert recipe_for(name, "arm64-v8a") is recipe
        with pytest.raises(InvalidInput, match="not for `x86_64`"):
            recipe_for(name, "x86_64")
    with pytest.raises(NotFound, match="no recipe for `llama`"):
        recipe_for("llama", "arm64-v8a")
