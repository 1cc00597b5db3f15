"""Migration 0111: the quality `wrong_output`, its way back, and views that stay."""
