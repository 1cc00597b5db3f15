"""Commands for variants and harnesses."""
