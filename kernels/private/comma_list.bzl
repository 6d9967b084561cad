# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The grammar of flags that choose some of a known set: NAME[,NAME...]."""

def parse_comma_list(text, known, flag, what):
    """The names in text, sorted, each once.

    Args:
      text: the flag's value.
      known: the allowed names.
      flag: the flag's label, for the message.
      what: the kind of a name, for the message.
    Returns:
      (names, None), or (None, message).
    """
    names = {}
    for piece in text.split(","):
        name = piece.strip()
        if name not in known:
            return None, "%s=%s: %s; known: %s. Write %s=%s" % (
                flag,
                text,
                "unknown %s \"%s\"" % (what, name) if name else "an empty name",
                ", ".join(sorted(known)),
                flag,
                ",".join(sorted(known)),
            )
        names[name] = True
    return sorted(names), None
