"""Files that a person uploaded, which commands remove."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from farm.cli.shell.output import confirm, print_done, print_notice
from farm.client.farm_client import FarmClient
from farm.core.base.ids import Digest, is_digest
from farm.core.base.units import size_text
from farm.core.errors import ArtifactExpired, FarmError, Forbidden, NotFound
from farm.presentation.text import join_or_dash, plural
from farm.wire.documents.files.storage import FileRemoval, StoredFilesView


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedFile:
    """A file to remove."""

    digest: Digest
    #: What it is, for the plan.
    text: str


def find_stored_file(view: StoredFilesView, prefix: str) -> SelectedFile:
    """Return the file of a person, complete or not, whose digest begins so.

    Raises:
        NotFound: there is none, or more than one.
    """
    texts = {file.digest: f"{join_or_dash(file.names)}, {file.use}" for file in view.largest}
    texts = dict.fromkeys(view.arriving, "an upload that is not complete") | texts
    if is_digest(prefix):
        # Of more than a thousand files, the view has the largest.
        return SelectedFile(digest=Digest(prefix), text=texts.get(Digest(prefix), "by its digest"))
    matching = [digest for digest in texts if prefix and digest.startswith(prefix)]
    if not matching:
        raise NotFound(f"{view.person} has no file {prefix!r}", hint="`farm storage files` lists them")
    if len(matching) > 1:
        text = f"{len(matching)} files of {view.person} begin with {prefix!r}"
        raise NotFound(text, hint="give more digits")
    return SelectedFile(digest=matching[0], text=texts[matching[0]])


def removed_files(farm: FarmClient, digests: Iterable[Digest]) -> Iterator[FileRemoval]:
    """Remove files of a variant; pass over those that the farm has no more or someone else uploaded.

    Raises:
        NotFound: the farm has none of them.
        Forbidden: someone else uploaded all that it has.
        Conflict: a matrix that is not finished needs one.
    """
    refusal: FarmError | None = None
    is_any_removed = False
    for digest in digests:
        try:
            yield farm.remove_stored_file(digest)
            is_any_removed = True
        except (ArtifactExpired, Forbidden) as error:
            refusal = error
    if refusal is not None and not is_any_removed:
        raise refusal


def remove_files(
    farm: FarmClient,
    files: Sequence[SelectedFile],
    *,
    yes: bool,
    as_json: bool,
    of_variant: bool = False,
) -> None:
    """Show what will be removed, ask, and remove it; of a variant, what can be removed of it."""
    for file in files:
        print_notice(f"remove {file.digest[:12]}: {file.text}")
    if not yes:
        confirm("Go ahead?")
    digests = [file.digest for file in files]
    removals = list(removed_files(farm, digests) if of_variant else map(farm.remove_stored_file, digests))
    freed = size_text(sum(removal.size_bytes for removal in removals))
    print_done(removals, f"removed {plural(len(removals), 'file')}: {freed} of the quota", as_json=as_json)
