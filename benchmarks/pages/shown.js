// What a page shows, read from its document alone: headings, texts, and elements that a person operates. known:
// the elements that a page view named are left out of the last.
known => {
  const clean = text => (text || '').replace(/\s+/g, ' ').trim();
  const seen = one => one.checkVisibility({visibilityProperty: true, opacityProperty: true});
  const HIDDEN = 'script,style,noscript,template,option,[aria-hidden=true]';
  const OPERABLE = 'a[href],button,input:not([type=hidden]),select,textarea,summary,[contenteditable=true],[contenteditable=""],'
    + '[role=button],[role=link],[role=checkbox],[role=radio],[role=switch],[role=tab],[role=menuitem],[role=option],[role=slider],'
    + '[role=textbox],[role=combobox],[role=spinbutton],[role=searchbox],[role=treeitem]';
  const found = {headings: [], texts: [], operable: 0, missing: []};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, one = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
    if (one.closest(HIDDEN) || !seen(one)) continue;
    if (node === one) {
      if (one.matches('h1,h2,h3,h4,h5,h6,[role=heading]')) found.headings.push(clean(one.innerText));
      if (!one.matches(OPERABLE)) continue;
      found.operable++;
      if (!known.includes(one)) found.missing.push(clean(one.getAttribute('aria-label') || one.innerText || one.name || one.outerHTML).slice(0, 80));
    } else if (/[\p{L}\p{N}]/u.test(node.data)) {
      const range = document.createRange();
      range.selectNode(node);
      if (range.getClientRects().length) found.texts.push(clean(node.data));
    }
  }
  return found;
}
