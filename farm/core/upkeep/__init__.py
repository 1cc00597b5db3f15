"""Recovery, charging and settings of devices."""
