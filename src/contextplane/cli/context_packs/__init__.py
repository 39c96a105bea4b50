"""How the verbs that take any kind of pack show context packs."""
