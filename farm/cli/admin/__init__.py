"""Commands for the machine of the farm: settings, database, backups, storage."""
