"""Constraints on the arguments of a call: by a permission, or by a rule."""

from typing import Annotated

from msgspec import Meta

from contextplane.model.value import Document

__all__ = ["ArgConstraint", "ArgConstraints"]

Scalar = str | int | float | bool | None


class ArgConstraint(Document, frozen=True, omit_defaults=True):
    """What one argument must be. `unless_approved`: an approval lifts it."""

    min: int | float | None = None
    max: int | float | None = None
    enum: Annotated[tuple[Scalar, ...], Meta(min_length=1)] | None = None
    required: bool = False
    pattern: Annotated[str, Meta(min_length=1, max_length=512)] | None = None
    unless_approved: bool = False


ArgConstraints = dict[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,127}\Z")], ArgConstraint]
