"""Text of devices, programs and people, made safe for a terminal and for a JSON reader."""

import re

#: Control characters but tab and line feed: C0, DEL, C1 (ECMA-48), and Unicode's bidirectional controls and
#: separators of lines.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Replace control characters: a terminal obeys them, and even writes the clipboard (OSC 52)."""
    return _CONTROLS.sub(_REPLACEMENT, text)


def escaped(document: str) -> str:
    """Escape control characters in a JSON document, whose strings stay the same."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", document)
