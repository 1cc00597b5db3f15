"""Speedups per device, from the accepted measurements of a matrix."""
