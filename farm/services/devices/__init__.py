"""Devices: views, administration, reservations, software updates."""
