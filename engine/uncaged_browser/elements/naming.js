// Names of elements, shared by the scripts of the recorder and of the healer, each of which includes this
// text: accessible roles and names, and all ways to find an element again. NEAR is replaced by near.js.

const MAX_ELEMENTS = 20000, MAX_TEXT = 80;
const clean = text => (text || '').replace(/\s+/g, ' ').trim();
const quoted = text => '"' + text.replace(/["\\]/g, '\\$&') + '"';
const stable = word => word && word.length <= 30 && !/\d|^(css|sc|jsx?|svelte|emotion)-|__/.test(word)
  && !/[_-](?=[a-zA-Z]*[A-Z])(?=[a-zA-Z]*[a-z])[a-zA-Z]{5,}$/.test(word) && /^[A-Za-z_-]+$/.test(word);

const elements = () => {
  const found = [];
  const walk = root => {
    for (const one of root.querySelectorAll('*')) {
      if (found.length >= MAX_ELEMENTS) return;
      found.push(one);
      if (one.shadowRoot) walk(one.shadowRoot);
    }
  };
  walk(document);
  return found;
};
const visible = one => {
  if (!one.checkVisibility({visibilityProperty: true})) return false;
  const box = one.getBoundingClientRect();
  return box.width > 0 && box.height > 0;
};
// Whether a person can see it: large enough, within the page, not transparent.
const inSight = one => {
  if (!one.checkVisibility({visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true})) return false;
  const box = one.getBoundingClientRect();
  const root = document.scrollingElement || document.documentElement;
  const left = box.left + scrollX, top = box.top + scrollY;
  return box.width >= 3 && box.height >= 3 && left + box.width > 0 && top + box.height > 0
    && left < Math.max(root.scrollWidth, innerWidth) && top < Math.max(root.scrollHeight, innerHeight);
};
const TAGS = {BUTTON: 'button', TEXTAREA: 'textbox', OPTION: 'option', H1: 'heading', H2: 'heading',
  H3: 'heading', H4: 'heading', H5: 'heading', H6: 'heading', LI: 'listitem', IMG: 'img', TR: 'row', TD: 'cell',
  TH: 'columnheader'};
const INPUTS = {button: 'button', submit: 'button', reset: 'button', image: 'button', file: 'button',
  checkbox: 'checkbox', radio: 'radio', range: 'slider', number: 'spinbutton', search: 'searchbox'};
const role = one => {
  const own = (one.getAttribute('role') || '').trim().split(/\s+/)[0];
  if (own) return own;
  const tag = one.tagName;
  if (tag === 'A' || tag === 'AREA') return one.hasAttribute('href') ? 'link' : '';
  if (tag === 'SELECT') return one.multiple || one.size > 1 ? 'listbox' : 'combobox';
  if (tag === 'INPUT') {
    if (one.type === 'hidden') return '';
    if (one.hasAttribute('list')) return 'combobox';
    return INPUTS[one.type] || 'textbox';
  }
  return TAGS[tag] || '';
};
const content = node => {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (node.nodeType !== Node.ELEMENT_NODE) return '';
  if (node.getAttribute('aria-hidden') === 'true') return '';
  // one without a box of its own, such as a slot, may have visible content
  if (!node.checkVisibility() && getComputedStyle(node).display !== 'contents') return '';
  if (['SCRIPT', 'STYLE', 'NOSCRIPT', 'SELECT', 'TEXTAREA'].includes(node.tagName)) return '';
  if (node.hasAttribute('aria-label')) return node.getAttribute('aria-label');
  if (node.tagName === 'IMG') return node.alt;
  if (node.tagName === 'svg') return node.querySelector('title')?.textContent || '';
  const children = node.tagName === 'SLOT' ? node.assignedNodes({flatten: true}) : (node.shadowRoot || node).childNodes;
  const inside = [...children].map(content).join('');
  return /^(inline|contents)/.test(getComputedStyle(node).display) ? inside : ' ' + inside + ' ';
};
const FROM_CONTENT = new Set(['button', 'link', 'heading', 'option', 'tab', 'menuitem', 'menuitemcheckbox',
  'menuitemradio', 'checkbox', 'radio', 'switch', 'treeitem', 'cell', 'gridcell', 'row', 'columnheader', 'rowheader']);
const labels = one => [...(one.labels || [])].map(label => clean(content(label)));
const label = one => {
  const ids = (one.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean);
  const texts = ids.map(id => one.getRootNode().getElementById(id)).filter(Boolean).map(content);
  return clean(texts.join(' ')) || clean(one.getAttribute('aria-label')) || labels(one).join(' ');
};
const name = one => {
  const own = label(one);
  if (own) return own;
  if (one.tagName === 'INPUT') {
    if (['submit', 'reset', 'button'].includes(one.type))
      return clean(one.value) || {submit: 'Submit', reset: 'Reset'}[one.type] || clean(one.title);
    if (one.type === 'image') return clean(one.alt || one.title) || 'Submit';
  }
  if (one.tagName === 'IMG' && one.alt) return clean(one.alt);
  const text = FROM_CONTENT.has(role(one)) ? clean(content(one)) : '';
  return text || clean(one.title) || clean(one.getAttribute('placeholder'));
};
const isField = one => one.isContentEditable || one.matches('input,select,textarea');
// Whether it has scroll bars of its own: its text is what it shows by now, and no name.
const scrolls = one => one.scrollHeight > one.clientHeight + 2 && /auto|scroll/.test(getComputedStyle(one).overflowY);
const textOf = one => clean(one.innerText ?? one.textContent);

const nearest = NEAR;
const MAX_NEAR = 3, MAX_CANDIDATES = 14;
const above = node => node.assignedSlot || node.parentElement || node.getRootNode().host || null;
const OUTERMOST = new Set(['HTML', 'BODY', 'MAIN']);
// Texts around an element that may tell it from its equals, the closest first, headings before others.
const textsAround = (one, matches) => {
  const found = new Set();
  let inner = null;
  for (let holder = above(one); holder && !OUTERMOST.has(holder.tagName); inner = holder, holder = above(holder)) {
    const heads = [], others = [];
    const walk = node => {
      if (node === inner || matches.includes(node)) return;
      if (node.nodeType === Node.TEXT_NODE) {
        const head = node.parentElement?.closest('h1,h2,h3,h4,h5,h6,th,legend,b,strong,a,label,[role=heading],[role=rowheader]');
        const text = clean(node.data), wordy = /\p{L}/u.test(text);
        if (!text || text.length > MAX_TEXT || !(wordy || head?.tagName === 'TH')) return;
        (head ? heads : others).push(text);
      } else if (node.nodeType === Node.ELEMENT_NODE && !['SCRIPT', 'STYLE', 'OPTION', 'TEXTAREA', 'TEMPLATE'].includes(node.tagName)
        && (node.tagName === 'SLOT' || node.checkVisibility())) {
        if (node.getAttribute('aria-label') && node.getAttribute('aria-label').length <= MAX_TEXT) others.push(clean(node.getAttribute('aria-label')));
        [...(node.shadowRoot || node).childNodes].forEach(walk);
      }
    };
    const children = holder.shadowRoot ? [...holder.shadowRoot.childNodes, ...holder.childNodes] : [...holder.childNodes];
    if (holder.getAttribute('aria-label')) heads.push(clean(holder.getAttribute('aria-label')));
    children.forEach(walk);
    for (const text of [...heads, ...others]) if (found.size < MAX_CANDIDATES) found.add(text);
  }
  return [...found];
};
const ROWS = 'tr,li,article,[role=row],[role=listitem],[role=article],[role=dialog],[role=alertdialog],dialog';
// The alternative with the texts of the row that the element is in, though it is the only one by now.
const inRow = (alternative, one) => {
  const row = one.parentElement?.closest(ROWS);
  const inside = row ? textsAround(one, [one]).filter(text => clean(row.innerText).includes(text)) : [];
  return inside.filter(text => nearest([one], [text]).length).slice(0, 2).map(text => ({...alternative, near: text}));
};
const headOf = one => {
  const cell = one.closest('td'), head = cell?.closest('table')?.querySelector('tr');
  return cell && head && head !== cell.closest('tr') ? clean(head.cells[cell.cellIndex]?.innerText) : '';
};
// The alternative; if it has several matches, with a text that is nearest to the element alone, or else
// with its number among those that a text is nearest to; none if it finds others only.
// Texts with digits, which are often another day's, come after the number.
const told = (alternative, matches, one) => {
  const index = matches.indexOf(one);
  if (index < 0) return [];
  if (matches.length === 1) return [alternative];
  const found = [], partly = [], changing = [];
  let best = null;
  for (const text of textsAround(one, matches)) {
    const near = nearest(matches, [text]);
    if (!near.includes(index)) continue;
    if (/\d/.test(text) && /\p{L}/u.test(text)) {
      if (near.length === 1 && changing.length < 2) changing.push({...alternative, near: text});
      continue;
    }
    if (near.length === 1) found.push({...alternative, near: text});
    else if (near.length < matches.length) partly.push(text);
    if (near.length < matches.length && (!best || near.length < best.near.length)) best = {text, near};
    if (found.length === MAX_NEAR) break;
  }
  if (found.length) return [...found, ...changing];
  const head = headOf(one);
  for (const text of head ? ['', ...partly] : []) {
    const texts = text ? [text, head] : [head];
    if (text !== head && String(nearest(matches, texts)) === String(index)) return [{...alternative, near: texts}, ...changing];
  }
  const numbered = best ? {near: best.text, nth: best.near.indexOf(index)} : {nth: index};
  return [{...alternative, ...numbered}, ...changing];
};
// What a selector by position must have besides, so that it never finds an element of another name.
const guard = one => {
  for (const key of ['aria-label', 'name', 'placeholder', 'title', 'alt'])
    if (one.getAttribute(key)) return {key, value: one.getAttribute(key)};
  const text = textOf(one);
  if (text && text.length <= MAX_TEXT && !isField(one) && !scrolls(one)) return {key: '', value: text};
  return null;
};
const step = one => {
  const twins = [...(one.parentNode?.children || [])].filter(other => other.tagName === one.tagName);
  return {tag: one.localName, number: twins.indexOf(one) + 1, alone: twins.length === 1};
};
// A frame by the path of its document, and else by its title; empty for other elements.
const frameCss = one => {
  if (!one.matches('iframe,frame')) return '';
  try {
    const {protocol, pathname} = new URL(one.src);
    if (/^https?:/.test(protocol) && pathname.length > 1 && !/\d/.test(pathname))
      return `${one.localName}:is([src$=${quoted(pathname)}],[src*=${quoted(pathname + '?')}])`;
  } catch { /* its document has no address of its own */ }
  return one.title ? `${one.localName}[title=${quoted(one.title)}]` : '';
};
const classesOf = one => [...one.classList].filter(stable).slice(0, 2).map(word => '.' + CSS.escape(word)).join('');
const cssOf = (one, all, named, placed) => {
  const tag = one.localName, found = [];
  const unique = css => {
    try { return all.filter(other => other.matches(css)).length === 1; } catch { return false; }
  };
  const add = css => { if (css && found.length < 2 && unique(css)) found.push({css}); };
  if (stable(one.id)) add('#' + CSS.escape(one.id));
  add(frameCss(one));
  if (one.matches('[name][value]') && ['radio', 'checkbox'].includes(one.type))
    add(`${tag}[name=${quoted(one.name)}][value=${quoted(one.getAttribute('value'))}]`);
  if (one.isContentEditable && one.hasAttribute('contenteditable')) add(`${tag}[contenteditable]`);
  for (const key of ['name', 'aria-label', 'placeholder', 'href'])
    if (one.getAttribute(key) && one.getAttribute(key).length <= MAX_TEXT && !(key === 'href' && /\d/.test(one.getAttribute(key))))
      add(`${tag}[${key}=${quoted(one.getAttribute(key))}]`);
  if (found.length || !placed) return found;
  const held = guard(one);
  if (named && !held) return [];
  const suffix = !held ? '' : held.key ? `[${held.key}=${quoted(held.value)}]` : `:text-is(${quoted(held.value)})`;
  const classes = classesOf(one);
  if (classes && unique(tag + classes)) return [{css: tag + classes + suffix}];
  let css = '';
  for (let node = one; node && node.nodeType === Node.ELEMENT_NODE && node !== document.documentElement; node = node.parentElement) {
    const {number, alone} = step(node);
    css = (stable(node.id) ? '#' + CSS.escape(node.id) : node.localName + (alone ? '' : `:nth-of-type(${number})`))
      + (css ? ' > ' + css : '');
    if (unique(css)) return [{css: css + suffix}];
    if (stable(node.id)) break;
  }
  return [];
};
const literal = text => text.includes('"') ? text.includes("'") ? null : `'${text}'` : `"${text}"`;
const xpathOf = (one, named) => {
  if (one.getRootNode() !== document) return [];
  const held = guard(one);
  if (named && !held) return [];
  let path = '';
  for (let node = one; node && node.nodeType === Node.ELEMENT_NODE; node = node.parentElement) {
    if (stable(node.id)) { path = `//*[@id="${node.id}"]` + path; break; }
    const {tag, number, alone} = step(node);
    path = `/${node instanceof SVGElement ? `*[local-name()="${tag}"]` : tag}${alone ? '' : `[${number}]`}` + path;
  }
  const value = held && literal(held.value);
  if (named && !value) return [];
  if (value) path += held.key ? `[@${held.key}=${value}]` : `[normalize-space(.)=${value}]`;
  try {
    const found = document.evaluate(path, document, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
    return found.snapshotLength === 1 && found.snapshotItem(0) === one ? [{xpath: path}] : [];
  } catch { return []; }
};
const alternatives = one => {
  const all = elements(), whole = all.length < MAX_ELEMENTS, shown = visible(one) ? visible : () => true;
  const found = [], type = role(one), title = name(one);
  const matches = test => all.filter(other => test(other) && shown(other));
  const add = (alternative, test) => { if (whole) found.push(...told(alternative, matches(test), one)); };
  if (type && title && title.length <= 200) add({role: type, name: title}, other => role(other) === type && name(other) === title);
  const field = label(one);
  if (field && isField(one))
    add({label: field}, other => label(other) === field || labels(other).includes(field));
  const hint = one.getAttribute('placeholder');
  if (hint) add({placeholder: hint}, other => other.getAttribute('placeholder') === hint);
  const id = one.getAttribute('data-testid');
  if (id && !(title && /\d/.test(id))) add({testId: id}, other => other.getAttribute('data-testid') === id);
  const text = textOf(one);
  if (text && text.length <= MAX_TEXT && !isField(one) && !scrolls(one)) {
    const same = whole ? matches(other => textOf(other) === text && ![...other.children].some(child => textOf(child) === text)) : [];
    let inner = one;
    for (let child = one; child; child = [...child.children].find(other => textOf(other) === text)) inner = child;
    if (same.length === 1 || !(type && title)) found.push(...told({text}, same, inner));
  }
  if (type && !title) add({role: type, name: ''}, other => role(other) === type && !name(other));
  const named = Boolean(title || (text && !isField(one) && !scrolls(one)) || field || hint);
  // without a role, a title is the name
  const drawnAs = one.localName + classesOf(one);
  if (!found.length && !type && one.title) {
    const same = matches(other => other.matches(drawnAs));
    if (String(nearest(same, [one.title])) === String(same.indexOf(one))) found.push({css: drawnAs, near: clean(one.title)});
  }
  const [own, classes] = [cssOf(one, all, named, false), classesOf(one)];
  // of a control that is only drawn, its class says what it is: that in the row of a text is meant, not that at a place
  if (!found.length && !own.length && classes) add({css: drawnAs}, other => other.matches(drawnAs));
  // a place in the document says nothing about an element that a text near it tells from its equals
  const placed = !found[0]?.near;
  found.push(...cssOf(one, all, named, placed), ...(placed ? xpathOf(one, named) : []));
  const alone = found[0]?.name && found[0].nth === undefined && !found[0].near;
  return [...found.slice(0, 12), ...(alone ? inRow(found[0], one) : [])];
};

// Facts about an element, by which it is recognized when none of its names fits any longer. They have no value
// of a field.
const LANDMARKS = 'main,nav,header,footer,aside,form,dialog,fieldset,table,[role=main],[role=navigation],[role=banner],'
  + '[role=contentinfo],[role=complementary],[role=search],[role=form],[role=dialog],[role=alertdialog],[role=region]';
const HEADINGS = 'h1,h2,h3,h4,h5,h6,legend,caption,summary,[role=heading]';
// The first characters of a part of the page, without reading all of it.
const brief = node => {
  if (node.nodeType === Node.TEXT_NODE) return clean(node.data).slice(0, 60);
  if (node.nodeType !== Node.ELEMENT_NODE || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE'].includes(node.tagName)) return '';
  if (!node.checkVisibility() || node.matches('input,select,textarea,[contenteditable]')) return '';
  let text = '';
  const walker = document.createTreeWalker(node.shadowRoot || node, NodeFilter.SHOW_TEXT, {
    acceptNode: text => text.parentElement?.closest('script,style,noscript,select,textarea,[contenteditable],[aria-hidden=true]')
      ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT});
  while (text.length < 60 && walker.nextNode()) text += ' ' + walker.currentNode.data;
  return clean(text).slice(0, 60);
};
const nearOf = one => {
  const found = [];
  const add = node => {
    const text = node ? brief(node) : '';
    if (text && /[\p{L}\p{N}]/u.test(text) && !found.includes(text)) found.push(text);
  };
  for (let node = one, level = 0; node && level < 8 && found.length < 6; node = above(node), level++) {
    if (node === document.body) break;
    let before = node.previousSibling, after = node.nextSibling;
    for (let step = 0; step < 4 && (before || after) && found.length < 6; step++) {
      add(before);
      add(after);
      before = before?.previousSibling;
      after = after?.nextSibling;
    }
  }
  return found.slice(0, 6);
};
const headingOf = one => {
  for (let node = one; node; node = above(node)) {
    for (let other = node.previousElementSibling; other; other = other.previousElementSibling) {
      if (other.matches(HEADINGS)) return brief(other);
      const inside = other.querySelectorAll(HEADINGS);
      if (inside.length) return brief(inside[inside.length - 1]);
    }
  }
  return '';
};
const closest = (one, css) => {
  for (let node = above(one); node; node = above(node)) if (node.matches(css)) return node;
  return null;
};
const titled = one => !one ? '' : clean(one.getAttribute('aria-label')) || brief(one.querySelector(HEADINGS) || document.createTextNode(''))
  || clean(one.getAttribute('name')).slice(0, 60);
// Where a link or the form of a button leads, if that is not this page's host.
const foreign = one => {
  const address = one.closest('a[href],area[href]')?.href
    || (one.form && ['submit', 'image'].includes(one.type) && one.getAttribute('formaction') ? one.formAction : '')
    || (one.form && one.form.getAttribute('action') ? one.form.action : '');
  try {
    const url = new URL(String(address), location.href);
    if (!address || url.protocol === 'javascript:' || url.origin === location.origin) return '';
    return url.host || url.protocol;
  } catch { return 'unknown'; }
};
const EDITABLE = 'contenteditable';
const facts = one => {
  const box = one.getBoundingClientRect();
  const path = one.getAttribute('href');
  const texts = {
    tag: one.localName, type: one.matches('input,button,select,textarea') ? one.type : one.matches('[contenteditable=""],[contenteditable=true]') ? EDITABLE : '', role: role(one), name: name(one),
    label: label(one), placeholder: one.getAttribute('placeholder'), text: one.matches('input,select,textarea') ? '' : brief(one),
    title: one.title, id: one.id, testId: one.getAttribute('data-testid'), field: one.getAttribute('name'),
    href: path && !/\d/.test(path) && path !== '#' ? path : '', autocomplete: one.getAttribute('autocomplete'), host: foreign(one),
    heading: headingOf(one), form: titled(closest(one, 'form,dialog,fieldset,[role=form],[role=dialog],[role=search]')),
    landmark: (node => node ? clean((role(node) || node.localName) + ' ' + titled(node)) : '')(closest(one, LANDMARKS)),
  };
  const kept = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, clean(String(text || '')).slice(0, 80)]).filter(pair => pair[1]));
  const options = one.tagName === 'SELECT' ? [...one.options].slice(0, 8).map(option => clean(option.label).slice(0, 40)).filter(Boolean) : [];
  const near = nearOf(one);
  return {...kept, ...(options.length ? {options} : {}), ...(near.length ? {near} : {}),
    place: [box.left + scrollX, box.top + scrollY, box.width, box.height].map(Math.round)};
};
