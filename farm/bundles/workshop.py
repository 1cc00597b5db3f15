"""What a recipe builds with: folders, the compiler and other tools of its environment."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest
from pathlib import Path

from farm.bundles.commands import Run, Say, run_step
from farm.core.base.ids import Digest
from farm.core.programs.built_with import ProgramPart
from farm.core.programs.bundle import PLAIN_COMMAND
from farm.variants.environments.pins import COMPILER, pinned_versions

_HINT = (
    "the lines above the error are in the output of the compiler; `farm env remove` removes its environment"
)


def sha256_of(path: Path) -> Digest:
    """Return the SHA-256 digest of a file."""
    with path.open("rb") as content:
        return Digest(file_digest(content, "sha256").hexdigest())


def source_parts(version: str, sources: Iterable[Path]) -> tuple[ProgramPart, ...]:
    """Return the parts that are files of our own, for a version of what they are compiled with."""
    return tuple(
        ProgramPart(
            name=source.parent.name,
            version=version,
            digest=sha256_of(source),
            source=f"harnesses/compiled/{source.parent.name}/{source.name}",
        )
        for source in sources
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """Where one bundle is built."""

    #: For the files of the bundle.
    out: Path
    #: For all other files; it is deleted after the build.
    scratch: Path
    #: Of the compiler, which keeps there what it made of the C library: a minute and more.
    cache: Path
    #: The Python of the compiler's environment.
    python: Path
    run: Run
    say: Say

    def tool(self, name: str) -> Path:
        """Return a program of the environment."""
        return self.python.with_name(name)

    def compiler(self) -> Path:
        """Return the compiler's executable."""
        words = [str(self.python), "-I", "-c", "import ziglang; print(ziglang.__path__[0])"]
        folder = run_step(self.run, words, failure="the compiler cannot be found", hint=_HINT)
        return Path(folder.strip()) / "zig"

    def compiler_command(self, *arguments: str) -> list[str]:
        """Return a command of the compiler with its own cache."""
        caches = [f"ZIG_{kind}_CACHE_DIR={self.cache}" for kind in ("GLOBAL", "LOCAL")]
        return ["env", *caches, str(self.compiler()), *arguments]

    def compile(self, *arguments: str) -> None:
        """Run the compiler.

        Raises:
            InvalidInput: it failed.
        """
        run_step(self.run, self.compiler_command(*arguments), failure="the compiler failed", hint=_HINT)

    def compiler_part(self) -> ProgramPart:
        """Return the compiler as a part of what it compiles: its C library and start files are linked."""
        version = pinned_versions(COMPILER)["ziglang"]
        return ProgramPart(
            name=COMPILER, version=version, digest=sha256_of(self.compiler()), source="zig of ziglang"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a program is started once before it is registered."""

    arguments: tuple[str, ...]
    exit_code: int
    #: It prints this.
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleRecipe:
    """How the program of a harness is built for one ABI."""

    #: As `farm harness build` calls it.
    name: str
    harness: str
    abi: str
    #: Whatever changes the files: a bundle of other ingredients is another one.
    ingredients: Sequence[str]
    build: Callable[[Workshop], Sequence[ProgramPart]]
    entry: str
    command: tuple[str, ...] = PLAIN_COMMAND
    #: Tools that it needs on this machine, with a hint for each.
    tools: dict[str, str] = field(default_factory=dict)
    start: Start
