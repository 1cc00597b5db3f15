"""Errors in requests."""

from collections.abc import Sequence

from farm.core.errors.base import Blame, FarmError

#: Where a host asks for what is another's.
CREDENTIAL_IN_USE_HINT = (
    "when nobody restored a database or copied a folder, somebody uses this host's credential"
)


class InvalidInput(FarmError):
    """The request is not valid as written."""

    code = "input.invalid"
    blame = Blame.USER
    default_hint = "correct the input and try again"
    #: Where in what was sent: keys and list positions, from its root.
    places: Sequence[tuple[str | int, ...]] = ()


class MatrixInvalid(InvalidInput):
    """A matrix names something that does not exist or cannot be."""

    code = "matrix.invalid"
    default_hint = "docs/matrix.md explains every key of a matrix"


class SelectorEmpty(InvalidInput):
    """A device selector matches no device of the farm."""

    code = "matrix.selector_empty"
    places = (("devices",),)
    default_hint = "`farm device list` lists what can be selected"


class VariantInvalid(InvalidInput):
    """A model file is not what it claims to be."""

    code = "variant.invalid"
    default_hint = "`farm variant build MODEL` makes files the farm knows"


class HarnessInvalid(InvalidInput):
    """A harness's program or definition is not what it should be."""

    code = "harness.invalid"
    default_hint = "docs/harnesses.md explains programs and definitions"


class ArtifactMissing(InvalidInput):
    """A digest is referred to whose bytes the farm does not have."""

    code = "artifact.missing"
    default_hint = "upload the file first: PUT /api/v1/blobs/{digest}"


class InputTooLarge(InvalidInput):
    """More was sent than the farm takes at once."""

    code = "input.too_large"
    default_hint = "send less"


class InputTooSlow(InvalidInput):
    """The body of the request did not arrive in time."""

    code = "input.too_slow"
    transient = True
    default_hint = "the line is slow or broken: try again"


class WireVersionUnsupported(InvalidInput):
    """An agent speaks a version of the protocol that this farm does not."""

    code = "wire.version"
    default_hint = "run agent and farm of the same release, or of neighbouring ones"


class DigestMismatch(FarmError):
    """Bytes do not have the digest they were announced with."""

    code = "artifact.digest_mismatch"
    blame = Blame.USER
    default_hint = "the file changed or was damaged on its way: send it again"


class NotFound(FarmError):
    """Nothing has that name."""

    code = "not_found"
    blame = Blame.USER
    default_hint = "list what there is, then use a name from the list"


class ArtifactExpired(NotFound):
    """The farm deleted these bytes, to free space or because a user removed the file."""

    code = "artifact.expired"
    default_hint = "upload the file again: `farm variant build`, `farm variant add` or `farm harness add`"


class Conflict(FarmError):
    """The request contradicts what is already recorded."""

    code = "conflict"
    blame = Blame.USER
    default_hint = "look at the present state, then decide again"


class IdempotencyKeyReused(Conflict):
    """The key of a submission was used for another one."""

    code = "request.reused"
    default_hint = "take a new key for a new submission; only the very same request may be sent again"


class ReportConflict(Conflict):
    """An attempt was already reported with other evidence."""

    code = "report.conflict"
    default_hint = "the first report counts; this one may be discarded"


class UploadInterrupted(Conflict):
    """An upload broke off, does not go on where it ended, or meets another one of the same bytes."""

    code = "artifact.upload_interrupted"
    transient = True
    default_hint = "ask with HEAD how much arrived, then send the rest"


class SessionFenced(Conflict):
    """A newer session of the same host exists, or this one was closed."""

    code = "session.fenced"
    blame = Blame.HOST
    default_hint = "open a new session"


class AuthError(FarmError):
    """The credential is missing, unknown, or not for this."""

    code = "auth.invalid"
    blame = Blame.USER
    default_hint = "enroll the agent again, or use the token you were given"


class Forbidden(FarmError):
    """The caller is known, and may not do this."""

    code = "auth.forbidden"
    blame = Blame.USER
    default_hint = "ask who runs the farm"
