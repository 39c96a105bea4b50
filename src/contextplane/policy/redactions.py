"""What the redactor can find, by the names that packs use. What is not here would be named and never redacted."""

__all__ = ["REDACTIONS"]

REDACTIONS = frozenset(
    {
        *("pan", "aadhaar", "ssn", "passport", "driving_licence", "tax_id"),
        *("credit_card", "cvv", "iban", "bank_account", "upi_id"),
        *("name", "email", "phone", "address", "date_of_birth", "ip_address"),
        *("password", "api_key", "access_token", "private_key"),
    }
)
"""Numbers of people, of their money, what else tells who they are, and secrets."""
