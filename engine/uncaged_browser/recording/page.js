// Script of a recorder inside every page and frame: reports what a person does, each target with
// all ways to find it again. BINDING is replaced by the name of the function that it reports to, NEAR
// by the search for the elements that texts are nearest to.
(() => {
  const report = window['BINDING'];
  if (!report) return;
  delete window['BINDING'];
  /* NAMING */
  // The facts about an element are kept with its alternatives, and go with them into each note.
  const noted = new WeakMap();
  const noting = one => {
    const found = alternatives(one);
    noted.set(found, {one, facts: facts(one)});
    return found;
  };
  // The area that the wheel turned in last.
  let turned = {area: null, target: []};
  const tell = note => {
    const known = noted.get(note.target);
    report({...note, facts: known?.facts, ontoFacts: noted.get(note.onto)?.facts,
      inArea: Boolean(known && turned.area?.contains(known.one))});
  };
  const secrets = new WeakSet();
  const state = () => ({
    url: location.href, title: document.title,
    heading: clean([...document.querySelectorAll('h1,h2,[role=heading]')].find(visible)?.innerText).slice(0, 200),
  });
  // Typing reports a field with each key; the ways to find it are looked for once.
  let field = {one: null, target: []};
  const send = (kind, one, more, known = null) => {
    const target = !one ? [] : kind === 'fill' && field.one === one ? field.target : known || noting(one);
    field = {one: kind === 'fill' ? one : null, target};
    if (one && !target.length && kind !== 'press') return;
    tell({kind, target, state: state(), top: window === window.top, ...more});
  };
  const ACTIVE = 'a[href],button,input,select,textarea,label,summary,option,[onclick],[tabindex],[contenteditable=""],'
    + '[contenteditable=true],[role=button],[role=link],[role=tab],[role=menuitem],[role=menuitemradio],'
    + '[role=menuitemcheckbox],[role=option],[role=checkbox],[role=radio],[role=switch],[role=treeitem],[role=gridcell]';
  const LOOSE = '[tabindex],[onclick],[role=treeitem],[role=gridcell]';
  const FIRM = 'a[href],button,input,select,textarea,label,summary,option,[role=button],[role=link],[role=tab],[role=menuitem],'
    + '[role=menuitemradio],[role=menuitemcheckbox],[role=option],[role=checkbox],[role=radio],[role=switch]';
  const NOTHING = new Set(['HTML', 'BODY', 'MAIN', 'SECTION', 'ARTICLE', 'FORM', 'UL', 'OL', 'TABLE', 'TBODY', 'HEADER', 'FOOTER', 'NAV']);
  const origin = event => event.composedPath().find(node => node.nodeType === Node.ELEMENT_NODE);
  const active = event => {
    const path = event.composedPath().filter(node => node.nodeType === Node.ELEMENT_NODE);
    const found = path.find(node => node.matches(ACTIVE)) || path[0];
    // in one that holds several things, such as the branch of a tree, the part that was hit counts
    const loose = found !== path[0] && found.matches(LOOSE) && !found.isContentEditable && !found.matches(FIRM);
    return loose && textOf(path[0]) !== textOf(found) ? path[0] : found;
  };
  const typed = one => one && (one.isContentEditable || one.matches('textarea')
    || (one.matches('input') && !['checkbox', 'radio', 'file', 'button', 'submit', 'reset', 'image', 'hidden'].includes(one.type)));
  const isSecret = one => {
    if (one.type === 'password' || /(^|\s)(current-password|new-password|one-time-code|cc-number|cc-csc)(\s|$)/.test(one.autocomplete || ''))
      secrets.add(one);
    return secrets.has(one);
  };

  // Programs that drive a browser choose options, files and dates by events of their own.
  const set = event => ['input', 'change'].includes(event.type)
    && origin(event)?.matches('select,input:is([type=file],[type=date],[type=time],[type=month],[type=week],[type=color],[type=range],[type=datetime-local])');
  const on = (type, listener) => window.addEventListener(type, event => {
    if (event.isTrusted || set(event)) try { listener(event); } catch { /* the page's own objects may be of any kind */ }
  }, {capture: true, passive: true});

  const MOVED = 10;
  const isPulled = one => {
    for (let node = one, turn = 0; node && turn < 3; node = above(node), turn++) {
      const style = getComputedStyle(node);
      if (/grab|move|resize/.test(style.cursor) || style.touchAction === 'none') return true;
    }
    return one.matches('canvas');
  };
  const offsetIn = (box, event) => [event.clientX - box.left, event.clientY - box.top].map(Math.round);
  let pointer = null, dragged = null, ignored = null, reached = null;
  // A program that drives the page stops a press that misses its element at the window, and presses again.
  document.addEventListener('pointerdown', event => { reached = event; }, {capture: true, passive: true});
  const isStopped = press => Boolean(press) && press.event.defaultPrevented && press.event !== reached;
  on('pointerdown', event => {
    const one = active(event), start = origin(event);
    ignored = null;
    pointer = one && {event, one, x: event.clientX, y: event.clientY, target: event.button ? [] : noting(one), pulled: null};
    if (!start || event.button || start.draggable || typed(start) || !isPulled(start)) return;
    // where it is pulled to is searched among what was there before, as pages move things meanwhile
    const boxes = elements().filter(visible).map(other => ({other, box: other.getBoundingClientRect()}));
    pointer.pulled = {one: start, target: start === one ? pointer.target : noting(start), offset: offsetIn(start.getBoundingClientRect(), event), boxes};
  });
  on('click', event => {
    const one = active(event), known = pointer?.one === one ? pointer.target : null;
    if (isStopped(pointer)) return;
    if (!one || one === ignored || ignored?.contains(one) || one.contains(ignored)) { ignored = null; return; }
    if (NOTHING.has(one.tagName) || (event.detail === 0 && event.pointerType === '')) return;
    if (one.matches('select,option') || (one.matches('input') && ['checkbox', 'radio', 'file'].includes(one.type))) return;
    const control = one.closest('label')?.control;
    if (control && control !== one && one.matches('label')) return;
    const box = one.getBoundingClientRect();
    // what is inside a closed shadow root has no names, only a place in its host
    const closed = one.localName.includes('-') && !one.shadowRoot && !one.childElementCount && !textOf(one);
    const offset = closed || one.matches('canvas,svg,svg *,img[usemap]') ? [event.clientX - box.left, event.clientY - box.top] : null;
    send('click', one, {times: event.detail, offset, field: typed(one)}, known);
  });
  on('contextmenu', event => { if (event.button === 2) send('click', active(event), {button: 'right', times: 1}); });
  on('input', event => {
    const one = origin(event);
    if (!typed(one)) return;
    const secret = isSecret(one);
    send('fill', one, secret ? {secret: label(one) || one.name || ''} : {value: one.isContentEditable ? one.innerText : one.value});
  });
  on('change', event => {
    const one = origin(event);
    if (one.matches('select')) send('select', one, {options: [...one.selectedOptions].map(option => clean(option.label))});
    else if (one.matches('input') && ['checkbox', 'radio'].includes(one.type)) send('check', one, {checked: one.checked});
    else if (one.matches('input') && one.type === 'file') send('upload', one, {files: [...one.files].map(file => file.name)});
  });
  const KEYS = new Set(['Enter', 'Escape', 'ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'PageUp', 'PageDown', 'Home',
    'End', 'Delete', 'Backspace', ' ', ...Array.from({length: 12}, (_, index) => 'F' + (index + 1))]);
  on('keydown', event => {
    const one = origin(event), held = ['Control', 'Alt', 'Meta'].filter(key => event.getModifierState(key));
    if (event.isComposing || ['Control', 'Alt', 'Meta', 'Shift', 'Tab', 'CapsLock'].includes(event.key)) return;
    const inField = typed(one);
    if (inField && !held.length && !['Enter', 'Escape', 'ArrowUp', 'ArrowDown'].includes(event.key)) return;
    if (inField && held.length && /^[acvxyz]$/i.test(event.key)) return;
    if (one.matches('select,option') || (one.matches('input') && ['checkbox', 'radio', 'range'].includes(one.type) && event.key !== 'Enter')) return;
    if (!KEYS.has(event.key) && event.key.length > 1) return;
    const key = [...held, ...(event.shiftKey && event.key.length > 1 ? ['Shift'] : []), event.key === ' ' ? 'Space' : event.key].join('+');
    const place = one === document.body || one === document.documentElement ? null : one;
    if (event.key !== 'Enter' || held.length || !(one.matches('textarea') || one.isContentEditable)) return send('press', place, {key});
    // it is a new line of the text, unless the page takes it, perhaps to send the text
    const known = field.one === one ? field.target : noting(one);
    setTimeout(() => { if (event.defaultPrevented) send('press', one, {key}, known); });
  });
  on('dragstart', event => { const one = active(event); dragged = {one, target: noting(one)}; pointer = null; });
  on('drop', event => {
    if (dragged) tell({kind: 'drag', target: dragged.target, onto: noting(origin(event)), state: state(), top: window === window.top});
    dragged = null;
  });
  on('pointerup', event => {
    const from = pointer;
    if (!from || event.button || isStopped(from)) return;
    const pulled = from.pulled, moved = Math.hypot(event.clientX - from.x, event.clientY - from.y) >= MOVED;
    if (!moved) {
      // the press took the element away, so that no click follows on it
      if (from.one.isConnected && visible(from.one) || !from.target.length) return;
      ignored = origin(event) || document.documentElement;
      tell({kind: 'click', times: 1, target: from.target, state: state(), top: window === window.top});
    } else if (pulled) {
      const under = pulled.boxes.filter(({other, box}) => !pulled.one.contains(other) && !other.contains(pulled.one)
        && event.clientX >= box.left && event.clientX < box.right && event.clientY >= box.top && event.clientY < box.bottom);
      const start = pulled.boxes.find(({other}) => other === pulled.one);
      let {other, box} = under.sort((a, b) => a.box.width * a.box.height - b.box.width * b.box.height)[0] || start || {};
      const own = start && (pulled.one.matches('canvas') || !other || under.length && OUTERMOST.has(other.tagName));
      if (own) ({other, box} = start);
      if (!other) return;
      ignored = pulled.one;
      tell({kind: 'drag', target: pulled.target, onto: other === pulled.one ? pulled.target : noting(other),
        offset: pulled.offset, onto_offset: offsetIn(box, event), state: state(), top: window === window.top});
    }
  });
  const moves = (one, by) => by > 0 ? one.scrollTop + one.clientHeight < one.scrollHeight - 2 : one.scrollTop > 0;
  on('wheel', event => {
    const page = document.scrollingElement || document.documentElement, by = event.deltaY;
    const areas = event.composedPath().filter(one => one.nodeType === Node.ELEMENT_NODE && one !== page && one !== document.body
      && scrolls(one));
    const area = areas.find(one => moves(one, by)) || null;
    if (!area && areas.length && !moves(page, by)) return;
    if (area !== turned.area) turned = {area, target: area ? alternatives(area) : []};
    const one = area || page, height = area ? area.clientHeight : innerHeight;
    const end = one.scrollTop + height + by >= one.scrollHeight - 2;
    tell({kind: 'scroll', target: [], area: turned.target, amount: by / (height * 0.9), end, state: state(), top: window === window.top});
  });
  window['BINDING frame'] = alternatives;
})();
