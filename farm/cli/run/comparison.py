"""The matrix of several model files: each against the first, on each device, by the harness of its format."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from farm.cli.files.local_variants import add_variant
from farm.cli.run.harness_choice import HarnessChoice, joined_harness
from farm.cli.run.matrix import (
    DEFAULT_AXES,
    LONGEST_NAME,
    RunOptions,
    flag_values,
    run_backends,
    run_selectors,
    variant_axes,
)
from farm.cli.run.model_file import file_manifest, has_own_name, same_files
from farm.cli.run.versions import variant_to_run
from farm.cli.shell.output import print_notice
from farm.client.farm_client import FarmClient
from farm.core.errors import InvalidInput
from farm.core.models.variant import Variant, named_by_digest, precision_note, variant_name
from farm.wire.documents.files.programs import HarnessView


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file that is compared, and what runs it."""

    word: str
    harness: HarnessView
    variant: Variant

    def key(self, options: RunOptions) -> dict[str, str]:
        """Return the axes of its cells; without the backend where the user says on which it runs."""
        backend = (
            {} if options.backends else {"backend": run_backends(self.harness, options, self.variant)[0]}
        )
        return {"harness": self.harness.name, **variant_axes(self.variant), **backend}


def comparison_spec(
    farm: FarmClient, words: Sequence[str], names: Sequence[str], flags: list[str], options: RunOptions
) -> dict[str, Any]:
    """Return the matrix of variants that are compared with the first one, and register their files.

    Raises:
        NotFound: there is no such harness, variant or file.
        SelectorEmpty: the farm has no device with such a name.
        InvalidInput: two are one file, have one name in a matrix, or do not fit a harness.
    """
    choice = HarnessChoice(farm, names)
    files = [_file(farm, word, choice, options) for word in words]
    keys = [file.key(options) for file in files]
    _check_distinct(files, keys)
    harnesses = list({file.harness.name: file.harness for file in files}.values())
    settings = flag_values(flags, joined_harness(harnesses))
    usual = {**DEFAULT_AXES, **({"harness": harnesses[0].name} if len(harnesses) == 1 else {})}
    named = [axis for axis in keys[0] if {key[axis] for key in keys} != {usual.get(axis)}]
    first, *others = ({axis: key[axis] for axis in named} for key in keys)
    candidates = " and ".join(file.variant.name for file in files[1:])
    on = {"backend": list(options.backends)} if options.backends else {}
    spec: dict[str, Any] = {
        "name": f"compare {files[0].variant.name} with {candidates}"[:LONGEST_NAME],
        "harness": harnesses[0].name,
        "axes": {**{axis: value for axis, value in first.items() if axis != "harness"}, **on},
        "include": [
            {**other, **({"backend": backend} if options.backends else {})}
            for other in others
            for backend in options.backends or ("",)
        ],
        "baseline": {axis: first[axis] for axis in named if {key[axis] for key in keys} != {first[axis]}},
        "settings": {flag: value for flag, value in settings.items() if value != ""},
        "devices": run_selectors(farm, options.devices),
        "rounds": options.rounds,
        "timeout_s": options.timeout_s,
    }
    # One declaration for all: they get the same inputs.
    return {**spec, "inputs": list(options.inputs)} if options.inputs else spec


def _check_distinct(files: Sequence[_File], keys: Sequence[dict[str, str]]) -> None:
    for (one, own), (other, its) in combinations(zip(files, keys, strict=True), 2):
        if one.variant.manifest.digest == other.variant.manifest.digest:
            hint = "`aa: true` in a matrix measures how far two equal cells lie apart"
            raise InvalidInput(f"{one.word} and {other.word} are the same file", hint=hint)
        if own == its:
            hint = "a matrix takes the current file of a name: give the other file, and it gets a name"
            raise InvalidInput(f"{one.word} and {other.word} are both {one.variant.name}", hint=hint)


def _file(farm: FarmClient, word: str, choice: HarnessChoice, options: RunOptions) -> _File:
    """Return a file with its harness, registered where it is new, or the variant that a word means."""
    path, found = Path(word), None
    if not path.is_file():
        hint = f"it is a file or a variant; `farm speedups {word}` has the comparisons of a matrix"
        found = variant_to_run(farm, word, hint=hint if word.isdecimal() else None)
    harness = choice.harness_of(word)
    if not harness.needs_model:
        hint = "its own programs are compared as flags of one: axes of a matrix (docs/matrix.md)"
        raise InvalidInput(f"{harness.name} runs no model: there are no files to compare", hint=hint)
    variant = _registered(farm, path, harness, options) if found is None else found
    return _File(word=word, harness=harness, variant=variant)


def _registered(farm: FarmClient, path: Path, harness: HarnessView, options: RunOptions) -> Variant:
    variants = farm.variants()
    manifest = file_manifest(path, harness, precision=options.precision, inputs=options.inputs)
    for view in same_files(variants, manifest, precision=options.precision):
        if has_own_name(variants, view):
            return view
    if variant_name(manifest.model, manifest.recipe) in {view.name for view in variants}:
        # So that both stay.
        manifest = named_by_digest(manifest)
    if note := precision_note(manifest.recipe):
        print_notice(f"note: {note}")
    return add_variant(farm, path, manifest)
