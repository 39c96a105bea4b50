"""Sign and verify.

The room for the envelope, the numbered steps of verification, compatibility, the transparency log and identity
claims. Bytes come out of it only when every step has passed. It does not keep keys, which are a port, and it does not
judge what a document means. It may import `policy`, `ports`, `model` and `errors`, never its neighbour `authoring`.
Nothing lives here yet.
"""
