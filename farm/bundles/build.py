"""Build a bundle once: in a folder of this machine that is complete, or is built again from the beginning."""

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from pathlib import Path

from farm.bundles.commands import Run, Say, require_tool
from farm.bundles.emulator import EMULATOR, EMULATOR_HINT, start_once
from farm.bundles.local_bundle import LocalBundle
from farm.bundles.recipes.llama_cpp import LLAMA_CPP
from farm.bundles.recipes.ncnn import NCNN
from farm.bundles.recipes.wheels import EXECUTORCH, LITERT, LITERT_LM, MNN, ONNXRUNTIME, TVM
from farm.bundles.workshop import BundleRecipe, Workshop
from farm.core.base.ids import digest_of
from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput, NotFound
from farm.core.programs.built_with import ProgramPart
from farm.variants.environments.locks import lock_file, wait_for_lock
from farm.variants.environments.pins import COMPILER
from farm.variants.environments.runtime_environments import environment_of, environments_dir, run_command

RECIPES = {
    recipe.name: recipe for recipe in (EXECUTORCH, ONNXRUNTIME, LITERT, LITERT_LM, MNN, TVM, NCNN, LLAMA_CPP)
}
#: Written last: a folder without it is what an interrupted build left.
_PARTS = "parts.json"
_FILES = "files"

#: Yields the Python of the compiler's environment; its steps are passed on.
Interpreter = Callable[[Say], AbstractContextManager[Path]]


def bundles_dir() -> Path:
    """Return the folder of all bundles that are built here (XDG base directories)."""
    return environments_dir().with_name("bundles")


def recipe_for(name: str, abi: str) -> BundleRecipe:
    """Return the recipe of that name.

    Raises:
        NotFound: there is none.
        InvalidInput: it builds for another ABI.
    """
    if name not in RECIPES:
        raise NotFound(f"there is no recipe for `{name}`", hint=name_hint(name, list(RECIPES)))
    recipe = RECIPES[name]
    if abi != recipe.abi:
        raise InvalidInput(f"{name} is built for {recipe.abi}, not for `{abi}`", hint=f"--abi {recipe.abi}")
    return recipe


@contextmanager
def compiler_interpreter(say: Say) -> Iterator[Path]:
    """Yield the Python of the compiler's environment, which is created on demand."""
    with environment_of(COMPILER, environments_dir(), say) as python:
        yield python


def build_bundle(
    recipe: BundleRecipe,
    root: Path,
    say: Say,
    *,
    run: Run = run_command,
    interpreter: Interpreter = compiler_interpreter,
    find_tool: Callable[[str], str | None] = shutil.which,
) -> LocalBundle:
    """Return the recipe's bundle, which was started once.

    One that was built before from the same ingredients is used again.

    Args:
        recipe: of the bundle.
        root: folder of all bundles.
        say: called with each step.
        run: runs a command.
        interpreter: yields the compiler's Python.
        find_tool: returns the path of a program of this machine.

    Raises:
        InvalidInput: a tool is missing, a package cannot be downloaded, the build fails, or its program does
            not start.
        VariantInvalid: the compiler's environment cannot be created.
        DigestMismatch: a package is not the pinned one.
    """
    text = json.dumps([recipe.entry, recipe.command, list(recipe.ingredients)])
    folder = root / f"{recipe.name}-{recipe.abi}-{digest_of(text.encode())[:8]}"
    with lock_file(folder) as lock:
        wait_for_lock(lock, fcntl.LOCK_EX, lambda: say("waiting for another build of it"))
        if not (folder / _PARTS).is_file():
            for name, hint in {EMULATOR: EMULATOR_HINT, **recipe.tools}.items():
                require_tool(name, hint, find=find_tool)
            _build(recipe, folder, say, run, interpreter)
        parts = tuple(ProgramPart(**part) for part in json.loads((folder / _PARTS).read_text()))
    return LocalBundle(
        folder=folder / _FILES, abi=recipe.abi, entry=recipe.entry, command=recipe.command, parts=parts
    )


def _build(recipe: BundleRecipe, folder: Path, say: Say, run: Run, interpreter: Interpreter) -> None:
    if folder.exists():
        say("removing what an interrupted build left")
        shutil.rmtree(folder)
    out, scratch, cache = folder / _FILES, folder / "scratch", folder.parent / "compiler-cache"
    out.mkdir(parents=True)
    scratch.mkdir()
    with interpreter(say) as python:
        workshop = Workshop(out=out, scratch=scratch, cache=cache, python=python, run=run, say=say)
        parts = recipe.build(workshop)
    # Before it is started: a program that finds a library there would find none on a phone.
    shutil.rmtree(scratch)
    say(f"starting it once under {EMULATOR}")
    start_once(recipe, out, folder / "system", run)
    shutil.rmtree(folder / "system")
    written = folder / f"{_PARTS}.new"
    written.write_text(json.dumps(list(map(asdict, parts)), indent=1))
    written.replace(folder / _PARTS)
