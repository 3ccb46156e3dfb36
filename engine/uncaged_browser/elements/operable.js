// Facts about the operable elements of a page, and the ways to find one of them. also: a tag whose elements
// are listed, too. inner: return the ways to find each frame in it.
(([wanted, also, inner]) => {
  /* NAMING */
  const MOST = 1500, MOST_TEXT = 1000, MOST_FRAMES = 12;
  const OPERABLE = 'a[href],area[href],button,input:not([type=hidden]),select,textarea,summary,option,[onclick],[tabindex],'
    + '[contenteditable=""],[contenteditable=true],[draggable=true],canvas,[role=button],[role=link],[role=tab],[role=menuitem],'
    + '[role=menuitemradio],[role=menuitemcheckbox],[role=option],[role=checkbox],[role=radio],[role=switch],[role=treeitem],'
    + '[role=gridcell],[role=slider],[role=combobox],[role=textbox]';
  const pointed = one => getComputedStyle(one).cursor === 'pointer'
    && !(one.parentElement && getComputedStyle(one.parentElement).cursor === 'pointer');
  const inside = one => {
    for (let node = above(one); node; node = above(node)) if (node.inert) return true;
    return one.inert;
  };
  const disabled = one => one.disabled || one.readOnly || one.getAttribute('aria-disabled') === 'true' || one.matches(':disabled') || inside(one);
  // a check box that its label draws
  const drawn = one => one.matches('input[type=checkbox],input[type=radio]') && [...one.labels || []].some(inSight);
  const upload = one => one.matches('input[type=file]');
  // a page may listen to an element without saying so in any way
  const alike = one => also && one.localName === also && one.textContent.length <= MOST_TEXT
    && !(clean(one.textContent) && [...one.querySelectorAll(also)].some(inner => clean(inner.textContent) === clean(one.textContent)));
  const usable = one => (one.matches(OPERABLE) || pointed(one) || alike(one)) && (inSight(one) || drawn(one) || upload(one)) && !disabled(one);
  const found = [];
  for (const one of elements()) {
    if (found.length >= MOST) break;
    if (usable(one)) found.push(one);
  }
  const chosen = wanted === null ? null : found[wanted];
  const frames = () => elements().filter(one => one.matches('iframe,frame') && visible(one)).slice(0, MOST_FRAMES).map(alternatives)
    .filter(names => names.length);
  return {elements: found.map(facts), ...(chosen ? {names: alternatives(chosen)} : {}), ...(inner ? {inner: frames()} : {})};
})
