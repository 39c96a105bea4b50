"""The eight validation gates: lists of small laws that a document has to keep, a module per topic."""
