"""What the tests of the explorer share: saved audits, and clients that have the token."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import mutandis as mm
from tests.tables import LOAN

if TYPE_CHECKING:
    from collections.abc import Callable

    from mutandis.auditing.audit import Audit

HOST = "127.0.0.1:8765"
TOKEN = "the-token-of-the-tests"

HOSTILE_ID = '"><img src=x onerror=alert(1)>'
HOSTILE_COLUMN = "<script>alert('c')</script>"


class Client:
    """Asks an application as a browser would, without a server."""

    def __init__(self, application: Any) -> None:
        self._transport = httpx.ASGITransport(application)
        self.cookies = httpx.Cookies()

    def request(self, method: str, address: str, **sent: Any) -> httpx.Response:
        """Send a request, and keep the cookies of its answer."""

        async def send() -> httpx.Response:
            given = {"follow_redirects": True, **sent}
            async with httpx.AsyncClient(
                transport=self._transport, base_url=f"http://{HOST}", cookies=self.cookies
            ) as client:
                answer = await client.request(method, address, **given)
                self.cookies = client.cookies
                return answer

        return asyncio.run(send())

    def get(self, address: str, **sent: Any) -> httpx.Response:
        """Ask for a page."""
        return self.request("GET", address, **sent)

    def post(self, address: str, **sent: Any) -> httpx.Response:
        """Send a form."""
        return self.request("POST", address, **sent)


@pytest.fixture(scope="session")
def loan(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """An audit of loans with all methods, saved and opened again."""
    found = mm.audit(
        mm.datasets.loan(n=600, seed=1),
        **LOAN,
        decision="AnnualSalary + 5 * AccountBalance > 225000",
        ks=(10, 20),
        uncertainty=mm.Uncertainty(refits=2),
    )
    folder = tmp_path_factory.mktemp("explore") / "results"
    found.save(folder)
    return mm.open_results(folder)


@pytest.fixture(scope="session")
def hostile() -> Audit:
    """An audit whose ids, names of columns and levels are written against the page."""
    number = 24
    return mm.audit(
        {
            "who": [
                HOSTILE_ID,
                "=1+1",
                "../../etc/passwd",
                "a\u202eb",
                *map(str, range(number - 4)),
            ],
            HOSTILE_COLUMN: [float(each % 7) for each in range(number)],
            "job": ["</td><b>x", "'; drop table", "@cmd", "-2"] * (number // 4),
            "sex": ["f", "f", "m", "m"] * (number // 4),
            "granted": ["<i>no</i>", "yes", "yes", "<i>no</i>", "<i>no</i>", "yes"] * (number // 6),
        },
        outcome="granted",
        negative="<i>no</i>",
        protected=mm.Protection("sex", value="f", reference="m"),
        attributes={HOSTILE_COLUMN: "continuous", "job": "nominal"},
        worldview=mm.Worldview({HOSTILE_COLUMN: mm.Linear("sex")}),
        id="who",
        ks=(3,),
        uncertainty=mm.Uncertainty(refits=2),
    )


@pytest.fixture(scope="session")
def visit() -> Callable[[Audit], Client]:
    """Return a maker of clients that have opened the address with the token."""
    pytest.importorskip("starlette", reason="the extra `explore` is not installed")
    from mutandis.rooms.explorer.pages import Explorer
    from mutandis.rooms.explorer.server import make_application

    @cache
    def application(audit: Audit) -> Any:
        return make_application(Explorer(audit, name="test"), token=TOKEN, hosts=[HOST])

    def make(audit: Audit) -> Client:
        client = Client(application(audit))
        client.get(f"/?token={TOKEN}")
        return client

    return make
