"""Pure decisions and values: no IO, no clock, no randomness."""
