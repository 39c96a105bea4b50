"""The nouns of the product.

Frozen, closed values: ids and references, the canonical form, and one file per layer of a pack. What is parsed into a
value here needs no second check further in. It holds no rule that looks across documents, reads no clock and no file,
and knows no port. It may import `errors` and nothing else of this package; every other room may import it.
"""
