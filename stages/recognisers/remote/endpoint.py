"""Where a recogniser elsewhere is reached, and how it is called: every call has its deadlines and its bounds.

No redirect is followed and no proxy of the environment taken, so what we send goes to whom the settings name;
a certificate is always checked.
"""

import json
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import trio
from attrs import define, field, frozen

from stages.recognisers.remote.answer import Answer
from stages.recognisers.remote.cleaning import Secret, cleaned
from stages.recognisers.remote.errors import BadAnswer, CallFailed, EndpointAway, PutOffError
from stages.stage import Allowance, Quotas

PAUSE_SECONDS: Final = 15.0  # where a service says that it is too much, and not for how long
_CLOSE_SECONDS = 5.0
_WAY_THERE_SECONDS = 1.0  # a request may arrive later than it was taken, and the next one sooner
_ENOUGH, _UNAVAILABLE = 429, 503
_NOT_LET_IN = (401, 403, 407)
_GATEWAYS = (502, 503, 504)
_REDIRECTS, _FAULTS = range(300, 400), range(500, 600)


@frozen(kw_only=True)
class Endpoint:
    """A service elsewhere; `name` is its recogniser's, and under it quotas are kept.

    Seconds: to connect, for any one step of an answer, and for a whole call. `secrets` are what its words may
    not show. Without `ca_file` the machine's own authorities are trusted; `proxy` empty means none.
    """

    name: str
    allowance: Allowance
    secrets: tuple[Secret, ...] = ()
    ca_file: Path | None = None
    proxy: str = ""
    connect_seconds: float = 10.0
    read_seconds: float = 120.0
    whole_seconds: float = 600.0
    largest_answer: int = 32 * 2**20

    @asynccontextmanager
    async def opened(self, quotas: Quotas) -> AsyncIterator["Calls"]:
        """Have it open for one attempt; what fails at the end rises with what failed before it."""
        async with httpx2.AsyncClient(
            verify=await trio.to_thread.run_sync(self._trust),
            trust_env=False,
            follow_redirects=False,
            proxy=self.proxy or None,
            timeout=httpx2.Timeout(self.read_seconds, connect=self.connect_seconds),
            headers={"Accept-Encoding": "identity", "User-Agent": "rubezh"},
        ) as client:
            yield Calls(endpoint=self, client=client, quotas=quotas)

    def _trust(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except (OSError, ssl.SSLError) as error:
            raise EndpointAway(
                f"the certificates in {self.ca_file} cannot be had ({error}); name a readable file of "
                f"certificates in {self.name}.ca_file"
            ) from error


@define(kw_only=True)
class Calls:
    """The calls of one attempt."""

    endpoint: Endpoint
    client: httpx2.AsyncClient = field(repr=False)
    quotas: Quotas
    _secrets: list[Secret] = field(factory=list, init=False, repr=False)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """All that no word of the service may show."""
        return (*self.endpoint.secrets, *self._secrets)

    def hide(self, secret: Secret) -> None:
        """Let no word of the service show this one either: a token it has just given."""
        self._secrets.append(secret)

    async def ask(  # noqa: PLR0913 - a request has so many parts
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        say: Any = None,  # noqa: ANN401 - JSON
        form: Mapping[str, Any] | None = None,
        files: Mapping[str, tuple[str, bytes, str]] | None = None,
        body: bytes | AsyncIterable[bytes] | None = None,
        accepts: tuple[int, ...] = (),
        allowance: Allowance | None = None,
        whole_seconds: float | None = None,
    ) -> Answer:
        """Take leave of the quota, make one call, and return its answer if that is about this call alone.

        That is what is good, what is refused (4xx) and whatever is named in `accepts`. `say` is sent as JSON,
        `form` and `files` (name, bytes, media type) as a form, `body` as it is.

        Raises PutOffError while the quota is used up, EndpointAway for what concerns everybody, CallFailed
        for a call that came to nothing: not answered in time, cut off, or ended in a fault (5xx).
        """
        await self._take(allowance or self.endpoint.allowance)
        content = body if say is None else json.dumps(say).encode()
        kind = {"Content-Type": "application/json"} if say is not None else {}
        try:
            request = self.client.build_request(
                method,
                url,
                headers={**kind, **(headers or {})},
                params=query,
                data=form,
                files=files,
                content=content,
            )
            with trio.fail_after(whole_seconds or self.endpoint.whole_seconds):
                answer = await self._answer(request)
        except (
            httpx2.ConnectError,
            httpx2.ConnectTimeout,
            httpx2.ProxyError,
            httpx2.UnsupportedProtocol,
        ) as error:
            raise EndpointAway(f"{self._at(url)} cannot be reached ({self._why(error)})") from error
        except (httpx2.TimeoutException, trio.TooSlowError) as error:
            raise CallFailed(f"{self._at(url)} did not answer in time") from error
        except httpx2.HTTPError as error:
            raise CallFailed(f"the call to {self._at(url)} was cut off ({self._why(error)})") from error
        return await self._judged(answer, url, accepts, allowance or self.endpoint.allowance)

    async def _take(self, allowance: Allowance) -> None:
        window = allowance.seconds + _WAY_THERE_SECONDS
        taken = Allowance(name=allowance.name, requests=allowance.requests, seconds=window)
        if wait := await self.quotas.take(taken):
            raise PutOffError(f"what {self.endpoint.name} allows is used up for {wait:.0f} s", wait)

    async def _answer(self, request: httpx2.Request) -> Answer:
        response = await self.client.send(request, stream=True)
        try:
            body = b""
            async for part in response.aiter_bytes():
                body += part
                if len(body) > self.endpoint.largest_answer:
                    most = self.endpoint.largest_answer
                    raise BadAnswer(f"the answer has more than the {most} bytes that are read of one")
        finally:
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                await response.aclose()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(status=response.status_code, headers=headers, body=body, secrets=self.secrets)

    async def _judged(
        self, answer: Answer, url: str, accepts: tuple[int, ...], allowance: Allowance
    ) -> Answer:
        """Sort an answer: what concerns everybody is raised."""
        if answer.status in accepts:
            return answer
        asked_to_wait = answer.retry_after()
        if answer.status == _ENOUGH or (answer.status == _UNAVAILABLE and asked_to_wait is not None):
            seconds = PAUSE_SECONDS if asked_to_wait is None else max(asked_to_wait, 1.0)
            await self.quotas.pause(allowance.name, seconds)
            raise PutOffError(
                f"{self.endpoint.name} asks for a pause of {seconds:.0f} s ({answer.said})", seconds
            )
        if answer.status in _NOT_LET_IN:
            raise EndpointAway(
                f"{self._at(url)} does not let us in ({answer.said}); look at its key and its rights"
            )
        if answer.status in _REDIRECTS:
            raise EndpointAway(f"{self._at(url)} sends us elsewhere ({answer.status}), which is not followed")
        if answer.status in _GATEWAYS:
            raise EndpointAway(f"{self._at(url)} is not in service ({answer.said})")
        if answer.status in _FAULTS:
            raise CallFailed(f"{self._at(url)} failed ({answer.said})")
        if answer.is_good and answer.is_page:
            raise EndpointAway(f"{self._at(url)} answers with a web page ({answer.said}); it leads elsewhere")
        return answer

    def _at(self, url: str) -> str:
        place = httpx2.URL(url)
        return f"{self.endpoint.name} at {place.host}{f':{place.port}' if place.port else ''}"

    def _why(self, error: Exception) -> str:
        """Return what a library says of an error, which may quote what was sent."""
        return cleaned(str(error) or type(error).__name__, self.secrets)
