"""Model files and programs of a farm."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchfarm.calls import checked_calls
from benchfarm.run_spec import past_time
from farm.cli.files.harness import stated_definition
from farm.cli.files.local_variants import add_variant, files_to_remove, manifest_of_file
from farm.cli.files.program_upload import add_program
from farm.cli.files.stored_files import removed_files
from farm.cli.run.model_file import named_variant
from farm.client.farm_client import FarmClient
from farm.core.base.ids import Digest
from farm.core.models.variant import Variant
from farm.core.programs.bundle import PLAIN_COMMAND
from farm.wire.documents.files.harness_definition import harness_definition
from farm.wire.documents.files.programs import AdapterView, HarnessView, RegisteredProgramView
from farm.wire.documents.files.storage import FileRemoval, StoredFilesView


@checked_calls
class Variants:
    """The model files of a farm."""

    def __init__(self, client: FarmClient) -> None:
        self._client = client

    def add(
        self,
        path: str | Path,
        *,
        files: Sequence[str | Path] = (),
        model: str | None = None,
        precision: str = "unstated",
        backends: Sequence[str] = (),
        inputs: Sequence[str] = (),
        memory_format: str = "contiguous",
        target: str | None = None,
    ) -> Variant:
        """Upload a model and register it; the arguments are the options of `farm variant add`.

        Args:
            path: the model file.
            files: files that it needs beside it: `tokenizer.bin`, or `tokenizer.json=PATH` for another name.
            model: name of the network; None for the file's name.
            precision: of the file.
            backends: that can run it; none for those of its format.
            inputs: declared ones: `1x3x224x224:float32`.
            memory_format: of inputs.
            target: what it was built for; None for the usual one.

        Raises:
            VariantInvalid: the file is no complete model of a supported format, or needs a file beside it.
            Conflict: the farm has this file with this name but other backends or inputs.
        """
        named = tuple(map(str, files))
        manifest = manifest_of_file(
            Path(path),
            files=named,
            model=model,
            precision=precision,
            backends=tuple(backends),
            inputs=tuple(inputs),
            memory_format=memory_format,
            target=target,
        )
        return add_variant(self._client, Path(path), manifest, files=named)

    def list(
        self,
        *,
        since: datetime | str | None = None,
        name: str | None = None,
        mine: bool = False,
        every: bool = True,
        limit: int | None = None,
    ) -> list[Variant]:
        """Return the variants since a time, of a name or of the caller, the newest last, up to `limit`.

        Without `every`, only the file that new matrices run under each name.
        """
        newest = self._client.newest_variants(
            since=past_time(since), name=name, mine=mine, every=every, limit=limit
        )
        return [*newest][::-1]

    def get(self, name: str) -> Variant:
        """Return the variant that new matrices run under a name, or the one of a digest.

        Raises:
            NotFound: there is none.
        """
        return named_variant(self._client.variants(), name, hint="`farm.variants.list()` has them")

    def remove(self, name: str) -> tuple[FileRemoval, ...]:
        """Remove the files of a variant that the caller uploaded; the variant stays listed, as expired.

        A file that another variant has, too, such as a tokenizer, is kept.

        Raises:
            NotFound: there is no such variant, or its files are gone.
            Forbidden: someone else uploaded the files.
            Conflict: a matrix that is not finished needs one, or other variants have each of them.
        """
        files = files_to_remove(self._client, self.get(name))
        return tuple(removed_files(self._client, [file.digest for file in files]))


@checked_calls
class StoredFiles:
    """The files that the caller uploaded, which count for their quota."""

    def __init__(self, client: FarmClient) -> None:
        self._client = client

    def list(self) -> StoredFilesView:
        """Return the largest thousand, with the bytes of all and the quota."""
        return self._client.stored_files()

    def remove(self, digest: Digest) -> FileRemoval:
        """Remove a file, or what has arrived of an upload that broke off.

        Raises:
            NotFound: there is no such file.
            Forbidden: someone else uploaded it.
            Conflict: an unfinished matrix needs it, or a variant or program of someone else names it.
        """
        return self._client.remove_stored_file(digest)


@checked_calls
class Harnesses:
    """The harnesses of a farm, and their programs."""

    def __init__(self, client: FarmClient) -> None:
        self._client = client

    def add(
        self,
        path: str | Path,
        name: str | None = None,
        *,
        abi: str | None = None,
        entry: str | None = None,
        env: Mapping[str, str] | None = None,
        command: Sequence[str] = PLAIN_COMMAND,
        definition: Mapping[str, Any] | str | Path | None = None,
    ) -> RegisteredProgramView:
        """Upload a program, or a folder with one, and register it; new matrices of the harness run it.

        Args:
            path: the program, or its folder.
            name: the harness; None for the name of the file or folder.
            abi: None detects it from the files.
            entry: the file of a folder to start.
            env: `${work}` in a value is the folder of the run.
            command: the words of the start command, `${program}` and `${arguments}` among them.
            definition: of a generic harness: a dictionary, or the path of a YAML file.

        Raises:
            InvalidInput: the files, the definition or a value is not valid.
        """
        name = name or Path(path).stem
        if isinstance(definition, Mapping):
            stated: dict[str, Any] | None = harness_definition(definition).model_dump(mode="json")
        else:
            stated = stated_definition(self._client, name, None if definition is None else Path(definition))
        return add_program(
            self._client,
            name,
            Path(path),
            abi=abi,
            entry=entry,
            env=env,
            command=tuple(command),
            definition=stated,
        )

    def list(self) -> list[AdapterView]:
        """Return the harnesses that the farm can read, with or without a program."""
        return self._client.adapters()

    def get(self, name: str) -> HarnessView:
        """Return a harness with its flags, backends and programs."""
        return self._client.harness(name)
