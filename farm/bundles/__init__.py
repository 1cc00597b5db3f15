"""Programs for phones, made on this machine without an NDK or taken from their vendors."""
