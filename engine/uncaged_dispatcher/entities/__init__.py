"""Entities: values of captured texts, such as dates, sizes, paths and things that were named."""
