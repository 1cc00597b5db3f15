"""Short runs of the fuzzers of `make security`."""

from collections.abc import Callable
from random import Random

import pytest

from tests.security.fuzzers import FUZZERS, Draw, fuzz, fuzz_by, mutated


@pytest.mark.parametrize("name", FUZZERS)
def test_a_fuzzer_reads_something_and_finds_nothing(name: str) -> None:
    done = fuzz(name, seed="16", seconds=1)
    assert done.reads > 0
    assert done.found == {}, str(done)


def drawing(read: Callable[[], object]) -> Draw:
    return lambda _: ("reader", read, "the text")


def test_a_reader_that_raises_is_found_with_the_text_and_the_seed() -> None:
    done = fuzz_by(drawing(lambda: int("x")), name="one", seed="7", seconds=0)
    assert list(done.found) == ["reader"]
    assert "ValueError" in str(done)
    assert "by 'the text'" in str(done)
    assert "1 reads, seed 7, 1 found" in str(done)


def test_an_interrupted_fuzzer_ends() -> None:
    def interrupt() -> object:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fuzz_by(drawing(interrupt), name="one", seed="7", seconds=0)


def test_the_same_seed_gives_the_same_text() -> None:
    text = "threads: 4\n" * 20
    first, again = (mutated(text, Random("seed"), [text]) for _ in range(2))
    assert first == again
    assert first != text
