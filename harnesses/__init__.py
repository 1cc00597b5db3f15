"""Programs that are pushed to devices and run there; read as files, never imported."""
