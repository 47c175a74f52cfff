# A certificate authority of its own, and a server certificate for the
# loopback, both for the life of one process.
# SPDX-License-Identifier: LGPL-3.0-only
"""Certificates."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
import tempfile
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE = datetime.timedelta(days=30)


def _builder(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    return (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFE)
    )


@dataclass(frozen=True)
class Identity:
    """What a server shows and what its clients trust, in PEM."""

    certificate: bytes
    key: bytes
    ca: bytes


def issue() -> Identity:
    """A certificate for a server on 127.0.0.1 from a new authority."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    ca = (
        _builder("dws-sim CA", "dws-sim CA", ca_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName(
        [
            x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")),
            x509.DNSName("localhost"),
        ]
    )
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    server = (
        _builder("dws-sim", "dws-sim CA", key)
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=False), critical=True)
        .add_extension(issuer, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return Identity(
        server.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        ca.public_bytes(serialization.Encoding.PEM),
    )


def server_context() -> tuple[ssl.SSLContext, bytes]:
    """A context for a server on 127.0.0.1, and the CA in PEM for clients."""
    identity = issue()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # The ssl module reads keys from files only; this one is private (0600).
    with tempfile.NamedTemporaryFile() as file:
        file.write(identity.certificate + identity.key)
        file.flush()
        os.fchmod(file.fileno(), 0o600)
        context.load_cert_chain(file.name)
    return context, identity.ca


def _usage(sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign,
        crl_sign=sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
