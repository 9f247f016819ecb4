"""What stands on every answer to a browser: no code runs but ours, in no frame, and nobody is told."""

from starlette.responses import Response

_POLICY = (
    "default-src 'none'; "
    "script-src 'self'; "
    "style-src 'self'; "
    "img-src 'self'; "
    "font-src 'self'; "
    "connect-src 'self'; "
    "media-src 'self' blob:; "
    "form-action 'self'; "
    "frame-ancestors 'none'; "
    "base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with that a browser says of our own forms, too, that they come from nowhere.
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "microphone=(self), camera=(), geolocation=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def guarded(response: Response) -> Response:
    """Return the same answer with what guards it; it is kept by nobody but the browser that asked."""
    for name, value in _HEADERS.items():
        response.headers[name] = value
    response.headers.setdefault("Cache-Control", "private, no-cache")
    return response
