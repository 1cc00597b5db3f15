"""Versions of a model file, in order: of one name as they were registered, or as a file lists them."""

from collections.abc import Sequence
from pathlib import Path

from farm.cli.files.local_variants import manifest_of_file
from farm.cli.files.variant import select_variant
from farm.cli.run.model_file import has_own_name, named_variant
from farm.client.farm_client import FarmClient
from farm.core.errors import FarmError, InvalidInput, NotFound
from farm.core.models.variant import DIGEST_SHOWN, Variant, named_by_digest


def registered_versions(views: Sequence[Variant], good: str, bad: str) -> list[Variant]:
    """Return the versions of one name from the good one to the bad one, in the order of registration.

    A file that was given its name again keeps its first place: a search needs each version once.

    Raises:
        NotFound: there is no such variant.
        InvalidInput: they have no name in common, or are in the wrong order.
    """
    first, last = find_version(views, good), find_version(views, bad)
    # A file may have several names: that of its own, and one that a comparison gave it.
    names = [
        {view.name for view in views if view.manifest.digest == end.manifest.digest} for end in (first, last)
    ]
    common = sorted(names[0] & names[1], key=len)
    if not common:
        hint = (
            "list them, oldest first, in a file: --versions FILE; `farm variant list --all` has all versions"
        )
        raise InvalidInput(f"{first.name} and {last.name} are not versions of one name", hint=hint)
    own = sorted((view for view in views if view.name == common[0]), key=lambda view: view.variant_id)
    return versions_between(own, first, last)


def listed_versions(views: Sequence[Variant], file: Path, good: str, bad: str) -> list[Variant]:
    """Return the versions that the lines of a file name, oldest first, from the good one to the bad one.

    Raises:
        NotFound: there is no such variant as the good or the bad one.
        InvalidInput: lines name none, or one that is there before; or an end is not in the file.
    """
    hint = "it has a name or digest on each line"
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file} is no text file (UTF-8)", hint=hint) from error
    versions: list[Variant] = []
    unknown: dict[int, FarmError] = {}
    for number, line in enumerate(lines, start=1):
        if not (word := line.partition("#")[0].strip()):
            continue
        try:
            version = find_version(views, word)
        except (NotFound, InvalidInput) as error:
            unknown[number] = error
            continue
        if any(version.manifest.digest == other.manifest.digest for other in versions):
            hint = "each version is there once: a search needs one change, and no way back"
            raise InvalidInput(f"{file}, line {number}: {word} is there before", hint=hint)
        versions.append(version)
    if unknown:
        told = "; ".join(f"line {number}: {error.message}" for number, error in unknown.items())
        first, *others = unknown.values()
        hint = "`farm variant add FILE` registers a file; `farm variant list --all` has all versions"
        raise InvalidInput(f"{file}, {told}", hint=hint if others else first.hint)
    return versions_between(versions, find_version(views, good), find_version(views, bad))


def versions_between(versions: Sequence[Variant], first: Variant, last: Variant) -> list[Variant]:
    """Return the versions from one to another.

    Raises:
        InvalidInput: one is not among them, both are the same, or they are in the wrong order.
    """
    digests = [version.manifest.digest for version in versions]
    for option, end in (("--good", first), ("--bad", last)):
        if end.manifest.digest not in digests:
            raise InvalidInput(
                f"{option} {short_digest(end)} is not among the versions", hint="add it to the list"
            )
    start, stop = digests.index(first.manifest.digest), digests.index(last.manifest.digest)
    if start == stop:
        raise InvalidInput("--good and --bad are the same file", hint="name two versions")
    if start > stop:
        hint = (
            "the older one is --good, whichever is quicker; a file has the place of its first registration, "
            "and --versions FILE lists them in another order"
        )
        raise InvalidInput("--good is later than --bad", hint=hint)
    return list(versions[start : stop + 1])


def find_version(views: Sequence[Variant], word: str) -> Variant:
    """Return the variant of a name, or the first one with a digest or with the content of a file.

    The files that a model names and that are beside it are a part of its content.

    Raises:
        NotFound: there is none.
        InvalidInput: the file cannot be read.
        VariantInvalid: it is no model, or a file that it needs is not beside it.
    """
    file = Path(word)
    if file.is_file():
        digest = manifest_of_file(file).digest
    else:
        version = select_variant(views, word)
        if version.name == word:
            return version
        digest = version.manifest.digest
    # Comparisons register a file again, by names of their own.
    same = [view for view in views if view.manifest.digest == digest]
    if not same:
        hint = f"`farm variant add {word}` registers it, as the newest of its name"
        raise NotFound(f"{word}: the farm does not have this file", hint=hint)
    return min(same, key=lambda view: view.variant_id)


def short_digest(version: Variant) -> str:
    """Return the beginning of the digest of a version's file."""
    return version.manifest.digest[:DIGEST_SHOWN]


def variant_to_run(farm: FarmClient, word: str, *, hint: str | None = None) -> Variant:
    """Return the variant that a name or digest means, under a name by which a matrix runs its very file.

    Raises:
        NotFound: there is no such variant; `hint` is said instead of the names that are like it.
    """
    views = farm.variants()
    view = named_variant(views, word, hint=hint)
    return view if has_own_name(views, view) else with_own_name(farm, views, view)


def with_own_name(farm: FarmClient, views: Sequence[Variant], version: Variant) -> Variant:
    """Return a version under a name of its own, by its digest: a matrix takes the current file of a name.

    It is registered where it is new; the farm has its bytes.
    """
    manifest = named_by_digest(version.manifest)
    known = (
        view
        for view in views
        if view.manifest.digest == manifest.digest
        and (view.manifest.model, view.manifest.recipe) == (manifest.model, manifest.recipe)
    )
    return next(known, None) or farm.register_variant(manifest)
