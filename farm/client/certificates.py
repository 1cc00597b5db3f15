"""The certificates that clients trust: those of the web's authorities, and those of this machine."""

import ssl

import httpx

#: The remedy for a certificate that is not among them.
UNTRUSTED_HINT = (
    "its certificate is of no authority that is known here: name the authority's PEM file in SSL_CERT_FILE"
)


def trusted_certificates(url: str) -> ssl.SSLContext:
    """Return what `verify` of httpx takes: the authorities of certifi, the system and SSL_CERT_FILE.

    Without TLS it trusts none.
    """
    if not url.startswith("https:"):
        # Trusts no one, and is made at once: each command would spend 20 ms on reading the authorities.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = httpx.create_ssl_context()
    # A company's own authority is installed there.
    context.load_default_certs()
    return context


def is_untrusted(error: BaseException) -> bool:
    """Return whether a connection failed because the certificate is not trusted, or for another name."""
    return "CERTIFICATE_VERIFY_FAILED" in str(error)
