"""Pure parsers: what phones print, to values."""
