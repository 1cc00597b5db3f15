"""The only SQL: tables, rows, one file per aggregate.

The statements of busy paths are constants with bound parameters: building one takes longer than running it.
"""
