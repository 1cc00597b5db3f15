"""Whatever happens to a text on its way, nothing that reads one raises; readers are found by signature."""

from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.phone.adb.phone_samples import SAMPLES
from tests.support.harness.readers import readers, unknown_readers
from tests.support.session.example_count import examples

_OUTPUTS = Path(__file__).parents[1] / "support" / "harness" / "outputs"
_CAPTURES = Path(__file__).parents[3] / "shared" / "captures"
_MAX_CHARS = 6000
READERS = list(readers().values())
#: A driver that is declared with such a version, and registered with another one.
_UNUSUAL_VERSION = (
    "<hal><name>android.hardware.neuralnetworks</name><version>²</version><fqname>IDevice/a</fqname></hal>\n"
    "android.hardware.neuralnetworks@1.3::IDevice/a 1/2 77 88\n"
)
_TEXTS = [
    *(sample.text for sample in SAMPLES.values()),
    *(path.read_text() for path in sorted(_OUTPUTS.rglob("*.txt"), key=lambda path: path.name)),
    *(path.read_text(errors="replace")[:_MAX_CHARS] for path in sorted(_CAPTURES.rglob("*.txt"))),
]
#: What Python's `int`, `float`, `isdigit`, `splitlines` and `strip` treat otherwise than `[0-9]` and `\n`.
_SCRAPS = st.sampled_from(
    [*map(chr, (*range(32), 127, 133, 160, 8232, 65279)), "²", "٣", "1_0", "9" * 5000, "-", "1e999", "nan"]
)


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """A text of a device or program: cut, doubled, with other line ends, or with scraps in it."""
    text = draw(st.sampled_from(_TEXTS))
    start = draw(st.integers(0, len(text)))
    text = draw(st.sampled_from([text, text[start:], text[:start], text + text, text[start:] + text[:start]]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r", "\0", "\x1c", "\n\n"])))
    for scrap in draw(st.lists(_SCRAPS, max_size=4)):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + scrap + text[at + draw(st.integers(0, 3)) :]
    return text


@settings(max_examples=examples(8, 100))
@given(text=spoilt())
@example(text="")
@example(text="\x1c5")
@example(text="5 .5")
@example(text=_UNUSUAL_VERSION)
def test_no_reader_raises_on_any_text(text: str) -> None:
    for read in READERS:
        read(text)


def test_the_readers_are_found() -> None:
    assert len(READERS) > 120
    # Give an argument of a new kind a value there, or name the function that reads no text.
    assert unknown_readers() == []
