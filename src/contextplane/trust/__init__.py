"""Sign and verify.

The envelope, the numbered steps of verification, the keyring as a fold over signed events, and the Merkle log with its
checkpoints and proofs. Bytes leave this package only when every step has passed. It does not store private keys, which
are a port, it reads no clock, and it does not judge what a document means. It may import `policy`, `ports`, `model` and
`errors`, never its neighbour `authoring`.
"""
