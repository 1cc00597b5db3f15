"""The only SQL: tables, rows, one file per aggregate."""
