"""Identity of a device: properties, names, chip."""
