"""Damage of stored objects, in the words that every surface prints."""

from contextplane.store.damage import DAMAGE_LABEL, Damage, RepairedObject, damage_by, damage_sentence, short_ref

__all__ = ["DAMAGE_LABEL", "Damage", "RepairedObject", "damage_by", "damage_sentence", "short_ref"]
