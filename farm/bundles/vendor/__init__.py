"""Programs that vendors publish for Android: their addresses, and what was downloaded from them."""
