"""Selection of the harness program that a device runs."""

from collections.abc import Collection, Sequence

#: Of programs that run wherever there is a shell: scripts.
ANY_ABI = "any"


def select_abi(device_abis: Sequence[str], registered: Collection[str]) -> str | None:
    """Return the ABI of the program to run; None where the device can run none of them.

    The phone's own order decides: an arm64-v8a phone runs an armeabi-v7a program where there is no better
    one. A script is taken last: what was built for a phone was meant for it.

    Args:
        device_abis: what the phone can run, best first, as it says itself.
        registered: ABIs that have a program, `any` among them or not.
    """
    return next((abi for abi in (*device_abis, ANY_ABI) if abi in registered), None)
