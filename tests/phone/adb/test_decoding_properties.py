"""What happens to a phone's text before it is read: cut off, re-encoded, framed by prompts and complaints."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.phone.adb.capture_text import decode_output
from tests.phone.adb.phone_samples import SAMPLES, Sample, told

CAPTURES = Path(__file__).parents[4] / "shared" / "captures"
needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures beside the checkout")
TRACE = (
    "java.lang.SecurityException: Permission Denial: can't dump acme from pid=4401, uid=2000\n"
    "\tat android.os.Parcel.createException(Parcel.java:2071)\n\tat com.acme.Service.dump(Service.java:77)\n"
)
COMPLAINTS = f"Can't find service: acme\nsh: acme: not found\nsh: /sys/acme: Permission denied\n{TRACE}"
FORMS: Mapping[str, Callable[[str], str]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "CR CR LF": lambda text: text.replace("\n", "\r\r\n"),
    "UTF-16 with its mark": lambda text: decode_output(b"\xff\xfe" + text.encode("utf-16-le")),
    "UTF-16, big end first": lambda text: decode_output(b"\xfe\xff" + text.encode("utf-16-be")),
    "UTF-16 without its mark": lambda text: decode_output(text.encode("utf-16-le")),
    "UTF-16, big end first, without its mark": lambda text: decode_output(text.encode("utf-16-be")),
    "UTF-8 with its mark": lambda text: decode_output(b"\xef\xbb\xbf" + text.encode()),
    "blanks at line ends": lambda text: text.replace("\n", "  \n"),
    "between prompts": lambda text: f"star9lte:/ $ dumpsys acme\n{text}star9lte:/ $ ",
    "between coloured prompts": lambda text: (
        f"\x1b[1;32mstar9:/ #\x1b[0m acme\n{text}\x1b[1;32mstar9:/ #\x1b[0m "
    ),
    "below a window's title": lambda text: f"\x1b]0;acme@host: ~\x07\x1b[?2004h{text}",
    "with a web page's blanks": lambda text: "\u200b" + text.replace(" ", "\u00a0"),
    "in logcat, threadtime": lambda text: _each_line(text, "03-14 15:09:26.535  2718  2818 I acme    : "),
    "in logcat, uid and year": lambda text: _each_line(
        text, "2031-03-14 15:09:26.535897 +0100  1000  2718  2818 I acme: "
    ),
    "in logcat, time": lambda text: _each_line(text, "03-14 15:09:26.535 I/acme    ( 2718): "),
    "in logcat, brief": lambda text: _each_line(text, "I/acme tool( 2718): "),
    "in a log of glog's": lambda text: _each_line(text, "I0314 15:09:26.535897  2718 acme.cc:77] "),
    "with the command echoed": lambda text: f"$ adb shell acme\n{text}",
    "after complaints": lambda text: f"{COMPLAINTS}{text}",
    "before complaints": lambda text: f"{text}{COMPLAINTS}",
}


def _each_line(text: str, prefix: str) -> str:
    return "".join(f"{prefix}{line}" for line in text.splitlines(keepends=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SAMPLES)
def test_every_form_of_a_text_tells_the_same(name: str, form: str) -> None:
    sample = SAMPLES[name]
    assert told(sample, sample.text)
    assert told(sample, FORMS[form](sample.text)) == told(sample, sample.text)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_text_that_is_cut_anywhere_tells_nothing_that_the_whole_does_not(name: str) -> None:
    sample = SAMPLES[name]
    whole = told(sample, sample.text)
    # A line that is alone is taken for a whole text.
    for end in range(sample.text.index("\n") + 1, len(sample.text)):
        assert told(sample, sample.text[:end]) <= whole, sample.text[:end][-40:]


@pytest.mark.parametrize("name", SAMPLES)
def test_nothing_but_complaints_tells_nothing(name: str) -> None:
    assert not told(SAMPLES[name], COMPLAINTS)


#: Captures by what their names begin with. Not asked of what has a fallback: a dump of temperatures that ends
#: early has its cached ones only.
CUT_CAPTURES = {
    "device-state/dumpsys_battery_": "battery",
    "device-state/adb_devices_": "adb",
    "device-state/cpuinfo_": "cores",
    "device-state/cpufreq_": "clocks",
    "device-state/surfaceflinger_": "gles",
    "device-state/thermalservice_": "thermal limits",
    "device-state/df_": "df",
    "getprop/build_prop_": "build.prop",
    "getprop/getprop_pixel8pro_": "getprop",
    "getprop/getprop_pixel6pro_": "getprop",
    "accelerator/service_list_": "services",
    "accelerator/lshal_": "lshal",
    "accelerator/vintf_": "vintf",
}
MAX_CUTS = 150


@needs_captures
@pytest.mark.parametrize("prefix", CUT_CAPTURES)
def test_a_capture_that_is_cut_tells_nothing_that_the_whole_does_not(prefix: str) -> None:
    files = sorted(CAPTURES.glob(f"{prefix}*"))
    assert files
    sample = SAMPLES[CUT_CAPTURES[prefix]]
    for file in files:
        _cut_everywhere(sample, decode_output(file.read_bytes()), file.name)


def _cut_everywhere(sample: Sample, text: str, name: str) -> None:
    whole = told(sample, text)
    step = 7 * max(1, len(text) // (7 * MAX_CUTS))
    for end in range(text.find("\n") + 1, len(text), step):
        assert told(sample, text[:end]) <= whole, (name, end, text[:end][-40:])
