"""Jobs: claim, termination, deferral, why they are pending."""
