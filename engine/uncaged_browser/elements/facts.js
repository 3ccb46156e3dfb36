// Facts about one element.
(one => {
  /* NAMING */
  return facts(one);
})
