"""Files on one device: cache, pushes, clean-up."""
