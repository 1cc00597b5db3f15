"""The certificates that clients trust: those of the web's authorities, and those of this machine."""

import ssl

import httpx

#: The remedy for a certificate that is not among them.
UNTRUSTED_HINT = (
    "its certificate is of no authority that is known here: name the authority's PEM file in SSL_CERT_FILE"
)


def known_authorities() -> ssl.SSLContext:
    """Return what trusts the authorities of certifi, of the system and of SSL_CERT_FILE."""
    context = httpx.create_ssl_context()
    # A company's own authority is installed there.
    context.load_default_certs()
    return context


def trusted_certificates(url: str) -> ssl.SSLContext:
    """Return what `verify` of httpx takes for an address: the known authorities, or none without TLS."""
    if url.startswith("https:"):
        return known_authorities()
    # Trusts no one, and is made at once: each command would spend 20 ms on reading the authorities.
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def is_untrusted(error: BaseException) -> bool:
    """Return whether a connection failed because the certificate is not trusted, or for another name."""
    return "CERTIFICATE_VERIFY_FAILED" in str(error)
