// Runtime of the pages: `h` holds the elements that the page's own script and the person know by a
// name. The names are taken out of the document, so a page looks as pages do.
const h = {};
const collect = root => {
  for (const one of root.querySelectorAll('[data-h]')) {
    h[one.dataset.h] = one;
    one.removeAttribute('data-h');
  }
  return root;
};
const on = (name, type, listener) => h[name].addEventListener(type, listener);
// Reports what the page was made to do; in order, before anything else happens.
const act = (...words) => {
  const request = new XMLHttpRequest();
  request.open('POST', '/acts', false);
  request.send(words.join(' '));
};
const values = form => [...new FormData(form)]
  .map(([key, value]) => `${key}=${value instanceof File ? value.name : value}`).sort().join('; ');
const sends = (name, word) => on(name, 'submit', event => {
  event.preventDefault();
  act(word, values(event.target));
});
// Returns a copy of what is in a template, its texts and names filled from a mapping.
const make = (name, texts = {}) => {
  const filled = text => text.replace(/\{(\w+)\}/g, (whole, key) => texts[key] ?? whole);
  const copy = h[name].content.cloneNode(true);
  const walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.nodeType === Node.TEXT_NODE) node.data = filled(node.data);
    else for (const key of node.getAttributeNames()) node.setAttribute(key, filled(node.getAttribute(key)));
  }
  return collect(copy).firstElementChild;
};
const later = (milliseconds, work) => setTimeout(work, milliseconds);
const show = (name, shown = true) => { h[name].hidden = !shown; };
collect(document);
