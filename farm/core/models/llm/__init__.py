"""Files of language models, which hold a vocabulary besides the network."""
