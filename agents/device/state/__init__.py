"""What one device is and how it is."""
