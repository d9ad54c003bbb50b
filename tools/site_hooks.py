"""What the documentation site needs beyond `docs/`, told to MkDocs (see mkdocs.yml).

Links in Markdown are written as they work in the repository. Here the pages that lie outside
`docs/` (the README, the examples) are taken in, and links are turned to where things are in the
site. A page that would load anything from elsewhere stops the build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_TAKEN_IN = (
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASING.md",
    "SECURITY.md",
    "LICENSE",
    "benchmarks/*.md",
    "benchmarks/coverage.*",
    "examples/README.md",
    "examples/*/README.md",
    "examples/*/*.yaml",
    "examples/*/*.py",
)
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b(?![^>]*\brel=[\"']?(?:canonical|prev|next))[^>]*\bhref=[\"']?(?:https?:)?//[^>]*>"
    r"|@import\s+(?:url\()?[\"']?(?:https?:)?//"
)


def on_files(files: Files, config: Any) -> Files:
    """Take in what lies outside `docs/`."""
    for pattern in _TAKEN_IN:
        for path in sorted(ROOT.glob(pattern)):
            place = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def _in_repository(page: str) -> str:
    """Say where a page of the site is in the repository."""
    return page if (ROOT / page).is_file() else f"docs/{page}"


def _in_site(path: str) -> str:
    """Say where a file of the repository is in the site; a folder is its list of contents."""
    place = path.removeprefix("docs/")
    return posixpath.join(place, "index.md") if (ROOT / path).is_dir() else place


def turned(link: str, *, page: str) -> str:
    """Turn a link of the repository into one of the site; leave what is no file there."""
    folder = posixpath.dirname(_in_repository(page))
    target = posixpath.normpath(posixpath.join(folder, link))
    if not (ROOT / target).exists():
        return link
    return posixpath.relpath(_in_site(target), posixpath.dirname(page) or ".")


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Turn the links of a page."""
    place = page.file.src_uri
    return _LINK.sub(
        lambda found: turned(found["path"], page=place) + (found["anchor"] or ""), markdown
    )


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Refuse a page that loads anything from elsewhere."""
    found = _LOADED.search(output)
    if found:
        raise PluginError(f"{page.file.src_uri} loads something from elsewhere: {found[0]}")
    return output
