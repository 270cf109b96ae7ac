"""HTTP+JSON of 0.3: the paths below `/v1` of an agent's URL, in the two forms of `protocol.dialects.v03`."""
