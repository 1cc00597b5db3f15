"""What every command uses: output, tables, errors, exit codes, settings."""
