"""The database engine: connections, errors, migrations, group commit, tables."""
