"""Version 0.3 (§3.6.2): the same operations with `kind`, lower-case states, `final` and nested push configs.

Three forms of one dialect: `V0_3` in JSON-RPC; `V0_3_WRAPPED`, the same objects as the text of the specification has
them in HTTP+JSON; `V0_3_PROTO`, the JSON of the protobuf definition, which is what SDKs send over HTTP+JSON.
"""

from __future__ import annotations

from protocol.dialects.v03.dialect import V03
from protocol.dialects.v03.forms import V0_3, V0_3_PROTO, V0_3_WRAPPED, http_form

__all__ = ["V0_3", "V0_3_PROTO", "V0_3_WRAPPED", "V03", "http_form"]
