// Reduces the page's HTML: "automatic" keeps what an agent needs to operate the page, "knowledge"
// what the page says. Hidden elements, scripts and styles are in neither; shadow trees are in both.
mode => {
  const operates = mode === 'automatic';
  const words = text => new Set(text.trim().split(/\s+/));
  const never = words('script style noscript template head link meta svg math iframe frame object embed canvas audio video');
  const content = words(`h1 h2 h3 h4 h5 h6 p ul ol li dl dt dd table caption thead tbody tfoot tr th td blockquote pre
    code a img figure figcaption main article section time strong em b i sub sup br`);
  const chrome = words('nav footer button input select textarea datalist label legend dialog');
  const chromeRoles = words('navigation banner contentinfo search menu menubar toolbar dialog alertdialog');
  const controls = words(`h1 h2 h3 h4 h5 h6 form fieldset legend label button a input select optgroup option textarea
    details summary dialog nav main header footer ul ol li table thead tbody tr th td img`);
  const operable = '[role], [onclick], [tabindex], [contenteditable], [aria-label], [data-testid]';
  const attributes = operates
    ? /^(id|name|type|role|href|placeholder|title|alt|for|value|checked|selected|disabled|required|readonly|multiple|min|max|open|action|method|contenteditable|tabindex|aria-.+|data-testid)$/
    : /^(href|alt|datetime|colspan|rowspan|lang)$/;
  const LONGEST = 200, NEWLINE = '\uE000', SPACE = '\uE001'; // those of preformatted text stay as they are
  const empty = words('input img br');
  const escaped = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
  const cut = text => text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
  const shown = one => one.checkVisibility({visibilityProperty: true})
    || getComputedStyle(one).display === 'contents' || ['option', 'optgroup'].includes(one.localName);
  const leftOut = one => never.has(one.localName) || !shown(one)
    || (!operates && (chrome.has(one.localName) || chromeRoles.has(one.getAttribute('role'))));
  const kept = one => operates ? controls.has(one.localName) || one.matches(operable)
    : content.has(one.localName) && (one.localName !== 'img' || one.alt);
  const start = one => {
    const secret = ['password', 'hidden'].includes(one.type);
    const names = one.getAttributeNames().filter(name => attributes.test(name) && !(secret && name === 'value'));
    const values = names.map(name => [name, cut(one.getAttribute(name))]);
    return `<${one.localName}${values.map(([name, value]) => value === '' ? ` ${name}`
      : ` ${name}="${escaped(value).replace(/"/g, '&quot;')}"`).join('')}>`;
  };
  const children = one => {
    const nodes = one.localName === 'slot' && one.assignedNodes().length ? one.assignedNodes() : (one.shadowRoot ?? one).childNodes;
    return Array.from(nodes, write).join('');
  };
  const write = node => {
    if (node.nodeType === Node.TEXT_NODE) {
      const exact = node.parentElement?.closest('pre') && !operates;
      const text = exact ? node.data.replace(/\n/g, NEWLINE).replace(/ /g, SPACE) : node.data.replace(/\s+/g, ' ');
      return escaped(operates ? cut(text) : text);
    }
    if (node.nodeType !== Node.ELEMENT_NODE || leftOut(node)) return '';
    const inner = children(node);
    const lines = /^(block|flex|grid|list-item|table)/.test(getComputedStyle(node).display);
    const own = !kept(node) ? inner
      : empty.has(node.localName) ? start(node)
      : inner.trim() || (operates && node.matches(`button, a, select, textarea, ${operable}`))
        ? `${start(node)}${inner.trim()}</${node.localName}>` : '';
    return lines && own.trim() ? `\n${own.trim()}\n` : own;
  };
  return write(document.body ?? document.documentElement).replace(/\s*\n\s*/g, '\n').trim()
    .replaceAll(NEWLINE, '\n').replaceAll(SPACE, ' ');
}
