// Whether a frame's element can be seen, and the ways to find it.
(one => {
  /* NAMING */
  return {shown: inSight(one), names: alternatives(one)};
})
