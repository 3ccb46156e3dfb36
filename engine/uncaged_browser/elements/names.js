// The ways to find one element, without the page that it is on.
(one => {
  /* NAMING */
  return alternatives(one);
})
