"""Settings and controls of a device."""
