"""A second verifier of exported proofs, on the standard library alone: short, slow and recursive.

It shares no code with the first one. It takes a proof as text (C2SP tlog-proof, or the request of a C2SP witness) and a
log's key as `name+hash+key`, and answers yes or no. Ed25519 follows RFC 8032, section 6, verification only. To run it:

    python -m contextplane.testing.standalone_verifier inclusion PROOF ENTRY VKEY       ENTRY: a file with the entry
    python -m contextplane.testing.standalone_verifier consistency PROOF ROOT VKEY      ROOT: the old root, in base64
"""

import base64
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main", "proves_consistency", "proves_inclusion", "signature_holds"]

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)
_Point = tuple[int, int, int, int]


def proves_inclusion(proof: bytes, entry: bytes, vkey: str) -> bool:
    """Whether the log with this key signed a tree with this entry at the index in the proof."""
    magic, _, body = proof.partition(b"\n")
    head, _, note = body.partition(b"\n\n")
    word, *lines = head.decode().split("\n")
    tree = _signed_tree(note, vkey)
    if magic != b"c2sp.org/tlog-proof@v1" or not word.startswith("index ") or tree is None:
        return False
    path = [_decode_base64(line) for line in lines]
    leaf = hashlib.sha256(b"\0" + entry).digest()
    return _above(leaf, int(word[6:]), tree[0], path) == tree[1]


def proves_consistency(proof: bytes, old_root: bytes, vkey: str) -> bool:
    """Whether the log with this key signed a tree that extends the tree with the old root."""
    head, _, note = proof.partition(b"\n\n")
    word, *lines = head.decode().split("\n")
    tree = _signed_tree(note, vkey)
    if not word.startswith("old ") or tree is None:
        return False
    old, path = int(word[4:]), [_decode_base64(line) for line in lines]
    if old == 0:
        return not path and old_root == hashlib.sha256(b"").digest()
    if not old <= tree[0]:
        return False
    hashes = list(path)
    roots = _roots(old, tree[0], hashes, old_root, whole=True)
    return roots == (old_root, tree[1]) and not hashes


def _above(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Compute the root of a tree of `size` leaves from a leaf and its path; None if they do not fit."""
    if not 0 <= index < size or (size == 1) != (not path):
        return None
    if size == 1:
        return leaf
    half = _half(size)
    if index < half:
        inner = _above(leaf, index, half, path[:-1])
        return None if inner is None else _node(inner, path[-1])
    inner = _above(leaf, index - half, size - half, path[:-1])
    return None if inner is None else _node(path[-1], inner)


def _roots(old: int, size: int, hashes: list[bytes], old_root: bytes, *, whole: bool) -> tuple[bytes, bytes] | None:
    """Compute the roots of the first `old` and of all `size` leaves; pops `hashes` from the end."""
    if old == size:
        if whole:
            return old_root, old_root
        same = hashes.pop() if hashes else None
        return None if same is None else (same, same)
    if not hashes:
        return None
    half, other = _half(size), hashes.pop()
    if old <= half:
        inner = _roots(old, half, hashes, old_root, whole=whole)
        return None if inner is None else (inner[0], _node(inner[1], other))
    inner = _roots(old - half, size - half, hashes, old_root, whole=False)
    return None if inner is None else (_node(other, inner[0]), _node(other, inner[1]))


def _half(size: int) -> int:
    half = 1
    while half * 2 < size:
        half *= 2
    return half


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()


def _decode_base64(text: str) -> bytes:
    """Decode base64 in its canonical spelling: no other text may stand for the same bytes."""
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError("not the one spelling of these bytes")
    return data


def _signed_tree(note: bytes, vkey: str) -> tuple[int, bytes] | None:
    """Return size and root of a checkpoint, if the log's key signed it under the log's name."""
    name, _, encoded = vkey.split("+", 2)
    key = _decode_base64(encoded)
    text, _, signatures = note.decode().rpartition("\n\n")
    text += "\n"
    origin, size, root = text.split("\n")[:3]
    hint = hashlib.sha256(name.encode() + b"\n" + key).digest()[:4]
    for line in signatures.splitlines():
        dash, signer, value = line.split(" ")
        data = _decode_base64(value)
        if (dash, signer, data[:4]) == ("\u2014", name, hint) and origin == name:
            return (int(size), _decode_base64(root)) if signature_holds(key[1:], data[4:], text.encode()) else None
    return None


def signature_holds(key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether a signature is valid: [S]B = R + [k]A (RFC 8032, 5.1.7)."""
    point, claimed = _point(key), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if point is None or claimed is None or scalar >= _L or len(signature) != 64:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % _L
    base = _point((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))
    return base is not None and _equal(_times(scalar, base), _add(claimed, _times(k, point)))


def _point(data: bytes) -> _Point | None:
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if len(data) != 32 or y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT % _P
    if (x * x - square) % _P or (x == 0 and sign):
        return None
    x = _P - x if x & 1 != sign else x
    return x, y, 1, x * y % _P


def _add(point: _Point, other: _Point) -> _Point:
    a, b = (point[1] - point[0]) * (other[1] - other[0]) % _P, (point[1] + point[0]) * (other[1] + other[0]) % _P
    c, d = 2 * point[3] * other[3] * _D % _P, 2 * point[2] * other[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(scalar: int, point: _Point) -> _Point:
    result: _Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point, scalar = _add(point, point), scalar >> 1
    return result


def _equal(point: _Point, other: _Point) -> bool:
    return (point[0] * other[2] - other[0] * point[2]) % _P == 0 and (
        point[1] * other[2] - other[1] * point[2]
    ) % _P == 0


def main(arguments: Sequence[str]) -> int:
    """Return 0 when it is proved, 1 when it is not, 2 for wrong arguments or files."""
    if len(arguments) != 4 or arguments[0] not in {"inclusion", "consistency"}:
        sys.stderr.write("usage: inclusion PROOF ENTRY VKEY | consistency PROOF ROOT VKEY\n")
        return 2
    kind, path, subject, vkey = arguments
    try:
        proof = Path(path).read_bytes()
        if kind == "inclusion":
            proved = proves_inclusion(proof, Path(subject).read_bytes(), vkey)
        else:
            proved = proves_consistency(proof, _decode_base64(subject), vkey)
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except (ValueError, IndexError):
        proved = False  # not the form of a proof, an entry, a root or a key
    sys.stdout.write("proved\n" if proved else "not proved\n")
    return 0 if proved else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
