"""Writes the report's page: its frame, style and script, and how texts and numbers look."""

from __future__ import annotations

import base64
import hashlib
import html
import unicodedata

from attributary_explainers.wording import show_number

from .report_axes import BOTTOM, LEFT, RIGHT, TOP


def escape(text: object, length: int | None = None) -> str:
    """Return text for HTML and SVG: cut to a length, without control and direction characters, markup escaped."""
    kept = "".join("\N{REPLACEMENT CHARACTER}" if _is_unprintable(c) else c for c in str(text))
    if length is not None and len(kept) > length:
        kept = kept[: length - 1] + "…"
    return html.escape(kept)


def _is_unprintable(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")


def number(value: float | None) -> str:
    """Return a number as `show_number` does, on one line and with a sign of minus; a dash for none."""
    if value is None:
        return "–"
    return show_number(value).replace(" ", "\N{NARROW NO-BREAK SPACE}").replace("-", "\N{MINUS SIGN}")


def figure(title: str, caption: str, body: str) -> str:
    """Return a chart with its title and what is to be said of it; all three are HTML."""
    return f'<figure><h3>{title}</h3><p class="dim">{caption}</p><div class="scroll">{body}</div></figure>'


def page(title: str, body: str) -> str:
    """The whole HTML file; `title` is text, `body` is HTML."""
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        # No request leaves the page and no other script runs in it, whatever stands in the data.
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'\">"
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>{_CLIP}<main>{body}</main>"
        f'<div id="tip" hidden></div><script>{_SCRIPT}</script></body></html>\n'
    )


HEAD = """\
<h1>What the models rely on, and when that changed</h1>
<details class="how" open><summary>How to read this</summary><ul>
<li><b>Importance</b> is how much the model's loss would grow without the feature. Near 0 the model ignores it;
below 0 the feature misleads it. The band is the 95 % interval: lines whose bands overlap much are not
clearly different.</li>
<li><b>Numbered lines</b> are explained changes. The shade before each begins at the alarm; what lies between was
examined. Each number has a card below with what happened (followed: the data changed, and the model with them; harder:
the data changed, and the model did not; matured: the model has learnt more; degraded: the model is worse), and with
importance before (hollow) and after (full), the whiskers its 95 % interval.</li>
<li><b>Loss</b> below the baseline: the model has learnt something. At or above it, importances mean little. A shift
of the loss is a numbered line in this chart and in those of quality, with a shade back to where it began, and has a
card, too.</li>
<li>Point at a chart for its values, at a line to see it alone.</li>
</ul></details>"""

# Every chart has the same plot, so all share one clipping.
_CLIP = (
    '<svg class="defs" aria-hidden="true"><clipPath id="plot">'
    f'<rect x="{LEFT}" y="{TOP - 1}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP + 2}"/></clipPath></svg>'
)

# The lines' colours are Okabe and Ito's, which colour-blind readers can tell apart, darkened or lightened to stand out
# from the ground; yellow is left out. The last lines are dashed besides, and each ends in its name.
_STYLE = """
:root{color-scheme:light dark;--ground:#fff;--card:#f6f7f9;--text:#1d2126;--dim:#5c6570;--grid:#e3e6ea;--zero:#9aa3ad;
--mark:#1d2126;--since:#1d212612;--c0:#0072b2;--c1:#d55e00;--c2:#008f68;--c3:#b8588e;--c4:#b87900;--c5:#3595cf;
--c6:#3a3a3a;--c7:#7c7c7c}
@media (prefers-color-scheme:dark){:root{--ground:#14171a;--card:#1d2125;--text:#e8eaed;--dim:#9da6b0;--grid:#2c3238;
--zero:#6b747d;--mark:#e8eaed;--since:#ffffff14;--c0:#3f9fe0;--c1:#f07f33;--c2:#1fbf92;--c3:#dd8fb9;--c4:#e8ac2b;
--c5:#93d1f5;--c6:#f0f0f0;--c7:#a0a0a0}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:20px 24px 60px}
h1{font-size:20px;font-weight:600;color:var(--dim);margin:8px 0 14px}
h2{font-size:26px;margin:28px 0 6px;overflow-wrap:anywhere}h2 small{font-weight:400;font-size:15px;color:var(--dim)}
h3{font-size:17px;margin:26px 0 0}h4{font-size:16px;margin:0 0 4px;overflow-wrap:anywhere}
p{margin:2px 0 6px}figure{margin:0}summary{cursor:pointer}.dim{color:var(--dim)}
.facts{display:flex;flex-wrap:wrap;gap:8px;padding:0;margin:8px 0;list-style:none}
.facts li{background:var(--card);border-radius:8px;padding:5px 12px;overflow-wrap:anywhere}
.how{background:var(--card);border-radius:8px;padding:8px 16px}.how ul{margin:6px 0;padding-left:20px}
article{background:var(--card);border-radius:8px;padding:14px 18px;margin:12px 0;scroll-margin-top:12px}
article:target{outline:2px solid var(--c0)}
.badge{display:inline-block;min-width:24px;padding:0 6px;border-radius:12px;background:var(--mark);color:var(--ground);
text-align:center}
.legend i{display:inline-block;width:26px;height:11px;margin-left:10px}
.legend i.before{border:1.5px solid var(--dim)}.legend i.after{background:var(--c0)}
.legend i:first-child{margin-left:0}
.scroll{overflow-x:auto}svg{display:block;width:100%;min-width:680px;height:auto}
svg.defs{position:absolute;width:0;height:0;min-width:0}
svg text{fill:var(--text);font-size:14px;white-space:pre;unicode-bidi:isolate}
svg text.tick{fill:var(--dim);font-size:12.5px;paint-order:stroke;stroke:var(--ground);stroke-width:4px}
svg text.end{text-anchor:end}svg text.mid{text-anchor:middle}
svg .dim,svg text.note{fill:var(--dim);font-size:13px;font-variant-numeric:tabular-nums}
.grid{stroke:var(--grid)}.zero{stroke:var(--zero)}.mark{stroke:var(--mark);stroke-width:1.2}.since{fill:var(--since)}
.level{stroke:var(--mark);stroke-dasharray:2 4}.dot{fill:var(--mark)}.cross{stroke:var(--zero);visibility:hidden}
circle.badge{fill:var(--mark)}svg text.badge{fill:var(--ground);font-size:12px}
.series polyline,.series path{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}
.series path{stroke-width:1.5}.series polygon{fill:var(--c);opacity:.13}
.c0{--c:var(--c0)}.c1{--c:var(--c1)}.c2{--c:var(--c2)}.c3{--c:var(--c3)}.c4{--c:var(--c4)}.c5{--c:var(--c5)}
.c6{--c:var(--c6)}.c7{--c:var(--c7)}.c4 polyline,.c5 polyline{stroke-dasharray:8 3}
.c6 polyline,.c7 polyline{stroke-dasharray:2 2.5}.reference polyline{stroke-dasharray:4 6;stroke-width:1}
.chart:has(.series:hover) .series:not(:hover){opacity:.15}.series:hover polyline{stroke-width:3}
rect.before{fill:var(--card);stroke:var(--dim);stroke-width:1.5}rect.after{fill:var(--c0)}
.error{stroke:var(--text);fill:none;stroke-width:1.3}
#tip{position:absolute;pointer-events:none;background:var(--ground);border:1px solid var(--zero);border-radius:6px;
padding:6px 10px;font-size:13px;font-variant-numeric:tabular-nums;white-space:pre;box-shadow:0 2px 8px #0003}
@media print{.how{display:none}article{break-inside:avoid}}
"""

# Values are read back from the drawn points, so the page holds them once. Text goes in as text, never as HTML.
_SCRIPT = """
const tip = document.getElementById('tip');
const show = v => Math.abs(v) >= 1000 ? Math.round(v).toLocaleString('en').replaceAll(',', '\\u202f')
  : String(Number(v.toPrecision(3)));
for (const svg of document.querySelectorAll('svg.chart')) {
  const [a, b, c, d] = svg.dataset.axes.split(' ').map(Number);
  const lines = [...svg.querySelectorAll('.series')].map(group => ({name: group.dataset.name,
    points: [...group.querySelectorAll('polyline')].flatMap(line => [...line.points].map(p => [p.x, p.y]))}));
  const cross = svg.querySelector('.cross');
  const nearest = (points, x) => points.reduce((p, q) => Math.abs(q[0] - x) < Math.abs(p[0] - x) ? q : p);
  svg.addEventListener('pointermove', event => {
    const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
    const found = lines.map(line => [line.name, nearest(line.points, x)]).sort((p, q) => p[1][1] - q[1][1]);
    if (!found.length) return;
    const at = nearest(found.map(f => f[1]), x)[0];
    cross.style.visibility = 'visible';
    cross.setAttribute('transform', `translate(${at} 0)`);
    tip.textContent = [`at ${show(Math.round(a + b * at))}`,
      ...found.filter(f => Math.abs(f[1][0] - at) < 20).map(f => `${show(c + d * f[1][1])}  ${f[0]}`)].join('\\n');
    tip.hidden = false;
    const left = event.pageX + 16, room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = (left < room ? left : event.pageX - tip.offsetWidth - 16) + 'px';
    tip.style.top = event.pageY + 12 + 'px';
  });
  svg.addEventListener('pointerleave', () => { tip.hidden = true; cross.style.visibility = 'hidden'; });
}
"""
