"""The verb `keys`: sessions, changes, lists and audits of the keyring."""
