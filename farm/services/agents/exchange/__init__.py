"""One exchange with an agent: read a snapshot, decide, apply the effects, answer."""
