"""Recovery, charging, settings and actions of devices."""
