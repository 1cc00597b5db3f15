"""Matrices: submission, expansion, progress, cancellation."""
