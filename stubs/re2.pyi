"""What benchfarm uses of google-re2, which ships no types."""

from collections.abc import Iterator

class error(Exception): ...  # noqa: N801

class Options:
    log_errors: bool
    max_mem: int

class _Match:
    def span(self, group: int = ...) -> tuple[int, int]: ...
    def start(self, group: int = ...) -> int: ...
    def end(self, group: int = ...) -> int: ...

class _Regexp:
    groups: int
    #: Instructions.
    programsize: int
    def search(self, text: bytes) -> _Match | None: ...
    def finditer(self, text: bytes) -> Iterator[_Match]: ...

class Filter:
    def Add(self, pattern: str, options: Options | None = ...) -> int: ...  # noqa: N802
    def Compile(self) -> None: ...  # noqa: N802
    def Match(self, text: bytes, potential: bool = ...) -> list[int] | None: ...  # noqa: N802

def compile(pattern: str, options: Options | None = ...) -> _Regexp: ...
