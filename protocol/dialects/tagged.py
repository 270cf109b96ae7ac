"""Parts that name their type, as drafts of the protocol and much that was written from them have it:

    {"type": "text", "text": …}
    {"type": "data", "data": …}
    {"type": "file", "file": {"name": …, "mimeType": …, "uri" or "bytes": …}}

Reading takes them for parts of 1.0; writing adds the names to parts of 1.0 or 0.3, so that clients of both find theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import DecodeError, Raw

from protocol.json_text import is_null, repeated_members
from protocol.violations import Violations

Members = dict[str, Raw]

TYPES: Final = ("text", "file", "data")
TEXT, FILE, DATA = (Raw(msgspec.json.encode(name)) for name in TYPES)
# Member of a file, and of a part of 1.0 that holds one.
FILE_MEMBERS: Final = {"name": "filename", "mimeType": "mediaType", "uri": "url", "bytes": "raw"}
_CONTENTS: Final = ("text", "raw", "url", "data")
# Where messages, artifacts and their parts are in a response of any version.
_OBJECTS: Final = ("task", "message", "status", "statusUpdate", "artifactUpdate", "artifact")
_LISTS: Final = ("tasks", "history", "artifacts")

_members = msgspec.json.Decoder(Members)
_items = msgspec.json.Decoder(list[Raw])
_text = msgspec.json.Decoder(str)
_encode = msgspec.json.Encoder().encode


def members_of(raw: bytes | Raw | None) -> Members | None:
    """The members of a JSON object; None for anything else. Of a member that is there twice it is the last one."""
    try:
        return None if raw is None else _members.decode(raw)
    except (DecodeError, RecursionError):
        return None


def items_of(raw: Raw | None) -> list[Raw] | None:
    """The items of a JSON array; None for anything else."""
    try:
        return None if raw is None else _items.decode(raw)
    except (DecodeError, RecursionError):
        return None


def text_of(raw: Raw | None) -> str | None:
    """A JSON string; None for anything else."""
    try:
        return None if raw is None else _text.decode(raw)
    except DecodeError:
        return None


def encode(members: Members) -> Raw:
    """The JSON of an object."""
    return Raw(_encode(members))


def encode_items(items: list[Raw]) -> Raw:
    """The JSON of an array."""
    return Raw(_encode(items))


def is_tagged(raw: Raw) -> bool:
    """Whether a part names one of the types."""
    members = members_of(raw)
    return members is not None and text_of(members.get("type")) in TYPES


def note_repeated(raw: bytes | Raw, members: Members, path: str, out: Violations) -> None:
    """Note the members that an object has more than once: readers differ on which one counts."""
    for name in repeated_members(bytes(raw), members):
        out.add(f"{path}.{name}" if path else name, "is given more than once")


class TaggedParts:
    """The parts of one message on their way to 1.0. `names` has what a field is called in the dialect, by 1.0 path."""

    def __init__(self, out: Violations) -> None:
        self.out = out
        self.names: dict[str, str] = {}

    def read(self, raw: Raw, path: str) -> Raw:
        """The part of 1.0 for a part at `path`. Members that it does not know stay."""
        part = members_of(raw)
        if part is None:
            return raw
        note_repeated(raw, part, path, self.out)
        tag = text_of(part.pop("type", None))
        if tag == "file" and "file" in part and not any(name in part for name in _CONTENTS):
            self._read_file(part, path)
        return encode(part)

    def _read_file(self, part: Members, path: str) -> None:
        raw = part.pop("file")
        file, where = members_of(raw), f"{path}.file"
        if file is None:
            self.out.add(where, "must be an object")
            return
        note_repeated(raw, file, where, self.out)
        given = [name for name in ("bytes", "uri") if name in file and not is_null(file[name])]
        if len(given) != 1:
            self.out.add(where, "must have one of bytes, uri" if not given else "must have only one of bytes, uri")
        for name, new_name in FILE_MEMBERS.items():
            if name in file and not is_null(file[name]):
                part[new_name] = file[name]
                self.names[f"{path}.{new_name}"] = f"{where}.{name}"


def write_part(raw: Raw) -> Raw:
    """A part of 1.0 or 0.3 with its type, and with its `file` if it holds one."""
    part = _members.decode(raw)
    tagged: Members = {"type": part.get("kind") or type_of(part)}
    if "raw" in part or "url" in part:
        tagged["file"] = encode({name: part[new] for name, new in FILE_MEMBERS.items() if new in part})
    return encode(tagged | part)


def type_of(part: Members) -> Raw:
    """The type of a part of 1.0."""
    return TEXT if "text" in part else DATA if "data" in part else FILE


def write_parts(raw: bytes | Raw, write: Callable[[Raw], Raw] = write_part) -> Raw:
    """A response, or anything inside of one, with each of its parts as `write` gives it."""
    members = _members.decode(raw)
    for name, value in members.items():
        if name == "parts":
            members[name] = encode_items([write(part) for part in _items.decode(value)])
        elif name in _OBJECTS:
            members[name] = write_parts(value, write)
        elif name in _LISTS:
            members[name] = encode_items([write_parts(item, write) for item in _items.decode(value)])
    return encode(members)
