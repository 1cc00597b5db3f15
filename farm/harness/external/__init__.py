"""Results that others measured: readers of the files of other tools, recognized by their content."""
