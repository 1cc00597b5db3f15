"""Operations on a device: facts, conditions, files, runs, clean-up."""
