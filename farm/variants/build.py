"""Building variants: each in a process of its own, and only when the same file is not already there."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter

import farm
from farm.core.base.ids import Digest, digest_of
from farm.core.errors import InvalidInput, VariantInvalid
from farm.core.models import builders
from farm.core.models.builders import TORCH, abi_of, backends_of, is_tuned
from farm.core.models.variant import Format, Manifest, Recipe, Tuning, variant_name
from farm.variants.environments.runtime_environments import environment_of, environments_dir
from farm.variants.manifest_file import manifest_path, read_manifest, write_manifest
from farm.variants.recipe import built_with, host_abi, recipe_digest, runs_here
from farm.variants.sources.source import Source, source_json
from farm.variants.sources.tuning_records import TuningRecords, check_records, read_records
from farm.variants.worker import BuildFacts

#: ExecuTorch's int8 export takes half a minute, and ten times as long where others want the cores too.
_DEADLINE_S = 1800.0
#: The tuner ends the compilation and the timing of a schedule after 60 s each.
_TRIAL_DEADLINE_S = 120.0
_SUFFIX = {
    Format.TORCHSCRIPT: ".pt",
    Format.LITE: ".ptl",
    Format.FLATBUFFER: ".ff",
    Format.ONNX: ".onnx",
    Format.ORT: ".ort",
    Format.EXECUTORCH: ".pte",
    Format.TFLITE: ".tflite",
    Format.NCNN: ".param",
    Format.MNN: ".mnn",
    Format.TVM: ".so",
}
_HINT_FOR_TORCH = (
    "`make install` installs the versions of torch and torchvision that are known to work together"
)
_HINT_FOR_OTHERS = "`farm env remove` removes the runtime's environment, and the next build creates it again"
#: Imports the farm from its folder alone. What is installed beside it is not for the environments of others.
_START = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("farm", sys.argv[1])
farm = sys.modules["farm"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(farm)
from farm.variants.worker import main
sys.exit(main(sys.argv[2:]))
"""
_FACTS = TypeAdapter(BuildFacts)

#: Yields the Python that builds for a runtime; its steps are passed on.
Interpreter = Callable[[str, Callable[[str], None]], AbstractContextManager[Path]]


@contextmanager
def interpreter_of(runtime: str, say: Callable[[str], None]) -> Iterator[Path]:
    """Yield this Python for torch, else that of the runtime's environment, which is created on demand."""
    if runtime == TORCH:
        yield Path(sys.executable)
        return
    with environment_of(runtime, environments_dir(), say) as python:
        yield python


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltVariant:
    """A variant's file with its manifest, on this machine."""

    manifest: Manifest
    path: Path
    #: True when the file was already there, made by the same recipe.
    reused: bool
    #: Of a tuned variant: the file of its records.
    records: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRequest:
    """How loops are tuned: by trials here, by earlier records, or by both."""

    #: Schedules that are compiled and timed on this machine.
    trials: int = 0
    records: TuningRecords | None = None

    @property
    def fixed_records(self) -> Digest | None:
        """Return the digest of the records if no trial adds to them."""
        return self.records.digest() if self.records is not None and not self.trials else None


NOT_TUNED = TuningRequest()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildProgress:
    """The current step of variant number `index`, from 0, of `total`."""

    variant: str
    step: str
    index: int
    total: int


def build_variants(
    source: Source,
    recipes: Sequence[Recipe],
    out_dir: Path,
    *,
    tuning: TuningRequest = NOT_TUNED,
    on_progress: Callable[[BuildProgress], None] = lambda _progress: None,
    interpreter: Interpreter = interpreter_of,
) -> Iterator[BuiltVariant]:
    """Build every recipe into `out_dir`, one at each `next`, except for files that are already there.

    `tuning` is for recipes of tuned files. What is tuned by trials is never there already: no two tunings are
    the same.

    Raises:
        InvalidInput: a recipe cannot be built from the source, or torch is not installed; at once.
        VariantInvalid: a build failed, or its file does not compute what the network does; at its `next`.
    """
    for recipe in filter(is_tuned, recipes):
        _check_tuning(recipe, tuning)
    digests = [known_digest(source, recipe, tuning) for recipe in recipes]
    out_dir.mkdir(parents=True, exist_ok=True)
    work = list(zip(recipes, digests, strict=True))
    return _build_each(source, work, out_dir, tuning, on_progress, interpreter)


def known_digest(source: Source, recipe: Recipe, tuning: TuningRequest) -> Digest | None:
    """Return the recipe's digest; None where only the built file tells what it is."""
    return recipe_digest(source, recipe, records=tuning.fixed_records if is_tuned(recipe) else None)


def _check_tuning(recipe: Recipe, tuning: TuningRequest) -> None:
    """Refuse records of another ABI, and trials for a CPU that is not here.

    Raises:
        InvalidInput, VariantInvalid: so it is, or there are neither.
    """
    abi = abi_of(recipe)
    assert abi is not None
    if tuning.trials and not runs_here(recipe):
        raise InvalidInput(
            f"schedules for {abi} cannot be timed on this machine: it is {host_abi()}",
            hint="tune on a device of that ABI with TVM, and give its records: --records FOLDER",
        )
    if tuning.records is not None:
        check_records(tuning.records, abi)
    elif not tuning.trials:
        raise InvalidInput(f"{recipe.target} needs trials or records", hint="--tune TRIALS or --records FILE")


def _build_each(
    source: Source,
    work: Sequence[tuple[Recipe, Digest | None]],
    out_dir: Path,
    tuning: TuningRequest,
    on_progress: Callable[[BuildProgress], None],
    interpreter: Interpreter,
) -> Iterator[BuiltVariant]:
    for index, (recipe, digest) in enumerate(work):

        def say(step: str, recipe: Recipe = recipe, index: int = index) -> None:
            name = variant_name(source.model, recipe)
            on_progress(BuildProgress(variant=name, step=step, index=index, total=len(work)))

        path = out_dir / _file_name(source.model, recipe)
        existing = None if digest is None else _find_existing(path, digest, say)
        yield existing or _build(source, recipe, path, tuning, say, interpreter)


def _file_name(model: str, recipe: Recipe) -> str:
    """Return the file's name, like the variant's: `mobilenet_v2-int8-full-channels_last-nnapi.ptl`."""
    words = variant_name(model, recipe).split("/")
    words.remove(recipe.format)
    return "-".join(words) + _SUFFIX[recipe.format]


def _find_existing(path: Path, digest: Digest, say: Callable[[str], None]) -> BuiltVariant | None:
    try:
        manifest = read_manifest(manifest_path(path))
        same = manifest.recipe_digest == digest and manifest.digest == digest_of(path.read_bytes())
    except (VariantInvalid, OSError):
        return None
    if not same:
        return None
    records = records_path(path) if manifest.tuning is not None else None
    if records is not None and not _is_file_of(records, manifest.tuning):
        return None
    say("there already")
    return BuiltVariant(manifest=manifest, path=path, reused=True, records=records)


def _is_file_of(records: Path, tuning: Tuning | None) -> bool:
    try:
        return tuning is not None and digest_of(records.read_bytes()) == tuning.records
    except OSError:
        return False


def _build(
    source: Source,
    recipe: Recipe,
    path: Path,
    tuning: TuningRequest,
    say: Callable[[str], None],
    interpreter: Interpreter,
) -> BuiltVariant:
    with (
        interpreter(builders.environment_of(recipe), say) as python,
        tempfile.TemporaryDirectory(prefix=".building-", dir=path.parent) as folder,
    ):
        # Archives contain their file's name: with a constant one the bytes are the same every time.
        draft = Path(folder) / f"model{path.suffix}"
        if is_tuned(recipe) and tuning.records is not None:
            records_path(draft).write_bytes(tuning.records.content())
        facts = _run(python, source, recipe, draft, tuning, say)
        records = read_records(records_path(draft)) if is_tuned(recipe) else None
        manifest = _manifest(source, recipe, draft.read_bytes(), facts, records)
        write_manifest(manifest, manifest_path(draft))
        if records is not None:
            records_path(draft).replace(records_path(path))
        draft.replace(path)
        manifest_path(draft).replace(manifest_path(path))
    say("done")
    return BuiltVariant(
        manifest=manifest, path=path, reused=False, records=None if records is None else records_path(path)
    )


def records_path(path: Path) -> Path:
    """Return the path of the tuning records of a variant's file, which are beside it."""
    return path.with_name(f"{path.stem}.records.json")


def _manifest(
    source: Source, recipe: Recipe, content: bytes, facts: BuildFacts, records: TuningRecords | None
) -> Manifest:
    digest = digest_of(content)
    known = recipe_digest(source, recipe, digest, records=None if records is None else records.digest())
    assert known is not None
    return Manifest(
        model=source.model,
        recipe=recipe,
        digest=digest,
        size_bytes=len(content),
        backends=backends_of(recipe),
        inputs=facts.inputs,
        parameters=facts.parameters,
        flops=facts.flops,
        fidelity=facts.fidelity,
        built_with={**built_with(source, recipe), **facts.built_with},
        tuning=None if records is None else _tuning(records),
        recipe_digest=known,
    )


def _tuning(records: TuningRecords) -> Tuning:
    content = records.content()
    return Tuning(trials=records.trials, records=digest_of(content), size_bytes=len(content))


def _run(
    python: Path,
    source: Source,
    recipe: Recipe,
    draft: Path,
    tuning: TuningRequest,
    say: Callable[[str], None],
) -> BuildFacts:
    facts = draft.with_name("facts.json")
    words = [str(farm.__file__), source_json(source), json.dumps(asdict(recipe)), str(draft), str(facts)]
    if is_tuned(recipe):
        words += [str(tuning.trials), str(records_path(draft))]
    with tempfile.TemporaryFile("w+", errors="replace") as stderr:
        process = subprocess.Popen(
            [str(python), "-I", "-W", "ignore", "-c", _START, *words],
            env=_clean_environment(draft.parent),
            # Nothing is written to it. It closes when this process ends, however it does, and ends the build.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            errors="replace",
            # A tuner has processes that compile and time: all end with the build.
            start_new_session=True,
        )
        refusal = _follow(process, say, _DEADLINE_S + tuning.trials * _TRIAL_DEADLINE_S)
        if process.returncode != 0:
            raise refusal or _build_error(source.model, recipe, process.returncode, stderr)
    return _FACTS.validate_json(facts.read_bytes())


def _follow(
    process: subprocess.Popen[str], say: Callable[[str], None], deadline_s: float
) -> VariantInvalid | None:
    """Pass on the steps of a build until it ends; return its refusal."""
    refusal: VariantInvalid | None = None
    deadline = threading.Timer(deadline_s, _kill, [process])
    deadline.start()
    with process:
        try:
            for line in process.stdout or ():
                kind, _, text = line.rstrip("\n").partition(": ")
                if kind == "step":
                    say(text)
                elif kind == "refused":
                    refusal = _refusal(text)
        finally:
            deadline.cancel()
            # Steps end when the build ends: only what it started is still there, unless this was interrupted.
            _kill(process)
    return refusal


def _kill(process: subprocess.Popen[str]) -> None:
    """End a build and what it started."""
    # Not waited for yet, so the number is still its own.
    if process.returncode is None:
        # macOS refuses where all have ended.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _refusal(text: str) -> VariantInvalid:
    refusal = json.loads(text)
    return VariantInvalid(refusal["message"], hint=refusal["hint"])


def _build_error(model: str, recipe: Recipe, returncode: int, stderr: IO[str]) -> VariantInvalid:
    stderr.seek(0)
    lines = [line.strip() for line in stderr if line.strip()]
    ended = f"killed by signal {-returncode}" if returncode < 0 else f"exit code {returncode}"
    why = lines[-1] if lines else "it printed nothing"
    return VariantInvalid(
        f"building {variant_name(model, recipe)} failed ({ended}): {why}",
        hint=_HINT_FOR_TORCH if builders.environment_of(recipe) == TORCH else _HINT_FOR_OTHERS,
    )


def _clean_environment(home: Path) -> dict[str, str]:
    """Return an environment without the user's settings, in which a framework leaves nothing behind."""
    folder = str(home)
    return {
        "PATH": os.defpath,
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        # Else it writes a device id and an event log when it is imported.
        "ORT_DISABLE_TELEMETRY": "1",
    }
