# A certificate authority of its own, a server certificate for the loopback and
# certificates for clients, all for the life of one process.
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
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE = datetime.timedelta(days=30)
# A state file may be older than any process.
_AUTHORITY_LIFE = datetime.timedelta(days=3650)


def _builder(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    life: datetime.timedelta = _LIFE,
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)

    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    return (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name("dws-sim CA"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + life)
    )


@dataclass(frozen=True)
class Identity:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority that issues what one simulator needs."""

    def __init__(self, kept: str = "") -> None:
        """kept: what pem() of an earlier one was, "": there was none.

        Raises:
            ValueError: it is no authority.
        """
        if kept:
            key = serialization.load_pem_private_key(kept.encode(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError("the authority that is kept has another kind of key")
            certificate = x509.load_pem_x509_certificate(kept.encode())
        else:
            key = ec.generate_private_key(ec.SECP256R1())
        self._key = key
        public = self._key.public_key()
        identifier = x509.SubjectKeyIdentifier.from_public_key(public)
        self._issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(public)
        if not kept:
            limits = x509.BasicConstraints(ca=True, path_length=0)
            certificate = (
                _builder("dws-sim CA", self._key, _AUTHORITY_LIFE)
                .add_extension(limits, critical=True)
                .add_extension(_usage(sign=True), critical=True)
                .add_extension(identifier, critical=False)
                .sign(self._key, hashes.SHA256())
            )
        self.pem = certificate.public_bytes(serialization.Encoding.PEM)

    def kept(self) -> str:
        """The key and the certificate, from which it can be made again."""
        return (_pem(self._key) + self.pem).decode()

    def _issue(self, subject: str, *extensions: x509.ExtensionType) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, key)
        for extension in (*extensions, self._issuer):
            builder = builder.add_extension(extension, critical=False)
        certificate = (
            builder.add_extension(
                x509.BasicConstraints(ca=False, path_length=None), critical=True
            )
            .add_extension(_usage(sign=False), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        return Identity(
            certificate.public_bytes(serialization.Encoding.PEM),
            _pem(key),
        )

    def client(self, user: str) -> Identity:
        """A certificate by which a user is known."""
        purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        return self._issue(user, purpose)

    def server(self) -> Identity:
        """The identity of a server on 127.0.0.1."""
        loopback = x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))
        names = x509.SubjectAlternativeName([loopback, x509.DNSName("localhost")])
        return self._issue("dws-sim", names)

    def containers(self) -> tuple[bytes, bytes]:
        """Certificate of all containers on 127.0.0.1, followed by this authority's, as
        clients trust the same Secret; and the key."""
        identity = self.server()
        return identity.certificate + self.pem, identity.key

    def server_context(self) -> ssl.SSLContext:
        """A context for a server on 127.0.0.1, whose clients may show a
        certificate of this authority."""
        identity = self.server()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.load_verify_locations(cadata=self.pem.decode())
        # The ssl module reads keys from files only; this one is private (0600).
        with tempfile.NamedTemporaryFile() as file:
            file.write(identity.certificate + identity.key)
            file.flush()
            os.fchmod(file.fileno(), 0o600)
            context.load_cert_chain(file.name)
        return context


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def server_context() -> tuple[ssl.SSLContext, bytes]:
    """A context for a server of its own authority, which is in PEM."""
    authority = Authority()
    return authority.server_context(), authority.pem


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
