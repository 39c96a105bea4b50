"""JSON: strict parsing, the canonical form, large texts, and errors that name a place."""
