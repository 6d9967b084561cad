# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""SHA-256 of a short text, where no action can compute it: in repository rules and macros."""

_MASK = 0xffffffff

def _primes(count):
    found = []
    for n in range(2, 400):
        if len(found) == count:
            break
        if all([n % p for p in found]):
            found.append(n)
    return found

def _root_fraction(n, power):
    # The first 32 bits of the fraction of the square (2) or cube (3) root of n: the integer
    # root of n scaled by 2^(32 * power), by bisection.
    scaled = n << (32 * power)
    low, high = 0, 1 << 40
    for _ in range(41):
        middle = (low + high + 1) >> 1
        value = middle * middle * (middle if power == 3 else 1)
        if value <= scaled:
            low = middle
        else:
            high = middle - 1
    return low & _MASK

_START = [_root_fraction(p, 2) for p in _primes(8)]
_ROUND = [_root_fraction(p, 3) for p in _primes(64)]

def _rotate(x, n):
    return ((x >> n) | (x << (32 - n))) & _MASK

def _bytes(text):
    # hash() of a string of one character is its UTF-16 code; ASCII is all that locks hold.
    codes = [hash(c) for c in text.elems()]
    bad = [c for c in text.elems() if hash(c) > 127 or hash(c) < 0]
    if bad:
        fail("sha256_hex: only ASCII text is supported, got %r" % bad[0])
    return codes

def sha256_hex(text):
    """Returns the SHA-256 of ASCII text, in hexadecimal.

    Args:
      text: the text; anything beyond ASCII fails.

    Returns:
      64 lower-case hexadecimal digits.
    """
    data = _bytes(text)
    length = 8 * len(data)
    data = data + [0x80] + [0] * ((55 - len(data)) % 64)
    data = data + [(length >> shift) & 0xff for shift in range(56, -8, -8)]
    state = list(_START)
    for block in range(0, len(data), 64):
        w = [
            (data[i] << 24) | (data[i + 1] << 16) | (data[i + 2] << 8) | data[i + 3]
            for i in range(block, block + 64, 4)
        ]
        for i in range(16, 64):
            x, y = w[i - 15], w[i - 2]
            s0 = _rotate(x, 7) ^ _rotate(x, 18) ^ (x >> 3)
            s1 = _rotate(y, 17) ^ _rotate(y, 19) ^ (y >> 10)
            w.append((w[i - 16] + s0 + w[i - 7] + s1) & _MASK)
        a, b, c, d, e, f, g, h = state
        for i in range(64):
            s1 = _rotate(e, 6) ^ _rotate(e, 11) ^ _rotate(e, 25)
            choice = (e & f) ^ ((e ^ _MASK) & g)
            t1 = h + s1 + choice + _ROUND[i] + w[i]
            s0 = _rotate(a, 2) ^ _rotate(a, 13) ^ _rotate(a, 22)
            majority = (a & b) ^ (a & c) ^ (b & c)
            a, b, c, d, e, f, g, h = (
                (t1 + s0 + majority) & _MASK,
                a,
                b,
                c,
                (d + t1) & _MASK,
                e,
                f,
                g,
            )
        state = [(x + y) & _MASK for x, y in zip(state, [a, b, c, d, e, f, g, h])]
    return "".join([("0000000%x" % x)[-8:] for x in state])
