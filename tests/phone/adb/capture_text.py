"""Decode captures, which editors and shells have saved in several encodings."""

_BOM_ENCODINGS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


def decode_output(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 (a PowerShell redirect) by its mark or by NULs in every second byte."""
    for mark, encoding in _BOM_ENCODINGS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    # Devices print mostly ASCII, of which every second byte is NUL in UTF-16.
    first_are_nul, second_are_nul = _are_nul(data[::2]), _are_nul(data[1::2])
    if second_are_nul and not first_are_nul:
        return data.decode("utf-16-le", errors="replace")
    if first_are_nul and not second_are_nul:
        return data.decode("utf-16-be", errors="replace")
    return data.decode(errors="replace")


def _are_nul(data: bytes) -> bool:
    """Return whether most of at least four bytes are NUL."""
    return len(data) >= 4 and 2 * data.count(0) > len(data)
