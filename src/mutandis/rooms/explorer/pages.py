"""The pages of the explorer: each reads a request, asks the audit, and fills a template."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from mutandis.errors import MutandisError, PlanError
from mutandis.report import sentences
from mutandis.report.context import ReportContext
from mutandis.report.html import render
from mutandis.report.report import captioned_worldview
from mutandis.rooms.explorer.views import (
    CHANGES,
    MOST_EFFECT,
    VERDICTS,
    Lens,
    Person,
    Selection,
    TwoAudits,
    read_part,
)
from mutandis.rooms.explorer.workbench import ROLES, Draft, Trial, why_locked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mutandis.auditing.audit import Audit
    from mutandis.report.html import CaptionedPicture
    from mutandis.rooms.explorer.views import View

__all__ = ["Explorer", "MissingPageError", "Page", "Request"]

_TEXT = "text/html; charset=utf-8"
_PAGES = [("/", "Overview"), ("/people", "People"), ("/workbench", "Workbench")]
_HERE = {
    "overview.html": "/",
    "people.html": "/people",
    "person.html": "/people",
    "workbench.html": "/workbench",
}
_MOST_LISTED = 250
_NOT_SELECTED = {"method", "k", "alpha", "tau"}


class MissingPageError(Exception):
    """There is no such page, or no such complainant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The pairs of a query, those of a form, and a number in the path."""

    query: Sequence[tuple[str, str]] = ()
    form: Sequence[tuple[str, str]] = ()
    number: int = 0

    @property
    def single(self) -> dict[str, str]:
        """The last value of each name in the query."""
        return dict(self.query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer: its bytes and their type."""

    content: bytes
    media_type: str = _TEXT
    file_name: str = ""  # to save it under
    see_other: str = ""


class Explorer:
    """The pages on one audit."""

    def __init__(self, audit: Audit, *, name: str) -> None:
        self.lens, self.name = Lens(audit), name
        self._trial: Trial | None = None

    def overview(self, request: Request) -> Page:
        """Show the headline, and the counts at other levels."""
        lens, view = self.lens, self.lens.read_view(request.single)
        return self._page(
            "overview.html",
            view,
            summary=lens.summary(lens.base),
            cautions=lens.once("cautions", lens.audit.cautions),
            rows=lens.counts(view),
            base={row["method"]: row for row in lens.counts(replace(lens.base, k=view.k))},
            worldview=self._picture,
        )

    def people(self, request: Request) -> Page:
        """Show a page of complainants."""
        view = self.lens.read_view(request.single)
        table, selection = self.lens.people(view), _read_selection(request)
        return self._page(
            "people.html",
            view,
            table=table,
            selection=selection,
            page=table.page(selection),
            headings=[
                ("id", "Id", False),
                *((each.key, each.title, each.is_number) for each in table.shown),
            ],
            link=lambda **changes: urlencode(
                [*view.pairs(self.lens.base), *selection.pairs(**changes)]
            ),
        )

    def person(self, request: Request) -> Page:
        """Show one complainant."""
        view = self.lens.read_view(request.single)
        person = self._find(view, request.number)
        document = person.document()
        part = read_part(request.single.get("effect", ""))
        trials, refused = person.try_part(part)
        return self._page(
            "person.html",
            view,
            person=person,
            case=document,
            part=float(part),
            most_effect=MOST_EFFECT,
            trials=trials,
            trial_refused=refused,
            sentences=sentences,
        )

    def case_file(self, request: Request) -> Page:
        """Return the case file of one complainant, at the settings of the audit."""
        redact = request.single.get("redact") == "yes"
        document = self._find(self.lens.base, request.number).document(redact=redact)
        # no id: names of files are kept in histories and backups
        name = f"case-{request.number + 1}{'-redacted' if redact else ''}.html"
        return Page(content=document.to_html().encode(), file_name=name)

    def workbench(self, request: Request) -> Page:
        """Show the worldview with changes, and the last run."""
        audit, trial = self.lens.audit, self._trial
        locked = why_locked(audit.plan)
        if locked:
            return self._page("workbench.html", self.lens.base, locked=locked, running=False)
        draft = Draft.read(audit.plan, request.query)
        picture, problem = None, ""
        try:
            picture = self._draw(draft)
        except MutandisError as error:
            problem = str(error)
        # looked at once: it may end while the page is made
        running = trial is not None and trial.running
        found: dict[str, Any] = {}
        if trial is not None and not running and trial.result is not None:
            change = request.single.get("change", "changed")
            if change not in CHANGES:
                raise PlanError(f"People are listed by one of: {', '.join(CHANGES)}.")
            two = TwoAudits(self.lens, trial.result, self.lens.base)
            found = {
                "two": two,
                "verdicts": VERDICTS,
                "change": change,
                "changes": CHANGES,
                "people": two.people(change, _MOST_LISTED),
            }
        return self._page(
            "workbench.html",
            self.lens.base,
            locked="",
            draft=draft,
            draft_query=urlencode(draft.pairs()),
            drafted=[] if problem else draft.changes(),
            picture=picture,
            problem=problem,
            roles=ROLES,
            trial=trial,
            running=running,
            **found,
        )

    def run_draft(self, request: Request) -> Page:
        """Run a draft in the background; one that runs already is cancelled."""
        draft = Draft.read(self.lens.audit.plan, request.form)
        if why_locked(draft.plan):
            raise MissingPageError
        draft.to_plan()  # errors are shown now
        if self._trial is not None:
            self._trial.cancel()
        self._trial = Trial(draft)
        return _see(draft)

    def cancel_run(self, request: Request) -> Page:
        """Cancel the run in the background."""
        if self._trial is None:
            return _see(Draft.read(self.lens.audit.plan, request.form))
        self._trial.cancel()
        return _see(self._trial.draft)

    def draw_draft(self, request: Request) -> Page:
        """Return the drawing of a drafted worldview."""
        picture = self._draw(Draft.read(self.lens.audit.plan, request.query))
        return Page(content=picture.drawing.svg.encode(), media_type="image/svg+xml")

    def save_draft(self, request: Request) -> Page:
        """Return the audit file of a draft."""
        return Page(
            content=Draft.read(self.lens.audit.plan, request.query).to_yaml().encode(),
            media_type="application/yaml; charset=utf-8",
            file_name="audit.yaml",
        )

    def failure(self, sentence: str) -> bytes:
        """Return a page that explains why there is no other."""
        return self._page("failure.html", self.lens.base, sentence=sentence).content

    @cached_property
    def _picture(self) -> CaptionedPicture | None:
        return captioned_worldview(ReportContext(audit=self.lens.audit))

    def _draw(self, draft: Draft) -> CaptionedPicture:
        plan = replace(draft.plan, worldview=draft.worldview(), protections=draft.protections())
        picture = captioned_worldview(ReportContext(audit=replace(self.lens.audit, plan=plan)))
        if picture is None:
            raise MissingPageError
        return picture

    def _find(self, view: View, number: int) -> Person:
        if not 0 <= number < len(self.lens.audit.study.people):
            raise MissingPageError
        return Person(self.lens, view, number)

    def _page(self, template: str, view: View, **context: Any) -> Page:
        lens = self.lens
        html = render(
            template,
            package="mutandis.rooms.explorer",
            name=self.name,
            audit=lens.audit,
            plan=lens.audit.plan,
            view=view,
            base_view=lens.base,
            view_query=urlencode(view.pairs(lens.base)),
            pages=_PAGES,
            here=_HERE.get(template, ""),
            **context,
        )
        return Page(content=html.encode())


def _see(draft: Draft) -> Page:
    return Page(content=b"", see_other=f"/workbench?{urlencode(draft.pairs())}")


def _read_selection(request: Request) -> Selection:
    return Selection.read([pair for pair in request.query if pair[0] not in _NOT_SELECTED])
