"""Tables of comparisons."""
