"""Key pairs that sign cards and notifications, and JSON Web Signatures with them (RFC 7515, detached as §8.4.2 says).

ES256 signs as RFC 6979 says, without a random number: the same card has the same signature, and so the same ETag, in
every process.
"""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.utils import der_to_raw_signature

from agents.models import SigningKey
from agents.secrets import decrypt, encrypt

RSA_BITS = 3072
_THUMBPRINT = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n")}


@dataclass(frozen=True, slots=True)
class Signer:
    """The key that signs, ready for use. Two signers are equal when their key ids are."""

    kid: str
    algorithm: str
    _sign: Callable[[bytes], bytes] = field(compare=False, repr=False)

    @classmethod
    def of(cls, row: SigningKey) -> Signer:
        """The signer of a key that is not retired. Raises EncryptionError when its private half cannot be read."""
        key = serialization.load_pem_private_key(decrypt(row.private_key).encode(), password=None)
        return cls(row.kid, row.algorithm, _signing(key))

    def token(self, claims: bytes) -> str:
        """A JSON Web Token (RFC 7519) of claims, given as JSON."""
        header = {"alg": self.algorithm, "kid": self.kid, "typ": "JWT"}
        signed = f"{_base64url(msgspec.json.encode(header))}.{_base64url(claims)}"
        return f"{signed}.{_base64url(self._sign(signed.encode()))}"

    def sign(self, payloads: Iterable[bytes], jwks_url: str) -> list[dict[str, str]]:
        """An AgentCardSignature (§4.4.7) of each payload, as its JSON."""
        header = {"alg": self.algorithm, "jku": jwks_url, "kid": self.kid, "typ": "JOSE"}
        protected = _base64url(msgspec.json.encode(header))
        return [
            {"protected": protected, "signature": _base64url(self._sign(f"{protected}.{_base64url(payload)}".encode()))}
            for payload in payloads
        ]


def new_key(algorithm: str) -> SigningKey:
    """An unsaved key pair."""
    if algorithm == SigningKey.Algorithm.ES256:
        elliptic = ec.generate_private_key(ec.SECP256R1())
        key: PrivateKeyTypes = elliptic
        jwk: dict[str, Any] = ECAlgorithm.to_jwk(elliptic.public_key(), as_dict=True)
    else:
        modular = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
        key = modular
        jwk = RSAAlgorithm.to_jwk(modular.public_key(), as_dict=True)
        jwk.pop("key_ops", None)
    kid = _thumbprint(jwk)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = jwk | {"kid": kid, "alg": algorithm, "use": "sig"}
    return SigningKey(kid=kid, algorithm=algorithm, private_key=encrypt(pem.decode()), public_jwk=public)


def key_set(keys: Iterable[SigningKey]) -> bytes:
    """The JWK Set (RFC 7517 §5) of the public halves."""
    return msgspec.json.encode({"keys": [key.public_jwk for key in keys]}, order="sorted")


def _signing(key: PrivateKeyTypes) -> Callable[[bytes], bytes]:
    if isinstance(key, rsa.RSAPrivateKey):
        modular = key
        return lambda data: modular.sign(data, padding.PKCS1v15(), hashes.SHA256())
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError(type(key).__name__)
    elliptic = key
    algorithm = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)
    return lambda data: der_to_raw_signature(elliptic.sign(data, algorithm), elliptic.curve)


def _thumbprint(jwk: dict[str, Any]) -> str:
    """RFC 7638: a key id that only this key has."""
    members = {name: jwk[name] for name in _THUMBPRINT[jwk["kty"]]}
    text = json.dumps(members, separators=(",", ":"), sort_keys=True)
    return _base64url(hashlib.sha256(text.encode()).digest())


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
