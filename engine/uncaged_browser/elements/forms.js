// Forms of a page: labelled fields with their types and options, and the buttons that send each form. No value
// of a field is returned. loose: with groups of fields outside of forms, each with the buttons beside them.
(([wanted, loose]) => {
  /* NAMING */
  const MOST_FORMS = 40, MOST_FIELDS = 200, MOST_OPTIONS = 400;
  // A field may be named "elements" or "action", which hides the form's own property.
  const fieldsOf = Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, 'elements').get;
  const short = text => clean(text).slice(0, 200);
  const address = (one, key) => {
    try { return new URL(one.getAttribute(key) || location.href, document.baseURI).href; } catch { return one.getAttribute(key); }
  };
  const namesOf = (one, number) => number === wanted ? {names: alternatives(one)} : {};
  const FIELDS = 'input:not([type=hidden]):not([type=button]):not([type=reset]):not([type=submit]):not([type=image]),select,'
    + 'textarea,[contenteditable=""],[contenteditable=true]';
  const BUTTONS = 'button,[role=button],input[type=button],input[type=submit],input[type=image]';
  const GROUPS = 'dialog,[role=dialog],[role=form],[role=search],fieldset,section,article,main,[role=main],[role=region],aside,header,nav';
  const shownChoice = one => inSight(one) || [...(one.labels || [])].some(inSight);
  const labelsOf = one => {
    const found = [label(one), ...labels(one), one.getAttribute('placeholder'), one.title].map(short).filter(Boolean);
    return [...new Set(found.length ? found : [short(one.getAttribute('name'))])].filter(Boolean);
  };
  const common = one => ({required: one.required === true, fixed: one.matches(':disabled') || one.readOnly === true,
    valid: !one.validity || one.validity.valid, problem: one.validity?.valid === false ? short(one.validationMessage) : ''});
  const isCard = one => /^(cc-number|cc-csc|cc-exp.*|current-password|new-password|one-time-code)$/
    .test((one.getAttribute('autocomplete') || '').trim().split(/\s+/).pop());
  const groupLabel = (group, form) => {
    const holder = group[0].closest('fieldset,[role=radiogroup]');
    if (holder && form.contains(holder) && [...holder.querySelectorAll('input,select,textarea')].every(one => group.includes(one))) {
      const text = label(holder) || short(holder.querySelector('legend')?.innerText);
      if (text) return text;
    }
    return group[0].name;
  };
  const radios = (group, form, number) => ({labels: [short(groupLabel(group, form))].filter(Boolean), key: short(group[0].name), kind: 'radio', ...common(group[0]),
    required: group.some(one => one.required), filled: group.some(one => one.checked), fixed: group.every(one => one.matches(':disabled')),
    options: group.map(one => ({label: labelsOf(one)[0] || short(one.value), fixed: one.matches(':disabled'), ...namesOf(one, number)}))});
  const field = (one, number) => {
    const kind = one.tagName === 'SELECT' ? 'select' : one.tagName === 'TEXTAREA' || one.isContentEditable ? 'textarea'
      : isCard(one) ? 'password' : one.type;
    const options = one.tagName !== 'SELECT' ? [] : [...one.options].slice(0, MOST_OPTIONS).map(option =>
      ({label: short(option.label), fixed: option.matches(':disabled')}));
    return {labels: labelsOf(one), key: short(one.getAttribute('name')), kind, ...common(one),
      filled: kind === 'checkbox' ? one.checked : Boolean(one.isContentEditable ? textOf(one) : one.value),
      maxLength: one.maxLength > 0 ? one.maxLength : 0, multiple: one.multiple === true, options, ...namesOf(one, number)};
  };
  const SENDING = 'button:not([type=button]):not([type=reset]),input[type=submit],input[type=image]';
  const listed = elements();
  const inside = new Map();  // fields in shadow trees within a form, which are not in the form's own list
  const groups = new Map();
  for (const one of listed) {
    if (!one.matches(FIELDS + ',' + BUTTONS) || one.form) continue;
    const form = closest(one, 'form');
    const held = form ? inside : groups, key = form || closest(one, GROUPS) || document.body;
    if (!held.has(key)) held.set(key, []);
    held.get(key).push(one);
  }
  const read = (form, number) => {
    const fields = [], buttons = [], seen = new Set(), isForm = form instanceof HTMLFormElement;
    // the form's own list has no image buttons
    const own = isForm ? [...fieldsOf.call(form), ...form.querySelectorAll('input[type=image]')] : [];
    const all = [...own, ...((isForm ? inside : groups).get(form) || [])].slice(0, 20 * MOST_FIELDS);
    for (const one of all) {
      if (fields.length >= MOST_FIELDS) break;
      if (one.matches(isForm ? SENDING : BUTTONS)) {
        const key = one.hasAttribute('formaction') ? [one, 'formaction'] : [form, 'action'];
        if (inSight(one)) buttons.push({label: short(name(one)), action: address(...key), fixed: one.matches(':disabled'), ...namesOf(one, number)});
        continue;
      }
      if (!one.matches(FIELDS)) continue;
      if (one.type === 'radio' && one.name) {
        if (seen.has(one.name)) continue;
        seen.add(one.name);
        const group = all.filter(other => other.type === 'radio' && other.name === one.name && shownChoice(other));
        if (group.length) fields.push(radios(group, form, number));
      } else if (one.type === 'checkbox' || one.type === 'radio' ? shownChoice(one) : inSight(one)) fields.push(field(one, number));
    }
    return {number, name: short(isForm ? titled(form) || headingOf(form) : form === document.body ? '' : titled(form)), loose: !isForm,
      method: isForm ? (form.getAttribute('method') || 'get').toLowerCase() : '', action: address(form, 'action'), fields, buttons};
  };
  const forms = listed.filter(one => one instanceof HTMLFormElement);
  const found = [...forms.slice(0, MOST_FORMS).map(read),
    ...(loose ? [...groups.keys()].slice(0, MOST_FORMS).map((group, index) => read(group, MOST_FORMS + index)).filter(form => form.fields.length) : [])];
  return {forms: found.filter(form => form.fields.length || form.buttons.length), more: Math.max(0, forms.length - MOST_FORMS)};
})
