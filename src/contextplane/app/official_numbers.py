"""Who knows official numbers: the library that does is loaded when a text may be one."""

__all__ = ["official_number"]


def official_number(text: str) -> str | None:
    """Which official number a text is. To load the library takes longer than all gates, so nothing loads it before."""
    from stdnum import iban
    from stdnum.in_ import aadhaar, pan
    from stdnum.us import ssn

    checks = ((aadhaar, "Aadhaar number"), (pan, "PAN of a taxpayer"), (ssn, "social security number"))
    kinds = [kind for module, kind in (*checks, (iban, "bank account number")) if module.is_valid(text)]
    return kinds[0] if kinds else None
