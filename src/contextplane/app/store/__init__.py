"""What commands do with a whole store: check it, collect garbage, count what it holds."""
