"""The page's files: what a browser may load and run, for how long it keeps them, and what is none of them."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from attributary_agents.serve.http.site import Site
from attributary_agents.serve.page import Page
from tests.agents.serve.http.sites import READ, asked, filled, page_of, site_with

HTML = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page_of(tmp_path_factory.mktemp("page"), **{"plain.bin": "x", ".hidden": "no"})


@pytest.fixture(scope="module")
def site() -> Site:
    return site_with(filled())


def test_the_page_is_at_each_of_its_addresses(site: Site, page: Page) -> None:
    for response in asked(
        site, page, "/", "/models/bank", "/models/a%2Fb?by=time", "/incidents/x:1", "/compare?a=b", **HTML
    ):
        assert response.status_code == 200
        assert f'"page/": "/static/{page.build}/js/"' in response.text
        assert f'data-base="/static/{page.build}"' in response.text
        assert response.headers["cache-control"] == "private, no-cache"
        assert response.headers["content-type"] == "text/html; charset=utf-8"


def test_a_browser_runs_the_scripts_of_the_page_and_no_others(site: Site, page: Page) -> None:
    (response,) = asked(site, page, "/", **HTML)
    policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    inline = re.findall(r"<script type=\"importmap\">(.*?)</script>", response.text, re.DOTALL)
    hashes = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in inline]
    assert len(hashes) == 1
    assert policy["script-src"].split() == ["'self'", *hashes]
    assert (policy["default-src"], policy["style-src"], policy["connect-src"]) == ("'self'",) * 3
    assert policy["img-src"].split() == ["'self'", "data:", "blob:"]
    assert (policy["base-uri"], policy["frame-ancestors"], policy["form-action"]) == ("'none'", "'self'", "'self'")
    assert "unsafe" not in response.headers["content-security-policy"]


def test_every_answer_says_what_a_browser_may_make_of_it(site: Site, page: Page) -> None:
    paths = ("/", "/api/v1/models", "/api/v1/nothing", "/livez", f"{page.base}/js/main.js", "/static/x")
    for response in asked(site, page, *paths):
        assert response.headers["x-content-type-options"] == "nosniff", response.url
        assert response.headers["referrer-policy"] == "no-referrer"
        assert "content-security-policy" in response.headers
        assert "access-control-allow-origin" not in response.headers
        assert "server" not in response.headers


def test_files_are_kept_for_ever_by_a_name_that_changes_with_them(site: Site, page: Page, tmp_path: Path) -> None:
    packed, plain = (
        asked(site, page, f"{page.base}/js/main.js", **{"accept-encoding": encoding})[0] for encoding in ("gzip", "")
    )
    assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(gzip.compress(plain.content, 9, mtime=0)) < len(plain.content)
    assert packed.text == plain.text == "export const x = 1;\n" * 100
    assert packed.headers["content-type"] == "text/javascript; charset=utf-8"
    same = page_of(tmp_path, **{"plain.bin": "x"})
    assert same.build == page.build
    (tmp_path / "js" / "main.js").write_text("export const x = 2;\n")
    assert Page("1.2.3", tmp_path).build != page.build
    (tmp_path / "js" / "main.js").write_text("export const x = 1;\n" * 100)
    assert Page("1.2.4", tmp_path).build != page.build


@pytest.mark.parametrize(
    "path",
    [
        "{base}/js/none.js",
        "{base}/../../errors.py",
        "{base}/%2e%2e/%2e%2e/errors.py",
        "{base}/..%2f..%2ferrors.py",
        "{base}//etc/passwd",
        "{base}/.hidden",
        "{base}/",
        "{base}",
        "{base}/index.html",
        "/static/another-build/js/main.js",
        "/static/",
    ],
)
def test_nothing_else_is_served(site: Site, page: Page, path: str) -> None:
    (response,) = asked(site, page, path.format(base=page.base))
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"


def test_a_person_who_is_astray_is_shown_the_page_and_a_program_is_told(site: Site, page: Page) -> None:
    (person,) = asked(site, page, "/modles/bank", **HTML)
    assert (person.status_code, person.headers["content-type"]) == (404, "text/html; charset=utf-8")
    (program,) = asked(site, page, "/modles/bank", accept="application/json")
    assert (program.status_code, program.headers["content-type"]) == (404, "application/problem+json")


def test_the_page_as_it_is_packaged_has_all_that_it_names() -> None:
    page = Page("1")
    html = page.index.decode()
    assert "{{" not in html
    named = re.findall(rf'(?:src|href)="{re.escape(page.base)}/([^"]+)"', html)
    assert {"js/main.js", "css/page.css", "vendor/uPlot.iife.min.js"} <= set(named)
    assert [name for name in named if page.file(name) is None] == []
    outside = re.findall(r'(?:src|href|url)\s*[=(]\s*["\']?(https?:|//)', html)
    assert outside == []
    assert not re.search(r"\son[a-z]+=|\sstyle=", html), "what the policy would not let a browser run"


def test_ready_is_the_page_when_it_shows_all_that_the_topics_have(page: Page) -> None:
    state = [READ]
    site = site_with(filled(), reading=lambda: state[0])

    def ready() -> tuple[int, str]:
        (response,) = asked(site, page, "/readyz")
        return response.status_code, response.text

    assert ready() == (200, "ready\n")
    state[0] = replace(READ, is_reading_past=True, read_share=0.25)
    assert ready() == (503, "not ready: reading what the topics have, 25 % of it\n")
    state[0] = replace(READ, is_reading_past=True, read_share=None)
    assert ready() == (503, "not ready: reading what the topics have\n")
    state[0] = replace(READ, missing=("a", "b"))
    assert ready() == (503, "not ready: no topic a, b yet\n")
    state[0] = replace(READ, fault="the disk is full")
    assert ready() == (503, "not ready: the disk is full\n")
    state[0] = replace(READ, broker="away")
    assert ready()[0] == 200, "what was read until then is shown"
    assert asked(site, page, "/livez")[0].text == "alive\n"
