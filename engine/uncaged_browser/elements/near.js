// Search for the elements that a text is nearest to, in the document or shadow tree: each occurrence
// of the text belongs to the elements with which it shares its smallest container, unless another
// text of its kind is closer to them; one that belongs to all tells nothing, if there are several. In
// a table, the head of a column belongs to the elements of that column. Returns the positions of the
// elements to which all texts belong.
(elements, texts, exact = true) => {
  const clean = text => (text || '').replace(/\s+/g, ' ').trim();
  const wanted = texts.map(text => exact ? clean(text) : clean(text).toLowerCase());
  const isText = (value, text) => exact ? clean(value) === text : clean(value).toLowerCase().includes(text);
  const parent = node => node.assignedSlot || node.parentElement || node.getRootNode().host || null;
  const OUTERMOST = ['HTML', 'BODY', 'MAIN'];
  const holders = new Map();
  elements.forEach((one, index) => {
    for (let node = one; node; node = parent(node)) holders.set(node, [...(holders.get(node) || []), index]);
  });
  const found = texts.map(() => new Set());
  const column = cell => {
    const table = cell.closest('table'), row = cell.closest('tr');
    if (!table || row !== table.querySelector('tr')) return [];
    return elements.map((one, index) => [one.closest('td,th'), index])
      .filter(([other]) => other && other !== cell && other.closest('table') === table && other.cellIndex === cell.cellIndex)
      .map(([, index]) => index);
  };
  // whether an element like the text's own is inside the container, and closer
  const hasCloser = (node, holder, one) => [...holder.querySelectorAll(node.localName)].some(other => {
    if (other === node || other.className !== node.className || other.contains(one) || one.contains(other)) return false;
    if (!clean(other.textContent) || !other.checkVisibility()) return false;
    let shared = other;
    while (shared && !shared.contains(one)) shared = parent(shared);
    return shared && shared !== holder && holder.contains(shared);
  });
  const note = (node, index) => {
    if (!node.checkVisibility()) return;
    const cell = node.closest('th,td');
    const below = cell ? column(cell) : [];
    if (below.length && below.length < elements.length) return below.forEach(one => found[index].add(one));
    let holder = node;
    while (holder && !holders.has(holder)) holder = parent(holder);
    if (!holder || OUTERMOST.includes(holder.tagName)) return;
    const near = holders.get(holder).filter(position => !hasCloser(node, holder, elements[position]));
    if (near.length < elements.length || elements.length === 1) near.forEach(one => found[index].add(one));
  };
  const walk = root => {
    for (const node of root.querySelectorAll('*')) {
      const values = ['aria-label', 'title', 'alt'].map(key => node.getAttribute(key));
      for (const child of node.childNodes) if (child.nodeType === Node.TEXT_NODE) values.push(child.data);
      if (node.childElementCount && node.textContent.length < 200) values.push(node.textContent);
      wanted.forEach((text, index) => { if (values.some(value => value && isText(value, text))) note(node, index); });
      if (node.shadowRoot) walk(node.shadowRoot);
    }
  };
  walk(document);
  return elements.map((_, index) => index).filter(index => found.every(set => set.has(index)));
}
