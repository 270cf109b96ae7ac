"""Start one child so that it cannot outlive its parent, and as root under another user if need be.

A script of its own (`python -I -S launch.py …`) rather than code between fork and exec: that code may not take locks,
and Python's own does. It becomes the command, so its pid is the command's pid.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import stat
import struct
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_KEEPCAPS = 8
_PR_SET_SECUREBITS = 28
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_RAISE = 2
_CAP_DAC_OVERRIDE = 1
_CAP_DAC_READ_SEARCH = 2
_CAP_SETPCAP = 8
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _prctl(option: int, *values: int) -> None:
    words = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _check(_libc.prctl(ctypes.c_int(option), *words))


def die_with_parent(number: int) -> None:
    """Have the kernel send this process signal `number` when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, number)


def _held_capabilities() -> int:
    """The permitted set of this process as a bit mask."""
    data = ctypes.create_string_buffer(24)
    _check(_libc.capget(struct.pack("=II", _CAPABILITY_VERSION_3, 0), data))
    low, high = struct.unpack("=4xI8xI4x", data.raw)
    return int(low | high << 32)


def _hold_capabilities(mask: int) -> None:
    """Make `mask` the effective, permitted and inheritable set, and hand it on to the command."""
    low, high = mask & 0xFFFFFFFF, mask >> 32
    _check(_libc.capset(struct.pack("=II", _CAPABILITY_VERSION_3, 0), struct.pack("=6I", *[low] * 3, *[high] * 3)))
    for number in range(64):
        if mask >> number & 1:
            _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number)


def become(uid: int, gid: int, program: str, needs: list[str]) -> None:
    """Leave root for `uid` and keep no right of it, but for one where `program` or a path in `needs` is out of reach.

    Root's home is closed to everybody else, and it is a usual place for a clone. Instead of opening folders of the
    machine, the command alone may then pass them: by CAP_DAC_READ_SEARCH, or by CAP_DAC_OVERRIDE where a container has
    only that one or the program may be started by its owner only.
    """
    private = not os.stat(program).st_mode & stat.S_IXOTH
    os.setgroups([])
    _prctl(_PR_SET_KEEPCAPS, 1)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if all(os.access(path, os.X_OK if os.path.isdir(path) else os.R_OK) for path in [program, *needs]):
        _hold_capabilities(0)
        return
    wanted = [_CAP_DAC_OVERRIDE] if private else [_CAP_DAC_READ_SEARCH, _CAP_DAC_OVERRIDE]
    held = [number for number in wanted if _held_capabilities() >> number & 1]
    if not held:
        sys.exit(f"user {uid} cannot reach {' and '.join([program, *needs])}")
    _hold_capabilities(1 << held[0] | 1 << _CAP_SETPCAP)
    # Else access(2), by which PostgreSQL looks for its programs, would not count the right of a user other than root.
    _prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP)
    _hold_capabilities(1 << held[0])


def main() -> None:
    """Parse the options, prepare this process, become the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True, help="pid of who starts this")
    parser.add_argument("--death-signal", type=int, required=True, help="sent when the parent dies")
    parser.add_argument("--user", help="uid:gid to run as")
    parser.add_argument("--needs", action="append", default=[], help="a path that the user must reach")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and that would be handed on.
    if options.user:
        os.umask(0o077)
        uid, gid = options.user.split(":")
        become(int(uid), int(gid), options.command[0], options.needs)
    die_with_parent(options.death_signal)  # Last: a change of user clears it.
    if os.getppid() != options.parent:  # It died before the line above.
        sys.exit(1)
    os.execv(options.command[0], options.command)


if __name__ == "__main__":
    main()
