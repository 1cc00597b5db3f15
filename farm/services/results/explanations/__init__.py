"""Everything that a number rests on."""
