"""The fingerprint of a request with big parts, by which a repetition is recognised: that of `codec.fingerprint`, made
without the base64 of all of it."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from binascii import b2a_base64

from protocol import codec
from protocol.requests import SendMessageRequest
from protocol.stored_part import Held
from tasks_app.content.sources import NotBase64Error, source_of


def fingerprint(request: SendMessageRequest) -> str:
    """The same for one content, however big it is and wherever the limit was. It blocks. Notes the digests of what is
    held.

    Raises NotBase64Error.
    """
    held = {i: part for i, part in enumerate(request.message.parts) if isinstance(part.raw, Held)}
    contents = {i: part.raw for i, part in held.items() if isinstance(part.raw, Held)}
    tokens = {i: b64encode(os.urandom(24)).decode() for i in held}
    for index, part in held.items():
        part.raw = tokens[index]
    try:
        text = codec.canonical_text(request)
    finally:
        for index, part in held.items():
            part.raw = contents[index]
    digest = hashlib.sha256()
    for index, part in held.items():  # parts keep their order in every text
        before, text = text.split(tokens[index].encode(), 1)
        digest.update(before)
        own = hashlib.sha256()
        try:
            for chunk in source_of(part)[1].chunks():
                own.update(chunk)
                digest.update(b2a_base64(chunk, newline=False))
        except ValueError:
            raise NotBase64Error(index) from None
        contents[index].digest = own.hexdigest()
    digest.update(text)
    return digest.hexdigest()
