// Draws bands, lines, marks, a threshold and what lies beyond the range onto the canvas of a chart.

import { number } from "page/format.js";
import { dashOf } from "page/chart/colours.js";
import { bands, is, outliers, runs } from "page/chart/geometry.js";
import { bandOf, lookOf } from "page/chart/lines/marks.js";

/** Draw all of a chart that uPlot leaves out; `focused` is the name of the line that stands out. */
export function paint(plot, data, colours, focused) {
  const { ctx, bbox } = plot;
  const ratio = plot.pxRatio ?? devicePixelRatio;
  const x = data.x.map((value) => plot.valToPos(value, "x", true));
  const y = (value) => plot.valToPos(value, "y", true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  marksAndLevel(plot, data, colours, ratio);
  const shown = data.series.filter((one) => !one.hidden);
  const weight = (one) => (focused === null || focused === one.name ? 1 : 0.18);
  for (const one of shown) band(ctx, one, x, y, colours, weight(one) * (shown.length > 4 && focused === null ? 0.13 : 0.2));
  for (const one of shown) line(ctx, one, x, y, colours, ratio, weight(one), focused === one.name);
  ctx.restore();
  rim(plot, shown, data, colours, ratio);
}

function band(ctx, one, x, y, colours, alpha) {
  ctx.fillStyle = colours.series[one.colour ?? 0];
  ctx.globalAlpha = alpha;
  for (const { from, to } of bands(one)) {
    ctx.beginPath();
    if (from === to) {
      const half = 3;
      ctx.rect(x[from] - half, y(one.high[from]), 2 * half, y(one.low[from]) - y(one.high[from]));
    } else {
      for (let i = from; i <= to; i += 1) ctx.lineTo(x[i], y(one.high[i]));
      for (let i = to; i >= from; i -= 1) ctx.lineTo(x[i], y(one.low[i]));
    }
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

function line(ctx, one, x, y, colours, ratio, alpha, isFocused) {
  ctx.globalAlpha = alpha;
  ctx.lineWidth = (isFocused ? 2.6 : one.isReference ? 1.3 : 1.8) * ratio;
  ctx.lineJoin = "round";
  for (const { from, to, known } of runs(one)) {
    ctx.strokeStyle = ctx.fillStyle = known ? colours.series[one.colour ?? 0] : colours.muted;
    ctx.setLineDash(dashOf(one).map((length) => length * ratio));
    ctx.beginPath();
    if (from === to) {
      ctx.arc(x[from], y(one.values[from]), 3.5 * ratio, 0, 7);
      ctx.fill();
      continue;
    }
    for (let i = from; i <= to; i += 1) ctx.lineTo(x[i], y(one.values[i]));
    ctx.stroke();
  }
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

function marksAndLevel(plot, { marks, level }, colours, ratio) {
  const { ctx, bbox } = plot;
  const across = (from, to) => {
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.lineTo(...to);
    ctx.stroke();
  };
  ctx.lineWidth = ratio;
  for (const mark of marks) {
    const toPixel = (value) => plot.valToPos(value, "x", true);
    const colour = colours[lookOf(mark)[1]];
    const span = bandOf(mark, toPixel, bbox.left, bbox.left + bbox.width);
    if (span) {
      ctx.fillStyle = colour;
      ctx.globalAlpha = 0.1;
      ctx.fillRect(span[0], bbox.top, span[1] - span[0], bbox.height);
    }
    ctx.strokeStyle = colour;
    ctx.setLineDash((mark.standing ? [3, 3] : [1, 4]).map((length) => length * ratio));
    ctx.globalAlpha = 0.75;
    across([toPixel(mark.at), bbox.top], [toPixel(mark.at), bbox.top + bbox.height]);
  }
  ctx.globalAlpha = 1;
  const zero = plot.valToPos(0, "y", true);
  const [low, high] = [plot.scales.y.min, plot.scales.y.max];
  ctx.setLineDash([]);
  if (low < 0 && high > 0) {
    ctx.strokeStyle = colours.muted;
    ctx.globalAlpha = 0.6;
    across([bbox.left, zero], [bbox.left + bbox.width, zero]);
    ctx.globalAlpha = 1;
  }
  if (level && is(level.value)) {
    const at = plot.valToPos(level.value, "y", true);
    ctx.strokeStyle = ctx.fillStyle = colours.bad;
    ctx.setLineDash([7 * ratio, 4 * ratio]);
    ctx.lineWidth = 1.4 * ratio;
    across([bbox.left, at], [bbox.left + bbox.width, at]);
    ctx.font = `${12 * ratio}px ${colours.font}`;
    ctx.textAlign = "left";
    ctx.textBaseline = at - bbox.top < 18 * ratio ? "top" : "bottom";
    ctx.fillText(`${level.name} ${number(level.value)}`, bbox.left + 6 * ratio, at + (ctx.textBaseline === "top" ? 3 : -3) * ratio);
  }
  ctx.setLineDash([]);
}

function rim(plot, shown, data, colours, ratio) {
  const { ctx, bbox } = plot;
  const { min, max } = plot.scales.y;
  ctx.save();
  ctx.font = `${11 * ratio}px ${colours.font}`;
  for (const { k, i, value, isAbove } of outliers(shown, data.x, [min, max], (at) => plot.valToPos(at, "x"))) {
    const at = plot.valToPos(data.x[i], "x", true);
    const isUp = isAbove !== Boolean(data.isReversed);
    const edge = isUp ? bbox.top : bbox.top + bbox.height;
    const way = (isUp ? 1 : -1) * ratio;
    const text = number(value);
    ctx.fillStyle = colours.series[shown[k].colour ?? 0];
    ctx.beginPath();
    ctx.moveTo(at, edge + 1 * way);
    ctx.lineTo(at - 5 * ratio, edge + 9 * way);
    ctx.lineTo(at + 5 * ratio, edge + 9 * way);
    ctx.fill();
    const isLeft = at + ctx.measureText(text).width + 10 * ratio > bbox.left + bbox.width;
    ctx.textAlign = isLeft ? "right" : "left";
    ctx.textBaseline = "middle";
    ctx.fillText(text, at + (isLeft ? -8 : 8) * ratio, edge + 6 * way);
  }
  ctx.restore();
}
