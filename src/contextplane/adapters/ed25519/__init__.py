"""Ed25519 by the package `cryptography`: the ports `Signer` and `SignatureCheck`, and keys as files have them.

Importing it loads OpenSSL. Only what signs or verifies imports it, and late.
"""
