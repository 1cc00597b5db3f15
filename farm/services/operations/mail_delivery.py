"""Hand a mail to its server, in a process of its own: `python -m farm.services.operations.mail_delivery`.

smtplib bounds each read alone, so a server that drips would hold its caller for ever. A process can be
killed.
"""

import pickle
import smtplib
import ssl
import sys
from contextlib import closing, suppress
from email.message import EmailMessage

from farm.core.base.address import is_loopback
from farm.core.operations.mail_server import MailServer


def main() -> int:
    """Deliver the mail that is on stdin, pickled, with its server. The reason of a failure is on stdout."""
    server: MailServer
    mail: EmailMessage
    server, mail = pickle.load(sys.stdin.buffer)
    try:
        with closing(_connect(server)) as smtp:
            smtp.send_message(mail)
            # The server has the mail, whatever becomes of the farewell.
            with suppress(OSError):
                smtp.putcmd("quit")
    # smtplib's errors are of the first kind, a password that is not ASCII is of the second.
    except (OSError, ValueError) as error:
        sys.stdout.write(f"{type(error).__name__}: {error}")
        return 1
    return 0


def _connect(server: MailServer) -> smtplib.SMTP:
    context = ssl.create_default_context()
    if server.is_tls:
        smtp: smtplib.SMTP = smtplib.SMTP_SSL(server.host, server.port, context=context)
    else:
        smtp = smtplib.SMTP(server.host, server.port)
        smtp.ehlo()
        if smtp.has_extn("starttls"):
            smtp.starttls(context=context)
        elif server.user is not None and not is_loopback(server.host):
            raise smtplib.SMTPException("the server offers no encryption, so no password is sent to it")
    if server.user is not None:
        smtp.login(server.user, server.password or "")
    return smtp


if __name__ == "__main__":
    sys.exit(main())
