"""Builds model variants; the only place of the farm that imports torch."""
