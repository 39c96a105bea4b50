"""Signers outside of this program: a command, or a token that is reached through PKCS #11."""
