"""From bytes a phone or a capture holds to lines, whatever happened to them on their way."""

_BOM_ENCODINGS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


def decoded(data: bytes) -> str:
    """UTF-8 with replacement; UTF-16 when it says so (a PowerShell redirect)."""
    for mark, encoding in _BOM_ENCODINGS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    return data.decode(errors="replace")


def lines(text: str) -> list[str]:
    """The lines, without line ends of any system, byte order marks and NULs; blanks in front are kept."""
    plain = text.replace("\ufeff", "").replace("\0", "")
    return [line.rstrip() for line in plain.replace("\r\n", "\n").replace("\r", "\n").split("\n")]


def whole_number(text: str) -> int | None:
    """The number that the text is, in ASCII digits; None when it is anything else."""
    digits = text.strip().removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 18 else None


def decimal_number(text: str) -> float | None:
    """As `whole_number`, with a decimal point allowed; never infinite or NaN."""
    whole, _, part = text.strip().partition(".")
    if whole_number(whole) is None or not (part == "" or (part.isascii() and part.isdigit())):
        return None
    return float(text)
