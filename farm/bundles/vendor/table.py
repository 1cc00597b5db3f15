"""Published addresses of vendors' programs for Android, and digests of some of their versions.

No address was reachable where this table was written: a digest is here only where a public text states it of
that very file, which is named beside it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from farm.core.base.ids import Digest
from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput, NotFound

_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorProgram:
    """A program of a vendor for one ABI."""

    #: As `farm harness fetch` calls it.
    name: str
    harness: str
    abi: str
    #: Beginning of the address; `--from` replaces it.
    base: str
    #: The rest of the address, with `{version}`.
    path: str
    #: The name of the program's file, which is downloaded itself or is in the archive.
    entry: str
    #: An example of a version.
    example: str
    #: The SHA-256 of the file at the vendor's address, by version.
    digests: Mapping[str, Digest] = field(default_factory=dict)

    def address(self, version: str, base: str | None = None) -> str:
        """Return the address of a version."""
        return f"{(base or self.base).rstrip('/')}/{self.path.format(version=version)}"


VENDOR_PROGRAMS = {
    program.name: program
    for program in (
        # developers.google.cn/edge/litert/next/benchmark, "Download prebuilt benchmark binaries".
        VendorProgram(
            name="litert",
            harness="benchmark_model",
            abi="arm64-v8a",
            base="https://storage.googleapis.com/litert/binaries",
            path="{version}/android_arm64/benchmark_model",
            entry="benchmark_model",
            example="2.1.4",
        ),
        # The releases of ggml-org/llama.cpp on GitHub; those of 2025 and before have no build for Android.
        VendorProgram(
            name="llama.cpp",
            harness="llama-bench",
            abi="arm64-v8a",
            base="https://github.com/ggml-org/llama.cpp/releases/download",
            path="{version}/llama-{version}-bin-android-arm64.tar.gz",
            entry="llama-bench",
            example="b10375",
            # GitHub's own digests of the releases' files, as localm keeps them for versions that it pinned
            # (github.com/Matlan1/localm, `_PINNED_FALLBACK_SHA256` of localm/setup_llama/pins.py; b9870 is
            # in earlier versions of it, localm/setup_llama.py).
            digests={
                "b9870": Digest("f9f8e6207ba97b6d34c98e6877c8beba23d462f08a73ace59ffb2ff5d134d26c"),
                "b10375": Digest("9c3816ee68ccddde5972395e15a61d9f0e744b92494b2f9eeae0a4f11cbd9ddc"),
                "b11118": Digest("3bd8261654a9dc40d4bf29bfbf0e20d5de968b576032339610248235bbebbd45"),
                "b11541": Digest("af3e6d1fec872911c5d33036ea64dc1d78926ca074991979cf0d10b18c0b405d"),
            },
        ),
    )
}


def vendor_program(text: str) -> tuple[VendorProgram, str]:
    """Return the program and the version that `NAME@VERSION` means.

    Raises:
        NotFound: the table has no program of that name.
        InvalidInput: there is no version, or it could not be one.
    """
    name, _, version = text.partition("@")
    if name not in VENDOR_PROGRAMS:
        raise NotFound(
            f"no vendor's address is known for `{name}`", hint=name_hint(name, list(VENDOR_PROGRAMS))
        )
    program = VENDOR_PROGRAMS[name]
    if not _VERSION.fullmatch(version):
        raise InvalidInput(
            f"{text!r} states no version of {name}", hint=f"write it as in {name}@{program.example}"
        )
    return program, version
