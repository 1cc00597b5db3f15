"""Everything that one number rests on."""
