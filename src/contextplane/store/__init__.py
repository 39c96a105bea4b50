"""The care of objects and catalog.

Make a store, tell its state, check it, collect what nothing refers to, export and import. It is written against the
ports and knows neither files nor SQL; those are adapters. It may import `authoring`, `trust`, `policy`, `ports`,
`model` and `errors`, and none of the rooms beside it.
"""
