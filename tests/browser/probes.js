// What tests ask a page about its looks.
({
  cut: () => {
  const isUnseen = (one) => one.closest('.unseen, [hidden], datalist, .u-hz, [aria-hidden="true"]') !== null;
  const cut = [];
  for (const one of document.querySelectorAll('body *')) {
    if (isUnseen(one) || one instanceof SVGElement || !one.getClientRects().length) continue;
    const style = getComputedStyle(one);
    const hides = style.overflowX === 'hidden' || style.overflowX === 'clip' || style.textOverflow === 'ellipsis';
    const isInput = one.tagName === 'INPUT' && one.value && one.scrollWidth > one.clientWidth + 1 && !one.title;
    const isCut = hides && one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1 && !one.closest('[title], [aria-label]');
    if (isCut || isInput) cut.push(`${one.tagName}.${one.className}: ${(one.value || one.textContent).slice(0, 80)}`);
  }
  for (const text of document.querySelectorAll('svg text')) {
    if (!text.getClientRects().length || !text.textContent) continue;
    const [inner, outer] = [text.getBoundingClientRect(), text.ownerSVGElement.getBoundingClientRect()];
    if (inner.left < outer.left - 1.5 || inner.right > outer.right + 1.5) cut.push(`svg text: ${text.textContent.slice(0, 80)}`);
  }
  return cut;
},

  over: () => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const scrolls = (one) => { for (let up = one.parentElement; up; up = up.parentElement) {
    if (/auto|scroll|hidden|clip/.test(getComputedStyle(up).overflowX)) return true; } return false; };
  return [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > width + 1 && !scrolls(one))
    .map((one) => `${one.tagName}.${one.className} to ${Math.round(one.getBoundingClientRect().right)} of ${width}`).slice(0, 8);
},

  small: () => [...document.querySelectorAll('a[href], button, summary, select, input:not([type=hidden])')]
  .filter((one) => one.getClientRects().length && !one.closest('.unseen') && !one.matches('.skip'))
  .filter((one) => {
    const { width, height } = one.getBoundingClientRect();
    // A link within a sentence has the height of its line, as WCAG 2.5.8 has it.
    const isInText = one.tagName === 'A' && getComputedStyle(one).display === 'inline';
    return !isInText && (height < 23.5 || width < 23.5);
  }).map((one) => `${one.tagName}.${one.className}: ${(one.getAttribute('aria-label') || one.textContent).slice(0, 60)} `
    + `${Math.round(one.getBoundingClientRect().width)}x${Math.round(one.getBoundingClientRect().height)}`),

  focused: () => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one);
  const { top, bottom, left, right, width, height } = one.getBoundingClientRect();
  return {
    tag: one.tagName, name: (one.getAttribute('aria-label') || one.textContent || one.value || one.id || '').trim().slice(0, 60),
    isMarked: (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== 'none',
    isVisible: width > 0 && height > 0 && bottom > 0 && right > 0 && top < innerHeight && left < innerWidth,
    y: top + scrollY, x: left,
  };
},
})
