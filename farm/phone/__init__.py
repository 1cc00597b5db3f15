"""Pure parsers of device output."""
