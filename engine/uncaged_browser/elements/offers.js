// Links, buttons and landmarks of a page that a person can see. wanted: the list and the number of the one whose
// alternatives are returned.
(wanted => {
  /* NAMING */
  const MOST = 200, MOST_EXAMINED = 2000, MOST_LANDMARKS = 40;
  const LINKS = 'a[href],area[href],[role=link]';
  const BUTTONS = 'button,summary,input[type=button],input[type=submit],input[type=reset],input[type=image],[role=button],'
    + '[role=menuitem],[role=tab],[role=switch]';
  const REGIONS = 'main,nav,header,footer,aside,dialog[open],section[aria-label],section[aria-labelledby],[role=main],[role=navigation],'
    + '[role=banner],[role=contentinfo],[role=complementary],[role=search],[role=region],[role=dialog],[role=alertdialog]';
  const REGION_ROLES = {MAIN: 'main', NAV: 'navigation', HEADER: 'banner', FOOTER: 'contentinfo', ASIDE: 'complementary',
    DIALOG: 'dialog', SECTION: 'region'};
  const SENDS = 'button:not([type=button]):not([type=reset]),input[type=submit],input[type=image]';
  const short = text => clean(text).slice(0, 200);
  const all = elements();
  const listed = (css, most, described) => {
    const found = [], seen = new Set();
    let examined = 0, more = 0;
    for (const one of all) {
      if (!one.matches(css)) continue;
      if (found.length >= most || ++examined > MOST_EXAMINED) { more++; continue; }
      const facts = inSight(one) && described(one), key = facts && JSON.stringify(facts);
      if (!facts || seen.has(key)) continue;
      seen.add(key);
      found.push([one, facts]);
    }
    return {found, more};
  };
  const off = one => one.disabled === true || one.getAttribute('aria-disabled') === 'true' || one.matches(':disabled');
  const lists = {
    links: listed(LINKS, MOST, one => {
      let address = '';
      try { address = new URL(one.getAttribute('href') || '', document.baseURI).href.slice(0, 1000); } catch { }
      return {label: short(name(one) || one.title), address, host: foreign(one)};
    }),
    buttons: listed(BUTTONS, MOST, one => one.matches(SENDS) && (one.form || closest(one, 'form')) ? null
      : {label: short(name(one) || one.title), host: foreign(one), fixed: off(one)}),
    landmarks: listed(REGIONS, MOST_LANDMARKS, one => ({label: short(label(one)), role: role(one) || REGION_ROLES[one.tagName] || ''})),
  };
  const chosen = wanted === null ? null : lists[wanted[0]].found[wanted[1]];
  return {
    ...Object.fromEntries(Object.entries(lists).map(([key, list]) => [key, list.found.map(pair => pair[1])])),
    more: {links: lists.links.more, buttons: lists.buttons.more, landmarks: lists.landmarks.more},
    cut: all.length >= MAX_ELEMENTS ? document.querySelectorAll('*').length : 0,
    ...(chosen ? {names: alternatives(chosen[0])} : {}),
  };
})
