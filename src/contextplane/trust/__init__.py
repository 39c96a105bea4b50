"""Sign and verify.

The room for the envelope, the numbered steps of verification, the keyring as a fold over signed events, and the Merkle
log with its checkpoints and proofs. Bytes come out of it only when every step has passed. It does not keep private
keys, which are a port, it reads no clock, and it does not judge what a document means. It may import `policy`, `ports`,
`model` and `errors`, never its neighbour `authoring`. Identity claims will live here, too.
"""
