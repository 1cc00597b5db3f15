"""Export to other tools, and import of what others measured."""
