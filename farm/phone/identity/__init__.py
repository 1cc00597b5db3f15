"""What a device is: properties, names, chip."""
