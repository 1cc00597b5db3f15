"""Results of tools that no agent here starts, on iOS too: text in, values out, ready to be imported."""
