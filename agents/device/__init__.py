"""What the agent does on a phone: facts, conditions, files, execution, clean-up."""
