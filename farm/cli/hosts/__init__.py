"""Commands for hosts."""
