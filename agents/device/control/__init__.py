"""Clocks, cores, charging and settings of one device."""
