"""The pages of the explorer: each reads a request, asks the audit, and fills a template."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from mutandis.errors import MutandisError, PlanError
from mutandis.report import sentences
from mutandis.report.context import ReportContext
from mutandis.report.html import render
from mutandis.report.report import captioned_worldview
from mutandis.rooms.explorer.jobs import Job
from mutandis.rooms.explorer.people import ATTRIBUTE, PAGE_SIZES, VERDICTS, Selection
from mutandis.rooms.explorer.person import MOST_EFFECT, Person, draw_dots, read_part
from mutandis.rooms.explorer.two_audits import CHANGES, TwoAudits
from mutandis.rooms.explorer.view import Lens
from mutandis.rooms.explorer.workbench import ROLES, Draft, Trial, editable
from mutandis.rooms.explorer.worldview_yaml import write_draft
from mutandis.store.files import EXPORTS, export_people

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mutandis.auditing.audit import Audit
    from mutandis.report.html import CaptionedPicture
    from mutandis.rooms.explorer.view import View

__all__ = ["Asked", "Explorer", "MissingPageError", "Page"]

_TEXT = "text/html; charset=utf-8"
_PAGES = [
    ("/", "Overview"),
    ("/people", "People"),
    ("/workbench", "Workbench"),
    ("/compare", "Two audits"),
]
_HERE = {
    "overview.html": "/",
    "people.html": "/people",
    "person.html": "/people",
    "compare.html": "/compare",
    "workbench.html": "/workbench",
}
_MOST_LISTED = 250
_VIEW = ("method", "k", "alpha", "tau")


class MissingPageError(Exception):
    """There is no such page, or no such complainant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a request asks for: the pairs of its query, its form, and a number in its path."""

    query: Sequence[tuple[str, str]] = ()
    form: Sequence[tuple[str, str]] = ()
    number: int = 0

    @property
    def single(self) -> dict[str, str]:
        """The last value of each name in the query."""
        return dict(self.query)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer: its bytes, their type, and the name of the file if it is one to keep."""

    content: bytes
    media_type: str = _TEXT
    file_name: str = ""
    see_other: str = ""


class Explorer:
    """The pages on one audit.

    Parameters
    ----------
    audit
        What is looked into.
    name
        What it is called in the pages, such as the name of its folder.
    other, other_name
        Another audit to compare it with.
    """

    def __init__(
        self, audit: Audit, *, name: str, other: Audit | None = None, other_name: str = ""
    ) -> None:
        self.lens, self.name = Lens(audit), name
        self._other = None if other is None else Lens(other)
        self._names = (name, other_name)
        self._trial: Trial | None = None
        self._grading: Job | None = None
        self._worldview: list[CaptionedPicture | None] = []
        self._cautions: list[list[str]] = []

    def overview(self, asked: Asked) -> Page:
        """Show the headline, and the counts at other levels."""
        lens, view = self.lens, self.lens.read_view(asked.single)
        base = {row["method"]: row for row in lens.counts(replace(lens.base, k=view.k))}
        if not self._cautions:
            self._cautions.append(lens.audit.cautions())
        return self._page(
            "overview.html",
            view,
            summary=lens.summary(lens.base),
            cautions=self._cautions[0],
            rows=lens.counts(view),
            base=base,
            worldview=self._picture(),
        )

    def people(self, asked: Asked) -> Page:
        """Show a page of complainants."""
        view = self.lens.read_view(asked.single)
        table, selection = self.lens.people(view), _read_selection(asked)
        page, columns = table.page(selection), table.choose(selection.columns)
        return self._page(
            "people.html",
            view,
            table=table,
            selection=selection,
            page=page,
            columns=columns,
            headings=[
                ("id", "Id", False),
                *((each.key, each.title, each.is_number) for each in columns),
            ],
            sizes=PAGE_SIZES,
            attribute=ATTRIBUTE,
            exports=EXPORTS,
            grading=self._grading,
            gradable=self.lens.can_grade(view) and "grade" not in table.columns,
            link=lambda **changes: _query(view, self.lens.base, selection, **changes),
        )

    def grade(self, asked: Asked) -> Page:
        """Find in the background how robust each verdict of a view is."""
        view = self.lens.read_view(dict(asked.form))
        if not self.lens.can_grade(view):
            raise MissingPageError
        if self._grading is not None:
            self._grading.cancel()
        audit = self.lens.audit
        self._grading = Job(lambda report: audit.measure_tipping(view.method, view.k, report))
        query = urlencode(view.pairs(self.lens.base))
        return Page(content=b"", see_other=f"/people{'?' if query else ''}{query}")

    def cancel_grading(self, asked: Asked) -> Page:  # noqa: ARG002
        """Stop finding how robust verdicts are."""
        if self._grading is not None:
            self._grading.cancel()
        return Page(content=b"", see_other="/people")

    def export(self, asked: Asked) -> Page:
        """Give all complainants of a filtered view as a file."""
        view = self.lens.read_view(asked.single)
        table, selection = self.lens.people(view), _read_selection(asked)
        kind = asked.single.get("format", "csv")
        if kind not in EXPORTS:
            raise PlanError(f"Tables are given as {', '.join(EXPORTS)}.")
        records = table.records(table.select(selection), table.choose(selection.columns))
        content = export_people(records, kind)
        return Page(content=content, media_type=EXPORTS[kind], file_name=f"complainants.{kind}")

    def person(self, asked: Asked) -> Page:
        """Show one complainant."""
        view = self.lens.read_view(asked.single)
        person = self._find(view, asked.number)
        document = person.document()
        part = read_part(asked.single.get("effect", ""))
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
            dots=lambda group: draw_dots(group, document.words, document.complainant.outcome),
            sentences=sentences,
        )

    def compare(self, asked: Asked) -> Page:
        """Show two audits side by side."""
        if self._other is None:
            raise MissingPageError
        view = self.lens.read_view(asked.single)
        two = TwoAudits(self.lens, self._other, view)
        return self._page(
            "compare.html",
            view,
            reasons=two.reasons(),
            names=self._names,
            **_differences(two, asked.single.get("change", "changed")),
        )

    def workbench(self, asked: Asked) -> Page:
        """Show the worldview with changes, and the run of those that were run last."""
        audit, trial = self.lens.audit, self._trial
        locked = editable(audit.plan)
        if locked:
            return self._page("workbench.html", self.lens.base, locked=locked, running=False)
        draft = Draft.read(audit.plan, asked.query)
        picture, problem = None, ""
        try:
            picture = self._draw(draft)
        except MutandisError as error:
            problem = str(error)
        # looked at once: it may end while the page is made
        running = trial is not None and trial.running
        found = {}
        if trial is not None and not running and trial.result is not None:
            two = TwoAudits(self.lens, trial.result, self.lens.base)
            found = _differences(two, asked.single.get("change", "changed"))
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

    def run_draft(self, asked: Asked) -> Page:
        """Run a draft in the background; one that runs already is cancelled."""
        draft = Draft.read(self.lens.audit.plan, asked.form)
        if editable(draft.plan):
            raise MissingPageError
        draft.to_plan()  # what is wrong with it is said now
        if self._trial is not None:
            self._trial.cancel()
        self._trial = Trial(draft)
        return Page(content=b"", see_other=f"/workbench?{urlencode(draft.pairs())}")

    def cancel_run(self, asked: Asked) -> Page:  # noqa: ARG002
        """Cancel the run in the background."""
        pairs = []
        if self._trial is not None:
            self._trial.cancel()
            pairs = self._trial.draft.pairs()
        return Page(content=b"", see_other=f"/workbench?{urlencode(pairs)}")

    def draw_draft(self, asked: Asked) -> Page:
        """Give the drawing of a drafted worldview."""
        picture = self._draw(Draft.read(self.lens.audit.plan, asked.query))
        return Page(content=picture.drawing.svg.encode(), media_type="image/svg+xml")

    def save_draft(self, asked: Asked) -> Page:
        """Give the audit file of a draft."""
        text = write_draft(Draft.read(self.lens.audit.plan, asked.query))
        return Page(
            content=text.encode(),
            media_type="application/yaml; charset=utf-8",
            file_name="audit.yaml",
        )

    def _draw(self, draft: Draft) -> CaptionedPicture:
        plan = replace(draft.plan, worldview=draft.worldview(), protections=draft.protections())
        picture = captioned_worldview(ReportContext(audit=replace(self.lens.audit, plan=plan)))
        if picture is None:
            raise MissingPageError
        return picture

    def case_file(self, asked: Asked) -> Page:
        """Give the case file of one complainant, at the settings of the audit."""
        from mutandis.report.html import to_pdf

        kind = asked.single.get("format", "html")
        redact = asked.single.get("redact") == "yes"
        person = self._find(self.lens.base, asked.number)
        document = person.document(redact=redact)
        writers: dict[str, tuple[str, Callable[[], str | bytes]]] = {
            "html": (_TEXT, document.to_html),
            "json": ("application/json", document.to_json),
            "pdf": ("application/pdf", lambda: to_pdf(document.to_html())),
        }
        if kind not in writers:
            raise PlanError(f"Case files are given as {', '.join(writers)}.")
        media_type, write = writers[kind]
        content = write()
        redacted = "-redacted" if redact else ""
        return Page(
            content=content.encode() if isinstance(content, str) else content,
            media_type=media_type,
            # no id: names of files are kept in histories and backups
            file_name=f"case-{asked.number + 1}{redacted}.{kind}",
        )

    def worldview(self, asked: Asked) -> Page:  # noqa: ARG002
        """Give the drawing of the worldview."""
        picture = self._picture()
        if picture is None:
            raise MissingPageError
        return Page(content=picture.drawing.svg.encode(), media_type="image/svg+xml")

    def failure(self, sentence: str) -> bytes:
        """Say on a page what is wrong."""
        return self._page("failure.html", self.lens.base, sentence=sentence).content

    def _find(self, view: View, number: int) -> Person:
        if not 0 <= number < len(self.lens.audit.study.people):
            raise MissingPageError
        return Person(self.lens, view, number)

    def _picture(self) -> CaptionedPicture | None:
        if not self._worldview:
            self._worldview.append(captioned_worldview(ReportContext(audit=self.lens.audit)))
        return self._worldview[0]

    def _page(self, template: str, view: View, **context: Any) -> Page:
        lens = self.lens
        kept = view.pairs(lens.base)
        html = render(
            template,
            package="mutandis.rooms.explorer",
            name=self.name,
            audit=lens.audit,
            plan=lens.audit.plan,
            view=view,
            base_view=lens.base,
            view_query=urlencode(kept),
            pages=[each for each in _PAGES if self._other or each[0] != "/compare"],
            here=_HERE.get(template, ""),
            **context,
        )
        return Page(content=html.encode())


def _differences(two: TwoAudits, change: str) -> dict[str, Any]:
    """Give what the tables of two audits need."""
    if change not in CHANGES:
        raise PlanError(f"People are listed by one of: {', '.join(CHANGES)}.")
    people = two.people(change, 0, _MOST_LISTED)
    return {
        "two": two,
        "verdicts": VERDICTS,
        "change": change,
        "changes": CHANGES,
        "people": people,
    }


def _read_selection(asked: Asked) -> Selection:
    return Selection.read([pair for pair in asked.query if pair[0] not in {*_VIEW, "format"}])


def _query(view: View, base: View, selection: Selection, **changes: Any) -> str:
    return urlencode([*view.pairs(base), *selection.pairs(**changes)])
