"""Programs for arm64 that are really compiled by zig, and started under qemu."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from farm.blobs.inspection import inspect_program_file
from farm.bundles.build import BuiltBundle, build_bundle
from farm.bundles.commands import Say
from farm.bundles.emulator import EMULATOR, started_command
from farm.bundles.executorch import EXECUTORCH
from farm.bundles.workshop import BundleRecipe, Workshop
from farm.core.errors import InvalidInput
from farm.core.programs.abi import program_abi
from farm.core.programs.built_with import ProgramPart
from farm.variants.environments.runtime_environments import run_command

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed (pip install ziglang)"),
    pytest.mark.skipif(shutil.which(EMULATOR) is None, reason="there is no qemu-user-static"),
]

MODELS = Path(__file__).parents[1] / "support" / "models" / "executorch"
#: Writes a line and ends with exit code 3, by system calls: nothing of a C library has to be compiled.
SOURCE = """
static long call(long number, long a, long b, long c) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}
void _start(void) {
  call(64, 1, (long)"it runs\\n", 8);
  call(93, 3, 0, 0);
}
"""


@contextmanager
def this_python(say: Say) -> Iterator[Path]:
    """Stand for the compiler's environment, which takes a minute to create: this one has the compiler."""
    yield Path(sys.executable)


def compiled(source: str, root: Path) -> BuiltBundle:
    def build(workshop: Workshop) -> Sequence[ProgramPart]:
        (workshop.scratch / "tiny.c").write_text(source)
        linked = ("-target", "aarch64-linux-musl", "-nostdlib", "-static", "-O2", "-s")
        workshop.compile("cc", *linked, str(workshop.scratch / "tiny.c"), "-o", str(workshop.out / "tiny"))
        return [workshop.compiler_part()]

    recipe = BundleRecipe(
        name="tiny",
        harness="tiny",
        abi="arm64-v8a",
        ingredients=(source,),
        build=build,
        entry="tiny",
        start_arguments=(),
        start_exit_code=3,
        start_text="it runs",
    )
    return build_bundle(recipe, root, lambda _: None, interpreter=this_python)


def test_a_compiled_program_is_for_arm64_and_starts(tmp_path: Path) -> None:
    built = compiled(SOURCE, tmp_path)
    inspection = {"tiny": inspect_program_file(built.folder / "tiny")}
    assert program_abi(inspection, "tiny", None) == "arm64-v8a"
    assert [part.name for part in built.parts] == ["zig"]


def test_an_error_of_the_compiler_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"the compiler failed: .*error: .*nothing_of_that_name"):
        compiled(SOURCE.replace("call(93", "nothing_of_that_name(93"), tmp_path)


def test_a_program_that_crashes_is_no_bundle(tmp_path: Path) -> None:
    crash = SOURCE.replace('call(64, 1, (long)"it runs\\n", 8);', "*(volatile int *)8 = 1;")
    assert crash != SOURCE
    with pytest.raises(InvalidInput, match="does not start under"):
        compiled(crash, tmp_path)


@pytest.mark.timeout(1800)
@pytest.mark.skipif(
    "BENCHFARM_BUILDS" not in os.environ, reason="downloads and builds a minute and more: BENCHFARM_BUILDS=1"
)
@pytest.mark.parametrize("model", ["xnnpack", "portable"])
def test_the_runner_of_executorch_computes_what_torch_does(
    model: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.getbasetemp() / "executorch"
    built = build_bundle(EXECUTORCH, root, lambda _: None, interpreter=this_python)
    command = started_command(EXECUTORCH, built.folder, [f"--model_path={MODELS / f'{model}.pte'}"])
    done = run_command(command)
    assert done.returncode == 0, done.stderr
    assert "[-0.273721, -0.324802, -0.320519" in done.stdout
