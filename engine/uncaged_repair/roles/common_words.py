"""Words of an issue's text that say nothing about its subject, by kind. English alone."""

from __future__ import annotations

_FUNCTION_WORDS = """
a again all also always an and any are as at back be been being both but by can cannot could did
do does done each every for from get gets give gives go goes had has have he her here him his how
i if in into is it its just let made make makes many may me might more most much must my never no
not now of off on once one only or other our out over own please put same say says see seem seems
set shall she should so some still such than that the their them then there these they this those
though to too under until up us use used uses very via was way we were what when where which while
who why will with within without would yet you your
"""
_REPAIR_WORDS = """
assert assertion bad break breaks broke broken bug bugs build check checks ci code correct
corrects crash crashes debug defect error errors exception exceptions expect expected fail failed
failing fails failure failures fault faults fix fixed fixes fixing green handle happen happens
incorrect incorrectly issue issues mistake pass passed passes passing problem problems program
project properly pytest python red regression repair repaired repairs repo repository resolve
resolved right run running runs solve suite test tested testing tests unit unittest work working
works wrong wrongly
"""
_GENERIC_WORDS = """
add added arg args argument attribute call called calls case change class data default dict empty
example false file first function given input int integer invalid key last line list method
missing module name new none null number object old order output param parameter raise raised
raises result return returned returns second self should size start state str string text true
tuple type update valid value values variable
"""
_COMMON_EXCEPTIONS = """
AttributeError Exception IndexError KeyError NameError OSError RuntimeError TypeError ValueError
"""

FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words of any sentence."""
REPAIR_WORDS = frozenset(_REPAIR_WORDS.split())
"""Words of a request to repair something."""
GENERIC_WORDS = frozenset(_GENERIC_WORDS.split())
"""Words of any program."""
COMMON_EXCEPTIONS = frozenset(_COMMON_EXCEPTIONS.split())
"""Exceptions that any program raises."""
