"""Commands for matrices."""
