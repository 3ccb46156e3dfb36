// Facts about the operable elements of a page, and the ways to find one of them.
(wanted => {
  /* NAMING */
  const MOST = 1500;
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
  const upload = one => one.matches('input[type=file]');
  const usable = one => (one.matches(OPERABLE) || pointed(one)) && (inSight(one) || upload(one)) && !disabled(one);
  const found = [];
  for (const one of elements()) {
    if (found.length >= MOST) break;
    if (usable(one)) found.push(one);
  }
  const chosen = wanted === null ? null : found[wanted];
  return {elements: found.map(facts), ...(chosen ? {names: alternatives(chosen)} : {})};
})
