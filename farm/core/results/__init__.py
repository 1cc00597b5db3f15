"""Series, pairing, speedups and what they rest on."""
