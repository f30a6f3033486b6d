"""Who may talk to the server: programs, and pages that it served itself; never a page from elsewhere.

A page from elsewhere has two ways. It can send requests across sites, which browsers mark with `Sec-Fetch-Site` or
`Origin`. Or it can let its own name point to this machine (DNS rebinding): its requests are then same-origin to the
browser, but carry that name as `Host`. Starlette's TrustedHostMiddleware knows neither JSON errors nor, in many
versions, IPv6.
"""

import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bcn.web.errors import Refusal

LOOPBACK = ("localhost", "127.0.0.1", "::1")
ALL_INTERFACES = ("0.0.0.0", "::")
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""of every response: the page loads nothing from elsewhere, and no other page holds it in a frame"""


class Guard:
    """Middleware that refuses other hosts and other sites, and adds SECURITY_HEADERS to every response.

    Args:
        host: the address or name that the server listens on; it is served beside the names of the loopback interface.
    """

    def __init__(self, app: ASGIApp, *, host: str) -> None:
        self.app, self.any_address = app, host in ALL_INTERFACES
        own = (socket.gethostname(), socket.getfqdn()) if self.any_address else (host,)
        self.names = {name.lower() for name in (*LOOPBACK, *own)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        if not self.serves(headers.get("host", "")):
            accepted = ", ".join(sorted(self.names))
            refusal = Refusal(400, f"this Host is not served, only {accepted}: start `bcn serve --host` with its name")
            await refusal.response()(scope, receive, send_with_headers)
        elif is_cross_site(scope["method"], headers):
            refusal = Refusal(403, "the request comes from a page of another site: open the server's own page")
            await refusal.response()(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)

    def serves(self, host: str) -> bool:
        """Whether a `Host` header names this server.

        A name that points anywhere can be an attacker's, an address cannot: on all interfaces any address is accepted.
        """
        try:
            parts = urlsplit(f"//{host}")
            name, whole = parts.hostname or "", parts.netloc == host and parts.username is None
        except ValueError:
            return False
        return whole and (name in self.names or (self.any_address and _is_address(name)))


def is_cross_site(method: str, headers: Headers) -> bool:
    """Whether a browser says that a page of another origin made this request; following a link to here is none."""
    site = headers.get("sec-fetch-site")
    if site is None:
        origin = headers.get("origin")
        return origin is not None and origin.partition("://")[2] != headers.get("host")
    is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return site not in ("same-origin", "none") and not (method in ("GET", "HEAD") and is_link)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
