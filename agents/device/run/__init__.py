"""One run on a device: supervisor, evidence, clean-up."""
