"""Whatever a kernel logs, its parser does not raise, and each line is read by itself."""

from hypothesis import given
from hypothesis import strategies as st

from farm.phone.adb.kernel_log import usb_refusals
from farm.wire.agents.protocol import FullController

_SCRAPS = st.sampled_from(
    [
        *["usb 1-4.2: ", "usb 1-", "xhci_hcd 0000:00:14.0: ", "xhci_hcd ", ": ", "a" * 120 + ": "],
        *["Not enough host controller resources for new device state.", "can't set config #1, error -28"],
        *[
            "Error while assigning device slot ID",
            ": No Slots Available Error",
            "Not enough host resources, active endpoint contexts = 1",
        ],
        *[
            "[ 12.5] ",
            "[",
            "]",
            "3,1,5,-;",
            "kernel: ",
            "bench-1 ",
            "\n",
            "\r\n",
            "\0",
            "\ufeff",
            "9" * 200,
            "²",
        ],
    ]
)
_TEXTS = st.one_of(st.text(), st.lists(_SCRAPS, max_size=40).map("".join))


@given(_TEXTS)
def test_every_refusal_can_be_told_to_the_farm(text: str) -> None:
    for refusal in usb_refusals(text):
        assert (refusal.controller is None) != (refusal.bus is None)
        assert refusal.at_s is None or refusal.at_s >= 0
        FullController(controller=refusal.controller or f"usb{refusal.bus}", message=refusal.message)


@given(_TEXTS, _TEXTS)
def test_what_stands_in_other_lines_changes_nothing(before: str, after: str) -> None:
    line = "[ 7.25] xhci_hcd 0000:00:14.0: Error while assigning device slot ID: No Slots Available Error"
    found = usb_refusals("\n".join((before, line, after)))
    assert [each.at_s for each in found if each.controller == "0000:00:14.0"].count(7.25) >= 1
