"""Programs that are pushed to phones and run there; imported by nobody, read as files."""
